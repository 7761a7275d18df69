"""Bad input: each is refused in words that help, and nobody else notices."""

import math
import warnings

import pytest
import torch
from helpers import CONFIG, alone, finish, no_leak, prompts_of, small_engine, small_model

from minillm.engine import Request, Sampling

GOOD = prompts_of(4, 2)


class Letters:
    """A tokenizer of 26 letters."""

    end = 49

    def encode(self, text):
        if not text.isalpha():
            raise ValueError(f"{text!r} has characters other than letters; expected a to z")
        return [ord(letter) - ord("a") for letter in text]

    def decode(self, ids):
        return "".join(chr(ord("a") + index) if index < 26 else "?" for index in ids)


# What is wrong with a prompt. The cache has 9 blocks of 4 for requests, the maximum context is 48 tokens.
PROMPTS = [
    ([], {}, ValueError, "the prompt is empty; expected one token or more"),
    ([1] * 49, {}, ValueError, "the prompt has 49 tokens; expected at most 48, the maximum context: shorten"),
    ([1, 50], {}, ValueError, "the prompt's token 50 does not exist; expected 0 to 49"),
    ([1, -1], {}, ValueError, "the prompt's token -1 does not exist"),
    ([1, 2.0], {}, TypeError, "the prompt's token 2.0 is a float; expected an integer"),
    ([1, "a"], {}, TypeError, "the prompt's token 'a' is a str"),
    ([[1, 2]], {}, TypeError, r"the prompt's token \[1, 2\] is a list"),
    (7, {}, TypeError, "the prompt is 7; expected a list of token ids, or a string"),
    (None, {}, TypeError, "the prompt is None; expected a list of token ids, or a string"),
    ("abc", {}, TypeError, "the prompt is a string, and the engine has no tokenizer: pass token ids"),
    (
        [1] * 20,
        {"max_tokens": 18},
        ValueError,
        "20 tokens and up to 18 new ones need 10 blocks of 4, .*has 9",
    ),
    ([1] * 38, {}, ValueError, "38 tokens and up to 11 new ones need 12 blocks of 4, the whole cache has 9"),
]
# What is wrong for every prompt.
CHOICES = [
    ({"max_tokens": 0}, ValueError, "max_tokens is 0; expected 1 or more"),
    ({"max_tokens": -1}, ValueError, "max_tokens is -1; expected 1 or more"),
    ({"max_tokens": 3.0}, TypeError, "max_tokens is 3.0; expected a whole number"),
    ({"top_k": 0}, ValueError, "top_k is 0; expected 1 to 64"),
    ({"top_k": 65}, ValueError, "top_k is 65; expected 1 to 64"),
    ({"top_k": 2.5}, TypeError, "top_k is 2.5; expected a whole number"),
    ({"temperature": -1}, ValueError, "temperature is -1; expected 0"),
    ({"temperature": math.nan}, ValueError, "temperature is nan"),
    ({"temperature": math.inf}, ValueError, "temperature is inf"),
    ({"temperature": "1"}, TypeError, "temperature is '1'; expected a number"),
    ({"temperature": True}, TypeError, "temperature is True; expected a number"),
    ({"stop_token": -1}, ValueError, "stop_token is -1"),
    ({"stop_token": 1.5}, TypeError, "stop_token is 1.5"),
    ({"heat": 1}, TypeError, "heat"),
]


@pytest.fixture(scope="module")
def engine():
    return small_engine(small_model(), max_context=48, num_blocks=10, widths=[12], sampling=False)


@pytest.fixture(scope="module")
def texts(engine):
    return [alone(engine.model, prompt, 12) for prompt in GOOD]


@pytest.fixture(autouse=True)
def clean(engine):
    yield
    for request in list(engine.core.requests.values()):  # after a test that failed
        engine.cancel(request)
    assert no_leak(engine)


def untouched(engine, request):
    """The one request that was there before goes on to its end."""
    assert list(engine.core.requests.values()) == [request]
    finish(engine)
    return request.tokens


@pytest.mark.parametrize(
    "prompt, choices, error, words",
    [
        *PROMPTS,
        *((GOOD[0], *case) for case in CHOICES),
        (GOOD[0], {"stop_token": 50}, ValueError, "stop_token 50 does not exist; expected 0 to 49"),
    ],
)
def test_add_raises_and_the_engine_is_as_before(prompt, choices, error, words, engine, texts):
    request = engine.add(GOOD[0], max_tokens=12)
    engine.step()
    with pytest.raises(error, match=words):
        engine.add(prompt, **choices)
    assert untouched(engine, request) == texts[0]


@pytest.mark.parametrize("prompt, choices, error, words", PROMPTS)
def test_generate_refuses_one_and_serves_the_others(prompt, choices, error, words, engine, texts):
    choices = {"max_tokens": 12, **choices}
    with pytest.warns(UserWarning, match=f"prompt 1 was refused: .*{words}") as caught:
        first, bad, last = engine.generate([GOOD[0], prompt, GOOD[1]], **choices)
    assert len(caught) == 1
    assert type(bad.error) is error and bad.done and bad.finish is None and not bad.tokens
    assert "refused: " in repr(bad)
    for request, text in ((first, texts[0]), (last, texts[1])):
        assert request.error is None and request.finish == "length"
        assert request.tokens[:12] == text
    assert engine.idle


def test_generate_refuses_many_kinds_at_once(engine, texts):
    prompts = [GOOD[0], *(prompt for prompt, choices, *_ in PROMPTS if not choices), GOOD[1]]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        requests = engine.generate(prompts, max_tokens=4)
    # A prompt of 38 tokens and 4 new ones needs 11 blocks as well.
    assert [request.error is None for request in requests] == [True] + [False] * 11 + [True]
    assert [str(it.message).split(" was")[0] for it in caught] == [f"prompt {n}" for n in range(1, 12)]
    assert requests[0].tokens == texts[0][:4] and requests[-1].tokens == texts[1][:4]


@pytest.mark.parametrize("choices, error, words", CHOICES)
def test_generate_raises_for_what_is_wrong_with_all_and_begins_nothing(choices, error, words, engine, texts):
    request = engine.add(GOOD[0], max_tokens=12)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(error, match=words):
            engine.generate(GOOD, **choices)
    assert untouched(engine, request) == texts[0]


def test_a_stop_token_outside_the_vocabulary_is_refused_for_each_prompt(engine):
    with pytest.warns(UserWarning, match="stop_token 50 does not exist; expected 0 to 49"):
        requests = engine.generate(GOOD, stop_token=50)
    assert all(isinstance(request.error, ValueError) for request in requests)


def test_prompts_that_break_off_cancel_what_was_queued(engine, texts):
    def prompts():
        yield GOOD[0]
        yield GOOD[1]
        raise OSError("the file ended")

    request = engine.add(GOOD[0], max_tokens=12)
    with pytest.raises(OSError, match="the file ended"):
        engine.generate(prompts(), max_tokens=5)
    assert untouched(engine, request) == texts[0]


def test_no_prompts_are_no_requests(engine):
    assert engine.generate([]) == [] and engine.idle


def test_prompts_may_be_any_sequence_of_integers(engine, texts):
    import numpy

    for prompt in (tuple(GOOD[0]), numpy.array(GOOD[0]), iter(GOOD[0]), range(3)):
        request = engine.add(prompt, max_tokens=12)
        finish(engine)
        assert all(type(token) is int for token in request.prompt)
        assert request.tokens == texts[0] or request.prompt == [0, 1, 2]
    with pytest.raises(TypeError, match="is a Tensor; expected an integer"):
        engine.add(torch.tensor(GOOD[0]))


def test_strings_with_a_tokenizer():
    engine = small_engine(small_model(), Letters(), sampling=False)
    with pytest.warns(UserWarning, match="prompt 1 was refused: 'a b' has characters other than letters"):
        good, bad, ids = engine.generate(["abc", "a b", [0, 1, 2]], max_tokens=9)
    assert good.prompt == [0, 1, 2] and good.sampling.stop_token == 49  # the tokenizer's end
    assert good.tokens == ids.tokens and good.text == Letters().decode(good.tokens) and len(good.text) == 9
    assert bad.text is None and isinstance(bad.error, ValueError)
    (one,) = engine.generate("abc", max_tokens=2, stop_token=3)  # a string is one prompt
    assert one.tokens == good.tokens[:2] and one.sampling.stop_token == 3
    assert repr(one) == f"<request {one.id}: prompt of 3 tokens, {one.text!r}, length>"
    with pytest.raises(ValueError, match="letters"):
        engine.add("?")
    assert no_leak(engine)


@pytest.mark.parametrize(
    "options, error, words",
    [
        ({"max_batch": 0}, ValueError, "max_batch is 0; expected 1 or more"),
        ({"max_batch": 2.0}, TypeError, "max_batch is 2.0; expected a whole number"),
        ({"max_context": 65}, ValueError, "max_context is 65; expected 1 to 64"),
        ({"max_context": 0}, ValueError, "max_context is 0; expected 1 to 64"),
        ({"block_size": 0}, ValueError, "block_size is 0"),
        ({"prefill_budget": 0}, ValueError, "prefill_budget is 0; expected 1 or more"),
        ({"ahead": -1}, ValueError, "ahead is -1; expected 0 or more"),
        ({"num_blocks": 1}, ValueError, "num_blocks is 1; expected 2 or more"),
        ({"buckets": [4]}, ValueError, r"buckets is \[4\]; expected one size or more, each from 1 to 3"),
        ({"widths": [17]}, ValueError, r"widths is \[17\]; expected one size or more, each from 1 to 16"),
    ],
)
def test_an_engine_that_cannot_be_is_refused(options, error, words, engine):
    with pytest.raises(error, match=words):
        small_engine(engine.model, **options)


def test_what_a_request_works_out_from_its_limit():
    request = Request(0, [1] * 5, Sampling(max_tokens=3, stop_token=7), limit=8)
    assert (request.most_tokens, request.most_slots, request.stop, request.when_full) == (3, 7, 7, "length")
    request = Request(0, [1] * 5, Sampling(max_tokens=9), limit=CONFIG.max_context + 1)
    assert (request.stop, request.when_full, request.most_slots) == (-1, "context", CONFIG.max_context)
    assert Request(0, [1], Sampling(), limit=3).when_full == "context"
    assert repr(request) == "<request 0: prompt of 5 tokens, 0 tokens, waiting>"
