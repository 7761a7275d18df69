"""The step that lessons measure is a real one: its inputs are valid, and it can be called again."""

import pytest
import torch

from minillm.lab.decode_setup import decode_step


@pytest.fixture(scope="module")
def step():
    return decode_step("reciter", batch=3, context=20, max_context=40, device="cpu", dtype=torch.float32)


def test_each_sequence_has_its_own_blocks_and_none_is_the_null_block(step):
    blocks = step.inputs.block_tables.flatten().tolist()
    assert len(set(blocks)) == 9 and 0 not in blocks  # 3 sequences of 40 tokens in blocks of 16
    assert step.inputs.context_lens.tolist() == [20] * 3 and step.inputs.positions.tolist() == [19] * 3


def test_calling_it_again_changes_nothing(step):
    first = step().clone()
    cache = [layer.clone() for layer in step.kv.key]
    assert torch.equal(step(), first) and first.isfinite().all() and first.shape == (3, 96)
    assert all(torch.equal(a, b) for a, b in zip(cache, step.kv.key, strict=True))


def test_a_model_can_be_shared(step):
    other = decode_step("reciter", batch=1, context=8, max_context=16, device="cpu", model=step.model)
    assert other.model is step.model and other().shape == (1, 96)


@pytest.mark.parametrize("context", [0, 41])
def test_a_context_outside_the_tables_is_refused(context):
    with pytest.raises(ValueError, match="1 to max_context = 40"):
        decode_step("reciter", context=context, max_context=40, device="cpu")
