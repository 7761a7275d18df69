"""Exercise 2.6: dropout in a graph, whose replays differ and can be had again from a seed."""

import torch

from minillm.grading.checks.lesson02.captured_errors import SYNCHRONISED, refuse_as
from minillm.grading.checks.lesson02.seeded_dropout_memory import judge_draws, judge_memory
from minillm.grading.checks.lesson02.seeded_dropout_run import begin, inputs
from minillm.grading.device_memory import as_on_a_gpu
from minillm.grading.registry import Wrong, exercise

WORDS = {
    "seeded-in-capture": ("set_current_seed can be called during stream capture only if",),
    "unregistered": ("CUDA generator not in capture mode", "Cannot construct a new CUDAGeneratorImpl"),
    "host-copy": ("Cannot copy between CPU and CUDA tensors during CUDA graph capture",),
    "synchronised": SYNCHRONISED,
}


@exercise(
    "2.6",
    answer="seeded_dropout",
    arguments=("x", "p", "seed"),
    title="Dropout with a seed, replayed",
    hints=(
        "The random numbers have to be drawn inside the capture: then each replay draws anew. What is drawn "
        "outside is one more static input.",
        "Two generators will do. The default one is known to every graph. One of your own, "
        "torch.Generator(device), has to be registered before the capture: "
        "graph.register_generator_state(generator).",
        "A replay starts from the seed and offset that the generator has at that moment, and moves it on. So "
        "manual_seed between two replays is all that reseed has to do.",
        "A capture draws nothing, but your warm-up does: seed after it, or the first replays are not those "
        "that come after reseed(seed).",
    ),
    mistakes={
        "same-mask": "Every replay drops the same elements: the mask was drawn outside the capture, once, "
        "and the graph reads what it was then.",
        "drew-eagerly": "Random numbers are drawn outside the graph, by a launch of their own each time. "
        "Asked is a graph that draws them itself.",
        "reseeds-every-replay": "All replays from one seed are equal, as if the generator was set back each "
        "time. After reseed(seed) a replay has to go on where the one before it stopped.",
        "seed-ignored": "reseed(seed) does not bring the same masks back. The seed has to be set on the "
        "generator that the graph draws from, outside the capture, each time reseed is called. Without a "
        "GPU torch.cuda.manual_seed seeds nothing; torch.manual_seed seeds the default generators of both.",
        "seeded-too-early": "The first replays are not the ones that come after reseed(seed): something was "
        "drawn in between, by a warm-up perhaps. A capture draws nothing, so seed after both.",
        "one-seed": "Two seeds give the same masks: reseed does not use the seed that it is given.",
        "recaptured": "reseed captures a new graph. A replay uses the seed that its generator has at that "
        "moment, so one graph is enough for all seeds.",
        "seeded-in-capture": "The seed was set inside the capture, which is refused: a capture records "
        "kernels, and a seed is none. Set it outside.",
        "unregistered": "The capture does not know your generator: make it before the capture, and call "
        "graph.register_generator_state(generator), also before.",
        "synchronised": "Something in the capture makes the CPU wait, which is refused. The mask can be "
        "applied without looking at it: multiply by it.",
        "stale-input": "The output does not follow x: the graph reads a copy that was made outside of it.",
        "overwrote-x": "x is changed by a replay. It is the static input, and its owner may want to use it.",
        "dropped-tensor": "A tensor that the graph uses is gone: no name of yours holds it, so its memory "
        "goes to whoever asks next. Keep mask and constants as long as the graph.",
        "work-outside": "A part of the dropout runs outside of the graph, by launches of its own each time.",
        "seeds-overlap": "After reseed(seed + 1) come the masks of reseed(seed), one step on: a seed plus a "
        "counter. Set the seed once and let the generator go on.",
        "host-copy": "Random numbers from the CPU cannot come into the capture, and would be the same at "
        "every replay. Draw them on the device.",
        "ignores-p": "p is not used: F.dropout drops half of the elements if it is not told otherwise.",
        "nothing-dropped": "Nothing is dropped: dropout works with training=True only.",
        "keeps-p": "An element is kept with probability p; it has to be dropped with probability p.",
        "not-scaled": "What is kept has to be divided by 1 - p, so that the mean of the output is that of x.",
        "wrong-scale": "What is kept is scaled by another factor than 1 / (1 - p).",
        "not-elementwise": "Whole rows or columns are dropped together; each element needs its own draw.",
    },
    captures=True,
)
def check_seeded_dropout(answer, rng):
    for p in (rng.uniform(0.15, 0.35), rng.uniform(0.6, 0.8)):
        seed, other = rng.sample(range(1, 10**6, 3), 2)
        _check(answer, rng, p, seed, other)


def _check(answer, rng, p, seed, other):
    with as_on_a_gpu():
        first, second = inputs(rng), inputs(rng)
        try:
            run = begin(answer, first, p, seed)
        except RuntimeError as error:
            refuse_as(error, WORDS)
        run.replays("first", first, 2)
        run.replays("new input", second, 1)
        parts = {"again": seed, "other": other, "once more": seed, "neighbour": seed + 1, "refilled": seed}
        for part, of in parts.items():
            if part == "refilled":
                run.refill()
            run.seed(of)
            run.replays(part, second, 2)
        judge_memory(run)
        judge_draws(run)
        _judge_values(run)
        _judge_masks(run, seed, other)


def _judge_values(run):
    for part in ("first", "new input"):
        x, out = run.outs[part][-1]
        kept = out != 0
        dropped = 1 - kept.double().mean().item()
        seen = f"With p={run.p:.3f}, {dropped:.1%} of the elements are 0"
        ratios = (out / x)[kept].double()
        if dropped == 0 and bool(((ratios - ratios[0]).abs() < 1e-3).all()):
            raise Wrong("nothing-dropped", f"{seen}.")
        if dropped == 1:
            raise Wrong("wrong-value", f"{seen}.")
        if not bool(((ratios - ratios.median()).abs() < 1e-3 * ratios.median().abs()).all()):
            key = "stale-input" if part == "new input" else "wrong-value"
            raise Wrong(key, f"{seen}, and the others are not x times one factor.")
        _judge_fraction(kept, dropped, run.p, seen)
        factor, wanted = ratios.median().item(), 1 / (1 - run.p)
        if abs(factor / wanted - 1) > 1e-3:
            key = "not-scaled" if abs(factor - 1) < 1e-3 else "wrong-scale"
            raise Wrong(key, f"{seen}; the others are x times {factor:.4g}, and 1 / (1 - p) is {wanted:.4g}.")


def _judge_fraction(kept, dropped, p, seen):
    if any(bool((kept == kept.select(dim, 0).unsqueeze(dim)).all()) for dim in (0, 1)):
        raise Wrong("not-elementwise", f"{seen}.")
    near = 6 * (p * (1 - p) / kept.numel()) ** 0.5  # six standard deviations
    if abs(dropped - p) > near:
        near_half = 6 * 0.5 / kept.numel() ** 0.5
        key = "keeps-p" if abs(dropped - (1 - p)) <= near else "wrong-value"
        raise Wrong("ignores-p" if abs(dropped - 0.5) <= near_half else key, f"{seen}.")


def _judge_masks(run, seed, other):
    first, again, others, more = map(run.masks, ("first", "again", "other", "once more"))

    def same(left, right):
        return all(torch.equal(a, b) for a, b in zip(left, right, strict=True))

    if same(first[:1], first[1:]):
        if same(first[:1], others[:1]):
            raise Wrong("same-mask", f"So do the replays after reseed({other}).")
        raise Wrong("reseeds-every-replay", f"After reseed({seed}) two replays gave the same mask.")
    if not same(again, more):
        raise Wrong("seed-ignored", f"Two replays after reseed({seed}), twice: the masks differ.")
    if same(again, others):
        raise Wrong("one-seed", f"reseed({seed}) and reseed({other}) were followed by the same masks.")
    if same(run.masks("neighbour")[:1], again[1:]):
        raise Wrong("seeds-overlap", f"With reseed({seed}) and reseed({seed + 1}).")
    if same(again[:1], again[1:]):
        raise Wrong("reseeds-every-replay", f"After reseed({seed}) two replays gave the same mask.")
    if not same(first, again):
        raise Wrong("seeded-too-early", f"The masks differ between seed={seed} and a later reseed({seed}).")
