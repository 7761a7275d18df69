"""The shapes of every model in this course, in one table, each with its source.

Only the reciter is ever trained (``load_reciter`` gives it with its weights). All others have random weights,
as the speed of a decode step does not depend on their values. The vocabularies are the real ones,
so that figures compare with other people's. Two things are left out because they change values and not
speed: Llama 3.2's scaling of the RoPE frequencies, and contexts above 8192 tokens.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch

LONGEST_CONTEXT = 8192  # tokens; the course's RoPE tables end here, also where a model was published for more


@dataclass(frozen=True)
class ModelConfig:
    """A Llama-like decoder: RMSNorm, RoPE, grouped-query attention, SwiGLU, no biases.

    ``hidden``, ``ffn`` and ``head_dim`` are widths in elements, ``max_context`` is in tokens, ``tied_head``
    says that embedding and output head are one tensor, ``source`` is where the numbers come from.
    Raises ValueError when ``heads`` is not a multiple of ``kv_heads``, ``head_dim`` is odd, a size is below
    1 or ``max_context`` is above 8192.
    """

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    tied_head: bool
    max_context: int
    rope_theta: float
    norm_eps: float
    source: str

    def __post_init__(self):
        for field in fields(self):
            if field.type == "int" and getattr(self, field.name) < 1:
                raise ValueError(f"{field.name} is {getattr(self, field.name)}; expected 1 or more")
        if self.heads % self.kv_heads:
            raise ValueError(f"heads is {self.heads}; expected a multiple of kv_heads, {self.kv_heads}")
        if self.head_dim % 2:
            raise ValueError(f"head_dim is {self.head_dim}; RoPE turns pairs, so it must be even")
        if self.max_context > LONGEST_CONTEXT:
            raise ValueError(f"max_context is {self.max_context}; expected {LONGEST_CONTEXT} or less")

    @staticmethod
    def preset(name: str) -> ModelConfig:
        """The preset of that name; ValueError lists the names there are."""
        if name not in PRESETS:
            raise ValueError(f"no preset is called {name!r}; choose one of {', '.join(PRESETS)}")
        return PRESETS[name]

    def weight_count(self, include_embedding: bool = True) -> int:
        """Number of weights: with the embedding, all that are stored; without, all that a decode step reads.

        A step reads the whole head but only a few rows of the embedding, so the head counts once in both,
        also when it is tied. (A tied table is stored once: then the two numbers are equal.)
        """
        qkv = self.hidden * (self.heads + 2 * self.kv_heads) * self.head_dim
        output = self.heads * self.head_dim * self.hidden
        mlp = 3 * self.hidden * self.ffn
        table = self.vocab * self.hidden
        layers = self.layers * (qkv + output + mlp + 2 * self.hidden)
        tables = 2 if include_embedding and not self.tied_head else 1
        return layers + self.hidden + tables * table

    def weight_bytes(self, dtype: torch.dtype) -> int:
        """Bytes that the stored weights take in ``dtype``, the embedding included."""
        return self.weight_count(include_embedding=True) * dtype.itemsize

    def kv_bytes_per_token(self, dtype: torch.dtype) -> int:
        """Bytes of KV cache that one token of one sequence takes: a key and a value in every layer."""
        return 2 * self.layers * self.kv_heads * self.head_dim * dtype.itemsize


def source_of(model: str | None) -> str:
    """Where Meta publishes that shape (the page asks for a login; open copies of the file say the same)."""
    address = f"https://huggingface.co/meta-llama/{model}/blob/main/config.json"
    return address if model else "made for this course"


# From small to large. The 1B is published for 131,072 tokens with scaled RoPE; 8192 is its length before
# scaling. The rank of the 70B holds an eighth of 64 query heads, 8 KV heads, ffn 28,672 and vocab 128,256.
# fmt: off
SHAPES = (
    # name, layers, hidden, heads, kv_heads, head_dim, ffn, vocab, tied_head, max_context, rope_theta, model
    ("reciter",              4,  128,  4,  2,  32,   384,     96, True,  1024, 1e4, None),
    ("tiny",                 8,  512,  8,  4,  64,  1536,  32000, True,  8192, 1e4, None),
    ("llama-1b",            16, 2048, 32,  8,  64,  8192, 128256, True,  8192, 5e5, "Llama-3.2-1B"),
    ("llama2-7b",           32, 4096, 32, 32, 128, 11008,  32000, False, 4096, 1e4, "Llama-2-7b-hf"),
    ("llama3-8b",           32, 4096, 32,  8, 128, 14336, 128256, False, 8192, 5e5, "Meta-Llama-3-8B"),
    ("llama3-70b-tp8-rank", 80, 8192,  8,  1, 128,  3584,  16032, False, 8192, 5e5, "Meta-Llama-3-70B"),
    ("llama2-13b",          40, 5120, 40, 40, 128, 13824,  32000, False, 4096, 1e4, "Llama-2-13b-hf"),
)
# fmt: on
PRESETS = {row[0]: ModelConfig(*row[:-1], norm_eps=1e-5, source=source_of(row[-1])) for row in SHAPES}


def default_dtype(device: str | torch.device) -> torch.dtype:
    """bfloat16 on a GPU of compute capability 8.0 or more, float16 on an older one, float32 elsewhere.

    The capability decides, because ``torch.cuda.is_bf16_supported()`` is also true where bfloat16 is only
    emulated (a T4, for one), and emulated bfloat16 is slow.
    """
    device = torch.device(device)
    if device.type != "cuda":
        return torch.float32
    return torch.bfloat16 if torch.cuda.get_device_capability(device) >= (8, 0) else torch.float16


def default_device() -> torch.device:
    """The device of the course's backend: the GPU where there is one, else the CPU."""
    from .graphs import device

    return torch.device(device)
