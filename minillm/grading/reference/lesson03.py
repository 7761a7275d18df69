# ruff: noqa: E402, F811, I001
"""Reference solutions of lesson 03. Generated, do not edit: `python -m minillm build` makes them."""


# --- exercise 3.1 ---
def feed(graph, static_input, static_output, batches):
    """A list with the result [B, ...] for each of `batches`, tensors of static_input's shape [B, D]."""
    results = []
    for batch in batches:
        if batch.shape != static_input.shape:  # copy_ would broadcast it
            raise ValueError(f"batch is {list(batch.shape)}; expected {list(static_input.shape)}")
        static_input.copy_(batch)
        graph.replay()
        results.append(static_output.clone())  # the next replay overwrites static_output
    return results


# --- exercise 3.2 ---
from minillm.inputs import BUFFERS


def load(static, batch):
    """Copy the DecodeInputs `batch` into the larger `static`, in place; the rest of it becomes padding."""
    rows, columns = batch.block_tables.shape
    for name, buffer in BUFFERS.items():
        target, source = getattr(static, name), getattr(batch, name)
        target.fill_(buffer.padding)
        if name == "block_tables":
            target[:rows, :columns].copy_(source)
        else:
            target[:rows].copy_(source)


# --- exercise 3.3 ---
import torch


def collect_logits(replay, logits, steps):
    """The logits of `steps` replays: [steps, B, V], on the device of `logits` [B, V] and in its dtype."""
    kept = []
    for _ in range(steps):
        replay()
        kept.append(logits.clone())  # on the device: a copy to the host would wait
    return torch.stack(kept)


# --- exercise 3.4 ---
import torch

from minillm.graphs import cuda, device, warm_up


def capture_softmax(logits):
    """Capture softmax(logits / temperature) once; run(temperature) -> probabilities, [B, vocab] as logits."""
    temperature = torch.ones((), device=device)  # the graph reads this address at every replay
    warm_up(lambda: (logits / temperature).softmax(-1))
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        probabilities = (logits / temperature).softmax(-1)

    def run(value):
        temperature.fill_(value)  # a kernel launch: nobody waits
        graph.replay()
        return probabilities

    return run


# --- exercise 3.5 ---
import torch


def decode_until_done(step, tokens, end_token, max_steps, check_every):
    """Call step() until each row of `tokens` [B] has shown end_token; each row's tokens, with its end."""
    finished, history = torch.zeros_like(tokens, dtype=torch.bool), []
    for number in range(1, max_steps + 1):
        step()
        finished |= tokens == end_token  # stays on the device
        history.append(tokens.clone())  # the next step overwrites tokens
        if number % check_every == 0 and bool(finished.all()):  # the only wait
            break
    rows = torch.stack(history, dim=1).tolist()
    return [row[: row.index(end_token) + 1] if end_token in row else row for row in rows]


# --- exercise 3.6 ---
def make_guard(tensors):
    """check(current) raises RuntimeError with the name of every tensor that is not where `tensors` has it."""

    def place(tensor):
        return tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype

    captured = {name: (tensor, place(tensor)) for name, tensor in tensors.items()}  # holds the tensors, too

    def check(current):
        moved = [
            name
            for name, (_, before) in captured.items()
            if name not in current or place(current[name]) != before
        ]
        if moved:
            raise RuntimeError(
                f"{', '.join(moved)}: not as at capture; copy_ into the old tensors, or capture again"
            )

    return check
