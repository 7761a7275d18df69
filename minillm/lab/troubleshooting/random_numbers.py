"""Random numbers under capture and replay."""

from .entry import GENERATOR_CPP, Entry

REGISTER = "https://docs.pytorch.org/docs/stable/generated/torch.cuda.CUDAGraph.html"

ENTRIES = (
    Entry(
        name="another seed during a capture",
        says=("set_current_seed can be called during stream capture only if new seed is the same",),
        cause="torch.manual_seed() with another seed inside the capture. A graph does not hold a seed: each "
        "replay takes the generator's current seed and offset.",
        cure="Seed before the capture, or between replays, where it is honoured.",
        cell="02 rng",
        source=GENERATOR_CPP,
    ),
    Entry(
        name="a generator that the graph does not know",
        says=("Attempt to increase offset for a CUDA generator not in capture mode",),
        cause="A torch.Generator of your own drew numbers inside the capture. Only the default generator is "
        "registered by itself.",
        cure="g.register_generator_state(generator) before the capture.",
        cell="02 rng",
        source=REGISTER,
    ),
    Entry(
        name="a generator made during a capture",
        says=("Cannot construct a new CUDAGeneratorImpl",),
        cause="torch.Generator(device='cuda') inside the capture.",
        cure="Make it before the capture and register it: g.register_generator_state(generator).",
        cell="02 rng",
        source=GENERATOR_CPP,
    ),
    Entry(
        name="random numbers after a capture that failed",
        says=("Offset increment outside graph capture encountered unexpectedly",),
        cause="A capture failed earlier in this process, with random numbers in it or without. torch's "
        "generator still believes that it is being captured; a new seed does not change that.",
        cure="graphs.recover(), which makes a capture that succeeds, or a restart of the kernel. Then repair "
        "the capture that failed.",
        cell="02 rng",
        source=GENERATOR_CPP,
        consequence=True,
    ),
)
