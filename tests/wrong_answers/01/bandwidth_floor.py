"""Answers to 1.3."""

import functools

import torch

from minillm import lab
from minillm.grading.corpus import right, wrong


def weights(config):
    return config.weight_count(include_embedding=False)


def kv_bytes(config):
    return config.kv_bytes_per_token(torch.bfloat16)


@right("1.3")
def counted_by_hand(config, batch, context, gb_per_s):
    """Without the norms, which are less than a thousandth."""
    query = config.hidden * config.heads * config.head_dim
    key = config.hidden * config.kv_heads * config.head_dim
    layer = 2 * query + 2 * key + 3 * config.hidden * config.ffn
    elements = config.layers * (layer + 2 * batch * context * config.kv_heads * config.head_dim)
    elements += config.vocab * config.hidden
    return torch.tensor(2 * elements / gb_per_s / 1e3, dtype=torch.float64)


@wrong("1.3", "forgot-kv")
def weights_only(config, batch, context, gb_per_s):
    return 2 * weights(config) / gb_per_s / 1e3


@wrong("1.3", "counted-embedding")
def all_stored_weights(config, batch, context, gb_per_s):
    stored = 2 * config.weight_count() + batch * context * kv_bytes(config)
    return stored / gb_per_s / 1e3


@wrong("1.3", "counted-embedding")
def embedding_and_head(config, batch, context, gb_per_s):
    read = weights(config) + config.vocab * config.hidden
    return (2 * read + batch * context * kv_bytes(config)) / gb_per_s / 1e3


@wrong("1.3", "forgot-head")
def all_weights_less_the_table(config, batch, context, gb_per_s):
    """Right with a head of its own; a tied table is gone altogether."""
    read = config.weight_count() - config.vocab * config.hidden
    return (2 * read + batch * context * kv_bytes(config)) / gb_per_s / 1e3


@wrong("1.3", "forgot-head")
def layers_only(config, batch, context, gb_per_s):
    read = weights(config) - config.vocab * config.hidden
    return (2 * read + batch * context * kv_bytes(config)) / gb_per_s / 1e3


@wrong("1.3", "weights-per-sequence")
def weights_for_each_sequence(config, batch, context, gb_per_s):
    return batch * (2 * weights(config) + context * kv_bytes(config)) / gb_per_s / 1e3


@wrong("1.3", "kv-once")
def one_sequence(config, batch, context, gb_per_s):
    return (2 * weights(config) + context * kv_bytes(config)) / gb_per_s / 1e3


@wrong("1.3", "keys-only")
def only_keys(config, batch, context, gb_per_s):
    kv = config.layers * config.kv_heads * config.head_dim * batch * context
    return 2 * (weights(config) + kv) / gb_per_s / 1e3


@wrong("1.3", "query-heads")
def kv_of_all_heads(config, batch, context, gb_per_s):
    kv = 2 * config.layers * config.heads * config.head_dim * batch * context
    return 2 * (weights(config) + kv) / gb_per_s / 1e3


@wrong("1.3", "bytes-per-element")
def elements_for_bytes(config, batch, context, gb_per_s):
    kv = 2 * config.layers * config.kv_heads * config.head_dim * batch * context
    return (weights(config) + kv) / gb_per_s / 1e3


@wrong("1.3", "bytes-per-element")
def float32(config, batch, context, gb_per_s):
    kv = batch * context * config.kv_bytes_per_token(torch.float32)
    return (4 * weights(config) + kv) / gb_per_s / 1e3


@wrong("1.3", "gibibytes")
def two_to_the_thirty(config, batch, context, gb_per_s):
    return (2 * weights(config) + batch * context * kv_bytes(config)) / (gb_per_s * 2**30) * 1e6


@wrong("1.3", "wrong-unit")
def milliseconds(config, batch, context, gb_per_s):
    return (2 * weights(config) + batch * context * kv_bytes(config)) / (gb_per_s * 1e6)


@wrong("1.3", "wrong-unit")
def seconds(config, batch, context, gb_per_s):
    return (2 * weights(config) + batch * context * kv_bytes(config)) / (gb_per_s * 1e9)


@wrong("1.3", "reexport")
def asks_the_lab(config, batch, context, gb_per_s):
    return lab.bandwidth_floor_us(config, batch, context, gb_per_s)


@wrong("1.3", "reexport")
def asks_the_lab_for_bytes(config, batch, context, gb_per_s):
    return lab.step_bytes(config, batch, context).total / gb_per_s / 1e3


wrong("1.3", "reexport")(functools.partial(lab.bandwidth_floor_us, bytes_per_element=2))


@wrong("1.3", "another-exercise")
def finish_times(launch_us, kernel_us):
    return []


@wrong("1.3", "all-weights-and-no-kv")
def first_idea(config, batch, context, gb_per_s):
    return 2 * config.weight_count() / gb_per_s / 1e3


@wrong("1.3", "forgot-weights")
def only_kv(config, batch, context, gb_per_s):
    return batch * context * kv_bytes(config) / gb_per_s / 1e3


@wrong("1.3", "forgot-kv")
def one_token_of_each(config, batch, context, gb_per_s):
    return (2 * weights(config) + batch * kv_bytes(config)) / gb_per_s / 1e3


@wrong("1.3", "kv-counted-twice")
def keys_and_values_again(config, batch, context, gb_per_s):
    return (2 * weights(config) + 2 * batch * context * kv_bytes(config)) / gb_per_s / 1e3


@wrong("1.3", "kv-counted-twice")
def kv_of_float32(config, batch, context, gb_per_s):
    kv = batch * context * config.kv_bytes_per_token(torch.float32)
    return (2 * weights(config) + kv) / gb_per_s / 1e3


@wrong("1.3", "bytes-per-element")
def weights_of_float32(config, batch, context, gb_per_s):
    return (4 * weights(config) + batch * context * kv_bytes(config)) / gb_per_s / 1e3


@wrong("1.3", "bytes-per-element")
def weights_for_bytes(config, batch, context, gb_per_s):
    return (weights(config) + batch * context * kv_bytes(config)) / gb_per_s / 1e3


@wrong("1.3", "query-heads")
def kv_as_wide_as_hidden(config, batch, context, gb_per_s):
    kv = 2 * config.layers * config.hidden * batch * context
    return 2 * (weights(config) + kv) / gb_per_s / 1e3
