"""Exercise 2.3: rewrite a function so that a capture takes it, and a replay follows all of its inputs."""

import warnings

import torch

from minillm.grading.checks.lesson02.capture_and_replay import random_tensor
from minillm.grading.checks.lesson02.occupancy import poison, same
from minillm.grading.checks.lesson02.penalty_truth import FORMULAS, probabilities
from minillm.grading.checks.lesson02.refused import name_refusal
from minillm.grading.checks.lesson02.waits import WaitsFor
from minillm.grading.device_memory import as_on_a_gpu, on_device
from minillm.grading.registry import Wrong, exercise
from minillm.graphs import cuda, device, warm_up

ARGUMENTS = ("logits", "seen", "banned", "penalty")


def make_case(rng, batch: int, vocab: int) -> tuple[torch.Tensor, ...]:
    """The four arguments; of tokens that were seen, some have positive logits and some negative ones."""
    seen = [[rng.random() < 0.5 for _ in range(vocab)] for _ in range(batch)]
    banned = [token in rng.sample(range(vocab), 3) for token in range(vocab)]
    seen[0][:2], banned[0], banned[1], banned[2] = [True, True], False, False, True
    logits = random_tensor(rng, batch, vocab)
    logits[0, 0], logits[0, 1] = rng.uniform(1, 2), rng.uniform(-2, -1)
    penalty = torch.full((), rng.uniform(1.3, 2.5), device=device)
    return logits, torch.tensor(seen, device=device), torch.tensor(banned, device=device), penalty


@exercise(
    "2.3",
    answer="penalised_probabilities",
    arguments=ARGUMENTS,
    title="Make a function capturable",
    captures=True,
    hints=(
        "Five lines of the eager function make the CPU ask the device something, or send it something. "
        "Which ones need to know a value, or how many True there are?",
        "Do not take the chosen elements out, change them and put them back: compute both versions for all "
        "elements and let torch.where(mask, new, old) choose. The shape is then always [batch, vocab].",
        "logits / penalty works with a 0-dim tensor on the device, and reads it at every replay. No .item().",
        'A constant needs no tensor: scores.masked_fill(banned, float("-inf")) passes the number on to the '
        "kernel.",
    ),
    mistakes={
        "still-waits": "The CPU needs a value from the device here (`.item()`, `float()`, `if` on a tensor, "
        "a 0-dim tensor as fill value), and in a capture nothing has run that could give it.",
        "shape-from-data": "How large a tensor becomes depends on values (a boolean mask as index, nonzero, "
        "masked_select), so the CPU has to ask the device for it. Keep the full shape and choose with "
        "torch.where.",
        "host-copy": "Something is copied between host and device: torch.tensor(..., device=) makes a host "
        "tensor first, `.cpu()` and `.tolist()` bring one back, and a number written to one element "
        "(x[0] = 7.0) travels too. masked_fill and torch.where take a number as it is, and torch.full makes "
        "a tensor where it is needed.",
        "frozen-number": "The penalty was frozen: a Python number that was read before the capture is baked "
        "into the graph. Compute with the 0-dim tensor.",
        "frozen-mask": "What was computed from a mask before the capture is baked into the graph. Compute it "
        "from the arguments, at every call.",
        "changed-logits": "It wrote into its arguments. The logits are the model's output buffer; who reads "
        "them later finds yours.",
        "nan": "There is a nan in it: 0 * inf, inf - inf and 0 / 0 are nan. So no mask can be multiplied "
        "with inf, and a softmax by hand has to subtract each row's maximum first.",
        "negative-logits": "Negative logits were divided too, which makes seen tokens more likely. They are "
        "multiplied by the penalty.",
        "rewards": "Multiplied where it should be divided: tokens that were seen become more likely.",
        "not-banned": "Banned tokens still have a probability. A large negative number is not minus "
        "infinity: the others may be lower still.",
        "inverted-mask": "A mask is the wrong way round. torch.where(mask, a, b) takes a where the mask is "
        "True, and x.masked_fill(mask, value) writes the value there.",
        "not-penalised": "Tokens that were seen are not penalised at all.",
        "penalised-too-late": "The penalty is for the scores, before the softmax, and not for probabilities.",
        "softmax-over-batch": "The softmax runs over the batch; each row is a distribution over the "
        "vocabulary, so it is dim=-1.",
        "not-renormalised": "The ban came after the softmax, so the probabilities no longer add up to 1.",
        "banned-by-zero": "A logit of 0 is not a probability of 0: it takes minus infinity.",
        "all-penalised": "All tokens were penalised, not only those seen.",
    },
)
def check_capturable(answer, rng):
    for batch, vocab in ((3, 11), (2, 17)):
        with as_on_a_gpu():
            first, second = make_case(rng, batch, vocab), make_case(rng, batch, vocab)
            waits = WaitsFor()
            judge_eager(answer, first, waits)
            judge_replays(answer, first, second, waits)
            logits, seen, banned, _ = first
            low = logits - 120, seen, banned, torch.full((), 1.02, device=device)
            judge_eager(answer, low, waits)


def judge_eager(answer, case, waits) -> None:
    """Called as it is, without a graph."""
    given = tuple(tensor.clone() for tensor in case)
    with waits:
        value = answer(*given)
    right = probabilities(*case)
    if value is None:
        raise Wrong("returned-nothing")
    if not isinstance(value, torch.Tensor) or not on_device(value):
        raise Wrong("wrong-type", "It has to be a tensor on the device.")
    if changed := [n for n, a, b in zip(ARGUMENTS, given, case, strict=True) if not torch.equal(a, b)]:
        raise Wrong("changed-logits", f"After a call of it, {' and '.join(changed)} had changed.")
    if same(value, right):
        if (left := value[:, case[2]]).any():
            raise Wrong("not-banned", f"A banned token has the probability {float(left.max()):.2g}.")
        return
    if value.shape != right.shape or value.dtype != right.dtype:
        kinds = [f"{str(t.dtype).removeprefix('torch.')} {list(t.shape)}" for t in (value, right)]
        raise Wrong("wrong-value", f"You return {kinds[0]}; right is {kinds[1]}.")
    worst = int((value - right).abs().nan_to_num(9).argmax())
    numbers = [f"{float(t.flatten()[worst]):.4g}" for t in (value, right)]
    place = f"row {worst // value.shape[1]}, token {worst % value.shape[1]}"
    seen = f"Called eagerly: for {place} you give {numbers[0]}; right is {numbers[1]}."
    for key, formula in FORMULAS.items():
        if any(torch.allclose(value, wrong, 1e-4, 1e-5, equal_nan=True) for wrong in formula(*case)):
            raise Wrong(key, seen)
    if value.isnan().any():
        raise Wrong("nan", seen)
    if (value[:, case[2]] > 0.01).any():
        raise Wrong("not-banned", seen)
    raise Wrong("wrong-value", seen)


def judge_replays(answer, first, second, waits) -> None:
    """Captured on the first case, replayed with a new penalty, then with everything new."""
    static, graph = tuple(tensor.clone() for tensor in first), cuda.CUDAGraph()
    warm_up(lambda: answer(*static))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of an empty graph, at the end of a capture that failed
            with cuda.graph(graph):
                out = answer(*static)
    except Exception as error:
        waiting = "shape-from-data" if waits.first == "shape" else "still-waits"
        name_refusal(error, {"wait": waiting, "host copy": "host-copy"})
        raise
    logits, seen, banned, penalty = first
    for case in (first, (logits, seen, banned, second[3]), second, first):
        for tensor, new in zip(static, case, strict=True):
            tensor.copy_(new)
        poison(out)
        graph.replay()
        if same(out, probabilities(*case)):
            continue
        if same(out, probabilities(*case[:3], penalty)):
            raise Wrong("frozen-number", "A replay with another penalty gave the result of the old one.")
        raise Wrong("frozen-mask", "It is right when called, and at a replay with other values it is not.")
