"""One token a character, and a clear word for what has none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minillm.config import ModelConfig
from minillm.tokenizer import CharacterTokenizer, tokenizer

KNOWN = ["\n", *(chr(code) for code in range(32, 126))]


def test_the_vocabulary_is_the_presets_and_every_id_but_the_end_is_a_character():
    assert tokenizer.vocab == 96 == ModelConfig.preset("reciter").vocab
    written = [tokenizer.decode([index]) for index in range(96)]
    assert written == ["", *KNOWN]
    assert CharacterTokenizer.end == 0


@given(st.text(st.sampled_from(KNOWN)))
def test_what_is_encoded_can_be_decoded(text):
    ids = tokenizer.encode(text)
    assert len(ids) == len(text) and all(0 < index < 96 for index in ids)
    assert tokenizer.decode(ids) == text
    assert tokenizer.decode([*ids, tokenizer.end, *ids]) == text + text


@given(st.lists(st.integers(1, 95)))
def test_what_is_decoded_can_be_encoded(ids):
    assert tokenizer.encode(tokenizer.decode(ids)) == ids


@given(st.text(st.sampled_from(KNOWN)), st.characters().filter(lambda c: c not in KNOWN), st.text())
def test_an_unknown_character_is_named_with_its_place(before, unknown, after):
    with pytest.raises(ValueError) as error:
        tokenizer.encode(before + unknown + after)
    assert str(error.value).startswith(f"character {len(before)} of the text is {unknown!r}; expected")


@pytest.mark.parametrize("ids, words", [([1, 96], "id 1 is 96; expected 0 to 95"), ([-1], "id 0 is -1;")])
def test_an_id_that_is_not_there_is_named_with_its_place(ids, words):
    with pytest.raises(ValueError, match=words):
        tokenizer.decode(ids)
