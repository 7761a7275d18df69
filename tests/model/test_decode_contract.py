"""What makes a decode step fit for a CUDA graph: no wait, fixed shapes, nothing left, clean refusals."""

import dataclasses

import pytest
import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

from minillm.config import ModelConfig, default_dtype
from minillm.graphs import cuda, warm_up
from minillm.graphs import device as DEVICE
from minillm.inputs import DecodeInputs
from minillm.kv_cache import BlockAllocator, OutOfBlocks, PagedKVCache
from minillm.model import Transformer

torch.set_num_threads(1)
CONFIG = dataclasses.replace(ModelConfig.preset("reciter"), max_context=64)
FORBIDDEN = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}


class Watch(TorchDispatchMode):
    """Refuses operations that read a value on the host or whose shape depends on data; tracks storages."""

    def __init__(self):
        super().__init__()
        self.storages = []
        self.operations = 0

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        if FORBIDDEN & set(operation.tags) or operation is torch.ops.aten._local_scalar_dense.default:
            raise AssertionError(f"{operation} waits for the device or has a shape that depends on data")
        out = operation(*args, **(kwargs or {}))
        self.operations += 1
        for tensor in out if isinstance(out, (tuple, list)) else [out]:
            if isinstance(tensor, torch.Tensor):
                self.storages.append(StorageWeakRef(tensor.untyped_storage()))
        return out

    def alive(self):
        """Handles of the storages that operations returned and that still exist."""
        return {storage.cdata for storage in self.storages if not storage.expired()}


def handle(tensor):
    return StorageWeakRef(tensor.untyped_storage()).cdata


@pytest.fixture(scope="module")
def model():
    return Transformer(CONFIG, device=DEVICE, dtype=torch.float32, seed=3)


@pytest.fixture
def kv():
    """A cache full of numbers, so that whatever a refused step writes is seen."""
    kv = PagedKVCache(CONFIG, num_blocks=12, block_size=4, device=DEVICE, dtype=torch.float32)
    torch.manual_seed(0)
    for tensor in (*kv.key, *kv.value):
        tensor.normal_()
    return kv


def sequences(tokens=(5, 17, 60), lengths=(9, 1, 14), tables=((7, 2, 5), (3,), (1, 11, 4, 6))):
    return DecodeInputs.for_sequences(
        list(tokens), [list(table) for table in tables], list(lengths), 4, max_blocks=5, device=DEVICE
    )


def copy_of(kv):
    return [tensor.clone() for tensor in (*kv.key, *kv.value)]


def unchanged(kv, before):
    return all(torch.equal(now, then) for now, then in zip((*kv.key, *kv.value), before, strict=True))


def test_decode_never_waits_and_has_no_shape_that_depends_on_data(model, kv):
    inputs = sequences()
    with Watch() as watch:
        model.decode(inputs, kv)
    assert watch.operations > 40 * CONFIG.layers


@pytest.mark.parametrize(
    "forbidden",
    [
        lambda x: x.sum().item(),
        lambda x: x.nonzero(),
        lambda x: x[x > 0],
        lambda x: bool((x > 0).any()),
        lambda x: x.masked_select(x > 0),
    ],
)
def test_the_watch_does_see_what_it_forbids(forbidden):
    with pytest.raises(AssertionError, match="waits for the device"), Watch():
        forbidden(torch.ones(3, device=DEVICE))


def test_only_the_logits_outlive_a_decode_step(model, kv):
    inputs = sequences()
    known = {handle(t) for t in (*kv.key, *kv.value, *inputs.tensors().values(), *model.parameters())}
    known |= {handle(t) for t in model.buffers()}
    with Watch() as watch:
        logits = model.decode(inputs, kv)
        assert watch.alive() - known == {handle(logits)}
    del logits
    assert not watch.alive() - known
    assert len(watch.storages) > 40 * CONFIG.layers


def test_the_watch_does_see_what_a_step_would_keep(model, kv):
    kept = []
    hook = model.norm.register_forward_hook(lambda module, args, out: kept.append(out))
    with Watch() as watch:
        model.decode(sequences(), kv)
    hook.remove()
    assert handle(kept[0]) in watch.alive()


def test_a_step_follows_inputs_that_change_in_place(model, kv):
    static = sequences()
    first = model.decode(static, kv)
    second = sequences(tokens=(8, 9, 10), lengths=(12, 3, 15), tables=((4, 1, 7), (2,), (5, 3, 11, 6)))
    untouched = copy_of(kv)
    expected = model.decode(second, kv)
    for tensor, then in zip((*kv.key, *kv.value), untouched, strict=True):
        tensor.copy_(then)
    addresses = {name: tensor.data_ptr() for name, tensor in static.tensors().items()}
    for name, tensor in static.tensors().items():
        tensor.copy_(second.tensors()[name])
    again = model.decode(static, kv)
    assert torch.equal(again, expected) and not torch.equal(again, first)
    assert addresses == {name: tensor.data_ptr() for name, tensor in static.tensors().items()}


def test_a_step_can_be_repeated(model, kv):
    inputs = sequences()
    first, cache = model.decode(inputs, kv), copy_of(kv)
    assert torch.equal(model.decode(inputs, kv), first) and unchanged(kv, cache)


def test_a_step_writes_one_slot_a_sequence_and_no_other(model, kv):
    before = copy_of(kv)
    inputs = sequences()
    model.decode(inputs, kv)
    written = torch.zeros(12, 4, dtype=torch.bool)
    written[5, 0] = written[3, 0] = written[6, 1] = True  # positions 8, 0 and 13 in blocks of 4
    for now, then in zip((*kv.key, *kv.value), before, strict=True):
        assert torch.equal((now != then).any(-1).any(-1).cpu(), written)


def test_grad_and_inference_modes_change_nothing(model):
    def outside():
        return torch.enable_grad()

    results = []
    for made_in, used_in in [
        (outside, outside),
        (outside, torch.inference_mode),
        (torch.inference_mode, outside),
        (torch.no_grad, torch.inference_mode),
        (torch.inference_mode, torch.no_grad),
    ]:
        with made_in():
            kv = PagedKVCache(CONFIG, num_blocks=12, block_size=4, device=DEVICE, dtype=torch.float32)
            fresh = Transformer(CONFIG, device=DEVICE, dtype=torch.float32, seed=3)
            inputs = sequences()
        with used_in():
            fresh.prefill([1, 2, 3, 4, 5, 6, 7, 8], kv, [7, 2, 5])
            logits = fresh.decode(inputs, kv)
            inputs.positions.add_(0)  # static buffers must stay writable
            fresh.load_state_dict(model.state_dict())
        assert not logits.requires_grad
        results.append(logits)
    assert all(torch.equal(result, results[0]) for result in results)


def test_a_captured_step_replays_new_inputs(model, kv):
    static = sequences()
    warm_up(lambda: model.decode(static, kv))
    graph = cuda.CUDAGraph()
    with torch.inference_mode(), cuda.graph(graph):
        logits = model.decode(static, kv)
    for new in (
        sequences(tokens=(8, 9, 10), lengths=(12, 3, 15)),
        sequences(tokens=(1, 2, 3), lengths=(5, 4, 1), tables=((4, 1), (2,), (5,))),
    ):
        for name, tensor in static.tensors().items():
            tensor.copy_(new.tensors()[name])
        graph.replay()
        replayed = logits.clone()
        torch.testing.assert_close(replayed, model.decode(new, kv), rtol=1e-5, atol=1e-5)


def test_device_and_dtype_left_out_are_the_courses_own():
    kv = PagedKVCache(CONFIG, num_blocks=4)
    logits = Transformer(CONFIG).prefill([1, 2], kv, [3])
    assert kv.device.type == logits.device.type == DEVICE
    assert kv.dtype == logits.dtype == default_dtype(DEVICE)
    assert DecodeInputs.padding(1, 1).token_ids.device == kv.device
    assert DecodeInputs.for_sequences([1], [[3]], [3], 16, 4).token_ids.device == kv.device


def wrong(**change):
    """Good inputs but for one tensor, which is made from the good one."""
    inputs = sequences()
    return dataclasses.replace(inputs, **{n: make(getattr(inputs, n)) for n, make in change.items()})


@pytest.mark.parametrize(
    "make, error, words",
    [
        (
            lambda: wrong(token_ids=lambda t: t.int()),
            TypeError,
            "token_ids is torch.int32; expected torch.int64",
        ),
        (lambda: wrong(block_tables=lambda t: t.long()), TypeError, "block_tables is torch.int64"),
        (lambda: wrong(positions=lambda t: t.to("meta")), ValueError, "positions is on meta"),
        (lambda: wrong(slot_mapping=lambda t: t[:2]), ValueError, r"slot_mapping has shape \[2\]"),
        (lambda: wrong(context_lens=lambda t: t[:, None]), ValueError, r"context_lens has shape \[3, 1\]"),
        (lambda: wrong(block_tables=lambda t: t[:2]), ValueError, r"expected \[3, 1 to 16\]"),
        (lambda: wrong(block_tables=lambda t: t[:, :0]), ValueError, r"shape \[3, 0\]"),
        (
            lambda: wrong(block_tables=lambda t: t.repeat(1, 4)),
            ValueError,
            r"shape \[3, 20\].*max_context = 64",
        ),
    ],
)
def test_decode_refuses_wrong_inputs_and_leaves_the_cache_alone(model, kv, make, error, words):
    before = copy_of(kv)
    with pytest.raises(error, match=words):
        model.decode(make(), kv)
    assert unchanged(kv, before)


@pytest.mark.skipif(
    DEVICE != "cpu", reason="on a GPU a wrong value is a device assertion that ends the process"
)
@pytest.mark.parametrize("name, value", [("token_ids", 96), ("positions", 64)])
def test_on_the_cpu_even_wrong_values_leave_the_cache_alone(model, kv, name, value):
    inputs = sequences()
    getattr(inputs, name)[1] = value
    before = copy_of(kv)
    with pytest.raises(IndexError):
        model.decode(inputs, kv)
    assert unchanged(kv, before)


@pytest.mark.parametrize(
    "call, error, words",
    [
        ({"token_ids": []}, ValueError, "with 0 tokens; expected start >= 0 and a token or more"),
        ({"token_ids": [1, 96]}, ValueError, "prompt: token 96 does not exist; expected 0 to 95"),
        ({"token_ids": torch.tensor([1, -1])}, ValueError, "prompt: token -1 does not exist"),
        (
            {"token_ids": torch.tensor([[1, 2]])},
            ValueError,
            r"token_ids has shape \[1, 2\]; expected one dim",
        ),
        ({"token_ids": torch.tensor([1.0])}, TypeError, "token_ids is torch.float32"),
        ({"token_ids": [1.0]}, TypeError, "token 1.0 is a float"),
        ({"start": -1}, ValueError, "start is -1"),
        ({"start": 6}, ValueError, "9 tokens need 3 blocks of 4, the block table has 2"),
        ({"block_table": []}, ValueError, "3 tokens need 1 blocks of 4, the block table has 0"),
        ({"block_table": [2, 2], "start": 3}, ValueError, "a block stands twice"),
        ({"block_table": [12, 2]}, ValueError, "prompt: block 12 does not exist; expected 0 to 11"),
        ({"block_table": torch.tensor([-1, 2])}, ValueError, "prompt: block -1 does not exist"),
        ({"block_table": torch.tensor([2.0])}, TypeError, "block_table is torch.float32"),
        (
            {"token_ids": [1] * 65, "block_table": list(range(12))},
            ValueError,
            "65 tokens; expected 1 to .*64",
        ),
        ({"token_ids": [1], "start": 64, "block_table": list(range(12))}, ValueError, "context is 65 tokens"),
    ],
)
def test_prefill_refuses_wrong_prompts_and_leaves_the_cache_alone(model, kv, call, error, words):
    good = {"token_ids": [1, 2, 3], "block_table": [2, 9], "start": 0}
    before = copy_of(kv)
    with pytest.raises(error, match=words):
        model.prefill(kv=kv, **{**good, **call})
    assert unchanged(kv, before)
    model.prefill(kv=kv, **good)
    assert not unchanged(kv, before)


@pytest.mark.parametrize(
    "change, dtype, words",
    [
        ({"layers": 3}, torch.float32, r"made for reciter \(3 layers.*model is reciter \(4"),
        ({"kv_heads": 4}, torch.float32, "4 KV heads of 32"),
        ({"head_dim": 64}, torch.float32, "2 KV heads of 64"),
        ({}, torch.float16, "the KV cache is torch.float16 on .*, the model torch.float32"),
    ],
)
def test_a_cache_made_for_another_model_is_refused(model, change, dtype, words):
    kv = PagedKVCache(dataclasses.replace(CONFIG, **change), 12, 4, device=DEVICE, dtype=dtype)
    for step in (lambda: model.decode(sequences(), kv), lambda: model.prefill([1], kv, [1])):
        with pytest.raises(ValueError, match=words):
            step()
    assert not any(tensor.any() for tensor in (*kv.key, *kv.value))


def test_a_model_on_another_device_than_the_cache_is_refused(model):
    kv = PagedKVCache(CONFIG, 12, 4, device="meta", dtype=torch.float32)
    with pytest.raises(ValueError, match="the KV cache is torch.float32 on meta, the model"):
        model.prefill([1], kv, [1])


def test_running_out_of_blocks_leaves_the_cache_and_the_sequence_as_they_were(model, kv):
    allocator = BlockAllocator(kv.num_blocks)
    table = allocator.allocate(9)
    model.prefill(list(range(36)), kv, table)
    before = copy_of(kv)
    with pytest.raises(OutOfBlocks, match="3 blocks wanted, 2 free, 9 owned"):
        allocator.allocate(3)
    with pytest.raises(ValueError, match="37 tokens need 10 blocks of 4, the block table has 9"):
        model.prefill([36], kv, table, start=36)
    assert unchanged(kv, before) and allocator.num_free == 2
