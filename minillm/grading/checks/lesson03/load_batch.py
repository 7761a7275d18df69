"""Exercise 3.2: load a batch into static inputs, and leave nothing of the batch before."""

from minillm.grading.checks.lesson03.load_judge import judge_load, make_batch
from minillm.grading.device_memory import as_on_a_gpu
from minillm.grading.registry import exercise


@exercise(
    "3.2",
    answer="load",
    arguments=("static", "batch"),
    title="Load a batch, and leave nothing stale",
    own=("minillm.engine.buffers.StaticBuffers", "minillm.lab.recital.copy_rows"),
    hints=(
        "Divide each static tensor into the part that the batch fills and the rest. The one-dimensional ones "
        "have rows to be padded, the block table has rows and columns.",
        "For name, buffer in BUFFERS.items(): getattr(static, name) is the tensor to write into, "
        "getattr(batch, name) the one to copy, and buffer.padding is what the rest must hold.",
        "target[:n].copy_(source) and target[n:].fill_(padding) do it for the vectors: a slice is a view, so "
        "writing into it writes into the static tensor.",
        "For the table: fill the whole target with 0, then target[:n, :w].copy_(source). The fill takes "
        "care of both the rows below and the columns to the right.",
    ),
    mistakes={
        "rebound": "You assigned a new tensor to a field of `static`. The graph goes on reading the old one: "
        "write into it, with copy_, fill_ or a slice on the left.",
        "moved": "A static tensor was given other memory (`.data =`, `set_`): the object is the same, the "
        "address is not, and the graph goes on reading the old one.",
        "nothing-loaded": "Nothing of the batch arrived in `static`. Binding a name to another tensor, or "
        "copying into a clone, does not write into it.",
        "field-forgotten": "One of the five tensors was not copied. A graph then decodes the new tokens with "
        "what the step before left there.",
        "cleared-too-late": "What was copied has been cleared again: fill with padding first, then copy the "
        "batch.",
        "at-the-end": "The batch stands in the last rows or columns. It belongs in the first ones: the "
        "graph's row i is the batch's row i, and a kernel reads a table from its first block "
        "on.",
        "off-by-one": "The border between batch and padding is off by one: rows :n and columns :w are the "
        "batch, rows n: and columns w: are padding.",
        "nothing-cleared": "The rows behind the batch still hold the batch before, in all five tensors. A "
        "graph runs all rows: these go on decoding and write their KV into blocks that by now belong to "
        "somebody else.",
        "stale-slots": "Rows behind the batch keep an old slot mapping. Each replay writes their keys and "
        "values there, into a block that another sequence may own by now: a silent corruption.",
        "stale-lengths": "Rows behind the batch keep an old context length, so they attend to that many "
        "tokens of the null block: wasted work, and whatever stands there. Padding has length 1.",
        "stale-positions": "Rows behind the batch keep old positions, and nobody checks that RoPE's tables "
        "have them: SGLang read outside of memory over this (its pull request #10892). Padding has 0.",
        "stale-table-rows": "Rows behind the batch keep old block tables, so they read blocks that belong to "
        "somebody else, or to nobody. Padding has block 0.",
        "stale-tokens": "Rows behind the batch keep old tokens. Their logits are thrown away, so nothing "
        "shows it; the contract has 0, so that what a replay does follows from the batch alone.",
        "stale-columns": "The batch's tables are narrower than the static one, and the columns to the right "
        "still name blocks of the batch before. The attention of this course masks them; a kernel that reads "
        "ahead does not, and a length that is too large reads another sequence's keys.",
        "unordered": "Your own stream and the graph's work side by side, and nothing makes one wait for the "
        "other: it may come out right, and need not. side.wait_stream(current) comes before what you put on "
        "it, current.wait_stream(side) before who needs that.",
        "minus-one": "Padding with -1: as an index it means the last one, so unless a kernel skips negative "
        "slots, padding writes into the last block of the cache. This contract has block 0, which no "
        "sequence owns.",
        "zero-length": "Padding rows have context length 0. Attention to no token at all gives NaN, and "
        "whatever looks at the whole batch then spreads it; the contract has 1.",
        "repeats-a-sequence": "Padding rows repeat a sequence of the batch, slot included: two rows write to "
        "one slot, which is a race, and harmless only while both compute the very same numbers.",
        "wrong-padding": "Padding rows or columns hold something else than the contract says. See "
        "minillm.inputs.BUFFERS: 0 everywhere, and 1 for the context length.",
        "waits": "The values are right, and your load waits for the device to read some of them. The step "
        "before must then end before the next can be submitted. Shapes are known without waiting.",
    },
)
def check_load(answer, rng):
    with as_on_a_gpu():
        rows, columns = rng.randint(6, 8), rng.randint(5, 7)
        static = make_batch(rng, rows, columns)  # full of numbers that no padding has
        sizes = [(rows, columns), (rng.randint(2, rows - 3), rng.randint(2, columns - 3)), (rows - 1, 1)]
        sizes += [(rows, columns), (rows, 2), (1, columns - 1), (2, 2), (2, 2)]
        for size in sizes:
            judge_load(answer, static, make_batch(rng, *size))
        # And where the rest is not what a load of one's own left there.
        poison = make_batch(rng, rows, columns)
        for name, tensor in static.tensors().items():
            tensor.copy_(getattr(poison, name))
        judge_load(answer, static, make_batch(rng, rng.randint(2, rows - 2), rng.randint(2, columns - 2)))
