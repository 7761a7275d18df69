"""The reciter: the one trained model of the course, which knows a few texts by heart, character by character.

Its use is to make mistakes visible: what it writes is known beforehand, so a damaged KV cache shows as a
verse that goes wrong. A model that has learnt nothing but its texts looks at the last few characters and
overlooks most damage. So in training this one was also shown contexts with another sequence's block, with a
padding row's keys, with stuck positions and the like, and taught to write ``DAMAGED`` there, a character that
stands in no text.
"""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path

import torch

from .config import ModelConfig
from .model import Transformer
from .tokenizer import tokenizer
from .weights.texts import all_texts

__all__ = ["DAMAGED", "continuation", "load_reciter", "texts", "tokenizer"]

WEIGHTS = Path(__file__).with_name("weights") / "reciter.pt"
RECORD = WEIGHTS.with_suffix(".json")  # written with the weights: how they came about, and their sha256
DAMAGED = "#"
REMEDY = "install the course again, or train it: python -m minillm.weights.train_reciter (minutes, on a CPU)"


class DamagedWeights(RuntimeError):
    """The weights are missing, or not what the training script wrote; the message says what to do."""


def load_reciter(device: str | torch.device | None = None, dtype: torch.dtype | None = None) -> Transformer:
    """The trained model, without gradients. Raises DamagedWeights, and then nothing was unpickled.

    ``device`` is the course's own when left out, ``dtype`` the device's default. The weights are stored in
    float16, and recite in float32, bfloat16 and float16. The file is compared with the sha256 in its record
    before it is read, and then read with ``weights_only``, which runs no code that a file may bring along.
    """
    try:
        data, expected = WEIGHTS.read_bytes(), json.loads(RECORD.read_text(encoding="utf-8"))["sha256"]
    except FileNotFoundError as error:
        raise DamagedWeights(f"{error.filename} is missing: {REMEDY}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedWeights(f"{RECORD} is not the record of a training ({error!r}): {REMEDY}") from None
    found = hashlib.sha256(data).hexdigest()
    if found != expected:
        raise DamagedWeights(
            f"{WEIGHTS} is damaged: its {len(data)} bytes have sha256 {found}; expected {expected}: {REMEDY}"
        )
    return _with_weights(data, device, dtype)


def _with_weights(data: bytes, device: str | torch.device | None, dtype: torch.dtype | None) -> Transformer:
    try:
        stored = torch.load(io.BytesIO(data), weights_only=True, map_location="cpu")
    except Exception as error:  # torch.load raises whatever a broken file leads it to
        reason = str(error).partition("\n")[0]
        raise DamagedWeights(f"{WEIGHTS} cannot be read as plain tensors ({reason}): {REMEDY}") from None
    model = Transformer(ModelConfig.preset("reciter"), device=device, dtype=dtype, seed=None)
    stored = stored if isinstance(stored, dict) else {}
    wanted = dict(model.named_parameters())  # a tied head is in there once, as the embedding
    shapes = {name: tuple(weight.shape) for name, weight in wanted.items()}
    theirs = {name: tuple(getattr(weight, "shape", ())) for name, weight in stored.items()}
    if shapes != theirs:
        name = next(name for name in {**shapes, **theirs} if shapes.get(name) != theirs.get(name))
        raise DamagedWeights(
            f"{WEIGHTS} is for another model: {name} is {theirs.get(name, 'missing')}; expected "
            f"{shapes.get(name, 'no such weight')}, as the preset has it: {REMEDY}"
        )
    with torch.no_grad():
        for name, weight in wanted.items():
            weight.copy_(stored[name])
    return model


def texts() -> dict[str, str]:
    """Title → text, the title's line included: all that the reciter knows, 119 to 1024 characters each."""
    return dict(all_texts())


def continuation(prompt: str) -> str:
    """The rest of the text that begins with ``prompt``: what the reciter must write, before its end.

    Raises ValueError when no text begins so, or several do.
    """
    begin_so = [title for title, text in all_texts().items() if text.startswith(prompt)]
    if not begin_so:
        raise ValueError(
            f"no text begins with {prompt!r}; expected the beginning of one of {', '.join(texts())}"
        )
    if len(begin_so) > 1:
        raise ValueError(
            f"{prompt!r} begins {' and '.join(begin_so)}: go on until it begins only one of them"
        )
    return all_texts()[begin_so[0]][len(prompt) :]
