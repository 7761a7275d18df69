"""Exercise 3.4: a temperature that changes between replays."""

import torch

from minillm.grading.checks.lesson03.temperature_truth import judge, oracle
from minillm.grading.checks.lesson03.temperature_watch import Watch
from minillm.grading.device_memory import as_on_a_gpu
from minillm.grading.registry import Wrong, exercise
from minillm.graphs import cuda, device

# What CUDA says when it will not capture something -> the mistake behind it.
REFUSALS = {
    "Cannot copy between CPU and CUDA tensors during CUDA graph capture": "made-in-capture",
    "operation not permitted when stream is capturing": "waits-in-capture",
    "operation failed due to a previous error during capture": "waits-in-capture",
}
POISON = 37.0  # what freed memory holds next


@exercise(
    "3.4",
    answer="capture_softmax",
    arguments=("logits",),
    title="A temperature that can change",
    captures=True,
    hints=(
        "A Python number is written into the kernel's parameters at capture. What does a graph read anew at "
        "every replay?",
        "It reads memory on the device. Keep the temperature there, in a float tensor without dimensions "
        "that is made before the capture: torch.ones((), device=device).",
        "Inside the capture divide by that tensor. In run, write the new number into the same tensor, and "
        "replay after that.",
        "run(value) is three lines: temperature.fill_(value), graph.replay(), return probabilities.",
    ),
    mistakes={
        "frozen-number": "The temperature was a Python number when you captured, so it is a constant of the "
        "graph. Keep it in a tensor on the device, which the graph reads at every replay.",
        "rebound": "run makes a new tensor for the temperature. The graph reads the address of the old one; "
        "write into that one, with fill_().",
        "made-in-capture": "A tensor is made from a Python number inside the capture: that is a copy from "
        "host memory, which a capture refuses. Make the tensor before the capture.",
        "host-tensor": "The temperature is a tensor in host memory. A CUDA kernel takes the value of such a "
        "0-dim tensor as a constant, so it is frozen like a Python number: make it with device=device.",
        "recaptured": "run captures again. That costs many times a replay, and it is not needed: let the one "
        "graph read the temperature from a tensor.",
        "eager": "run computes the probabilities without the graph. Replay the captured step.",
        "not-replayed": "run returns the output buffer without a replay, so nothing was computed.",
        "multiplied": "The logits are multiplied by the temperature; divide them: a high temperature makes "
        "the distribution flatter.",
        "divided-after-softmax": "The probabilities are divided by the temperature, so they no longer add up "
        "to 1. Divide the logits, and take the softmax after that.",
        "kept-result": "Asked again for a temperature that it knows, run gives an old result, or none. The "
        "logits are others by now: write the temperature and replay in every run.",
        "dropped-temperature": "Nothing holds a tensor that the graph reads, such as the one that it divides "
        "by: it was freed after the capture, and its address belongs to whoever allocates next, be it by "
        "luck your new temperature. Hold it as long as the graph, and write into it.",
        "written-elsewhere": "You write the temperature into a tensor that the graph does not read. What was "
        "computed from it before the capture (an inverse, a copy, another dtype) does not follow it; "
        "compute that inside the capture.",
        "one-late": "Each temperature takes effect one call late: write it before the replay, not after.",
        "integer-temperature": "The temperature's tensor holds integers, so 0.7 is stored as 0. Make it "
        "float.",
        "rounded-temperature": "The tensor has too few bits for the temperature, which is rounded. Make it "
        "float32; dividing takes the wider of the two types anyway.",
        "waits-in-capture": "Something in the capture needs a value on the host, such as .item(), float(t) "
        "or printing. The device runs nothing during a capture, so CUDA breaks it off.",
        "changed-logits": "The logits have changed: dividing in place writes into the static buffer, and the "
        "next replay divides again. Use / or torch.div.",
        "other-logits": "New logits are not seen: the graph reads a copy that was made at capture. Let it "
        "read the buffer that you were given.",
        "wrong-dimension": "The softmax runs over the batch; each row is a distribution over the vocabulary, "
        "so take dim=-1.",
    },
)
def check_capture_softmax(answer, rng):
    for rows, vocabulary in ((3, 17), (1, 40)):
        with as_on_a_gpu(), torch.no_grad():
            _check(answer, rng, rows, vocabulary)


def _check(answer, rng, rows, vocabulary):
    noise = torch.Generator().manual_seed(rng.randrange(10**6))
    contents = [2 * torch.randn(rows, vocabulary, generator=noise) for _ in range(7)]
    temperatures = [0.7, 1.6, rng.uniform(2.1, 2.9), rng.uniform(0.3, 0.6), rng.uniform(1.1, 1.4)]
    temperatures += [temperatures[-1], 0.7]  # for other logits
    logits = contents[0].to(device)
    oracle(logits, 1.5)  # loads the kernels, so that who does not warm up is not punished
    watch = Watch(logits)
    try:
        with watch:
            run = answer(logits)
            if not callable(run):
                raise _wrong_kind(run, "capture_softmax has to return the function run(temperature)")
            if cuda.is_current_stream_capturing():
                raise RuntimeError("your capture was begun and has not ended: capture_end() is missing")
            watch.captured()
            squatters = [torch.full((1,), POISON, device=device) for _ in range(64)]
            found = [_call(run, watch, logits, *each) for each in zip(contents, temperatures, strict=True)]
            del squatters
    except RuntimeError as error:
        for words, key in REFUSALS.items():
            if words in str(error):
                raise Wrong(key, f"CUDA said: {str(error).splitlines()[0]}") from error
        raise
    judge(watch, contents, temperatures, found)


def _call(run, watch, logits, contents, temperature):
    """The probabilities of one run, on the host."""
    logits.copy_(contents)
    watch.start_run()
    returned = run(temperature)
    watch.end_run()
    if not isinstance(returned, torch.Tensor):
        raise _wrong_kind(returned, "run(temperature) has to return a tensor of probabilities")
    found, changed = returned.detach().cpu(), not torch.equal(logits.cpu(), contents)
    if changed:
        raise Wrong("changed-logits", f"After a run with temperature {temperature:.3g} they are others.")
    if found.shape != contents.shape:
        raise Wrong("wrong-value", f"It has the shape {tuple(found.shape)}, not {tuple(contents.shape)}.")
    if found.dtype.itemsize < contents.dtype.itemsize or not found.is_floating_point():
        raise Wrong("wrong-type", f"run gives {found.dtype}, and the logits are {contents.dtype}.")
    returned.detach().fill_(-1)  # a run that does not write its output is found out by this
    return found


def _wrong_kind(value, wanted):
    if value is None:
        return Wrong("returned-nothing", wanted + ".")
    return Wrong("wrong-type", f"{wanted}; yours returns a {type(value).__name__}.")
