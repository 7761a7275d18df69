"""Exercise 1.3: the time below which no decode step can go, because its bytes must be read."""

from dataclasses import replace

from minillm.config import ModelConfig
from minillm.grading.compare import compare
from minillm.grading.registry import exercise

ARGUMENTS = ("config", "batch", "context", "gb_per_s")
ELEMENT = 2  # bytes of a bfloat16


def layers_elements(config):
    """Weights of all layers. The norms are left out: less than a thousandth, and free to count or not."""
    attention = config.hidden * config.head_dim * (2 * config.heads + 2 * config.kv_heads)
    return config.layers * (attention + 3 * config.hidden * config.ffn)


def table_elements(config):
    return config.vocab * config.hidden


def kv_elements(config, kv_heads=None):
    return 2 * config.layers * (kv_heads or config.kv_heads) * config.head_dim


def floor(config, batch, context, gb_per_s, *, weights=1, tables=1, kv=1.0, element=ELEMENT, kv_heads=None):
    """The truth; the keywords turn it into what a mistake gives."""
    read = weights * (layers_elements(config) + tables * table_elements(config))
    read += kv * batch * context * kv_elements(config, kv_heads)
    return read * element / (gb_per_s * 1e3)


def _variant(**change):
    """A formula whose keywords may be functions of (config, batch, context)."""

    def formula(config, batch, context, gb_per_s):
        case = config, batch, context
        now = {name: value(*case) if callable(value) else value for name, value in change.items()}
        return floor(*case, gb_per_s, **now)

    return formula


def _scaled(factor):
    return lambda *case: factor * floor(*case)


def _stored_tables(config, *_):
    """What config.weight_count() counts: the embedding table, and the head if it is another one."""
    return 1 if config.tied_head else 2


FORMULAS = {
    "forgot-kv": [_variant(kv=0), _variant(kv=lambda config, batch, context: 1 / context)],
    "all-weights-and-no-kv": [_variant(kv=0, tables=_stored_tables), _variant(kv=0, tables=2)],
    "counted-embedding": [_variant(tables=2), _variant(tables=_stored_tables)],
    "forgot-head": [_variant(tables=0), _variant(tables=lambda config, *_: 0 if config.tied_head else 1)],
    "forgot-weights": _variant(weights=0),
    "weights-per-sequence": _variant(weights=lambda config, batch, _: batch),
    "kv-once": _variant(kv=lambda config, batch, _: 1 / batch),
    "keys-only": _variant(kv=0.5),
    "kv-counted-twice": [
        _variant(kv=2),
        _variant(kv=lambda config, *_: config.layers),
        _variant(kv=lambda config, *_: 2 * config.layers),
    ],
    "query-heads": [
        _variant(kv_heads=lambda config, *_: config.heads),
        _variant(kv_heads=lambda config, *_: config.hidden / config.head_dim),
    ],
    "bytes-per-element": [
        _variant(element=1),
        _variant(element=4),
        _variant(weights=0.5),
        _variant(weights=2),
    ],
    "per-token": lambda config, batch, *rest: floor(config, batch, *rest) / batch,
    "gibibytes": _scaled(1e9 / 2**30),
    "wrong-unit": [_scaled(1e-3), _scaled(1e-6), _scaled(1e3), _scaled(1e-9)],
}


@exercise(
    "1.3",
    answer="bandwidth_floor_us",
    arguments=ARGUMENTS,
    title="The bandwidth floor of a decode step",
    own=("minillm.lab.roofline.bandwidth_floor_us", "minillm.lab.roofline.step_bytes"),
    hints=(
        "Two things are read in a step. One is the same for every batch, the other grows with it.",
        "config.weight_count(include_embedding=False) is what a step reads of the weights: the embedding "
        "table is looked up row by row, the head is read whole.",
        "KV: every sequence has its own `context` tokens, of config.kv_bytes_per_token(torch.bfloat16) bytes "
        "each.",
        "Bytes divided by (gb_per_s * 1e9) are seconds; times 1e6 they are microseconds.",
    ),
    mistakes={
        "forgot-kv": "The KV cache is missing, or all but missing: for each sequence attention reads the "
        "keys and values of all its `context` tokens.",
        "all-weights-and-no-kv": "Two things at once: the KV cache is missing (attention reads keys and "
        "values of every earlier token), and weight_count() counts the embedding table, too, if not told "
        "to leave it out.",
        "counted-embedding": "The embedding table was counted; a step reads only one row of it for each "
        "sequence. (The head is read whole and counts once, even where it is the same tensor.)",
        "forgot-head": "The head is missing: a step multiplies by the whole head, even where it is tied to "
        "the embedding. Only looking up rows is free.",
        "forgot-weights": "The weights are missing: a step reads all of them, once.",
        "weights-per-sequence": "The weights were counted once for each sequence; one read serves the whole "
        "batch, which is why batching pays.",
        "kv-once": "The KV cache was counted for one sequence; each sequence of the batch has its own.",
        "keys-only": "Half of the KV cache is missing: a token has a key and a value in each layer.",
        "kv-counted-twice": "The KV cache is too large by a whole factor: "
        "config.kv_bytes_per_token(torch.bfloat16) has keys and values of all layers in it already.",
        "query-heads": "The KV cache was counted with `heads`, or `hidden`; in grouped-query attention a key "
        "has `kv_heads` heads of `head_dim`.",
        "bytes-per-element": "The bytes of an element are wrong: a bfloat16 has two, in weights and KV "
        "alike.",
        "per-token": "This is the time for one token; asked is that of the step, which makes one for each "
        "sequence.",
        "gibibytes": "A GB/s of a datasheet is 1e9 bytes a second, not 2**30.",
        "wrong-unit": "The unit is wrong: bytes over bytes per second are seconds; asked are microseconds.",
    },
)
def check_bandwidth_floor(answer, rng):
    presets = ["llama3-8b", "llama-1b", "llama2-7b", "llama3-70b-tp8-rank"]
    rng.shuffle(presets)
    cases = []
    for name in presets:
        config = replace(
            ModelConfig.preset(name),
            name=f"like {name}",
            layers=rng.randint(8, 24),
            vocab=rng.randint(90, 160) * 1000,
        )
        cases.append((config, rng.randint(3, 40), rng.randint(2000, 8000), rng.uniform(800, 5000)))
    cases.append((ModelConfig.preset("llama3-8b"), 1, 400, 4800.0))
    # Both kinds of head always come first: with only one of them, forgetting it could not be told apart.
    cases.sort(key=lambda case: case[0].tied_head, reverse=True)
    compare(answer, cases, floor, FORMULAS, ARGUMENTS, relative=2e-3)
