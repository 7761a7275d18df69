"""Which refusal of CUDA or PyTorch an exception comes from, and where in the learner's code."""

from minillm.grading.frames import where
from minillm.grading.registry import Wrong

# Words of the message -> what was refused. The emulator says the same words.
REFUSALS = {
    "operation not permitted when stream is capturing": "wait",
    "previous error during capture": "wait",  # from the end of the `with`; the first one is its context
    "Cannot copy between CPU and CUDA tensors during CUDA graph capture": "host copy",
    "must be captured on a non-default stream": "default stream",
    "replay without a preceding successful capture": "early replay",
    "Cannot prepare for replay during capturing stage": "early replay",
}


def name_refusal(error: BaseException, keys: dict[str, str]) -> None:
    """Raise Wrong(keys[refusal]) if `error`, or one that it followed, is such a refusal; else do nothing.

    The earliest one counts: after a refusal, the end of the capture raises another error.
    """
    if isinstance(error, Wrong):
        return
    found = None
    while error is not None:
        for words, refusal in REFUSALS.items():
            if words in str(error):
                found = refusal, error
        error = error.__cause__ or error.__context__
    if found and found[0] in keys:
        said = str(found[1]).strip().splitlines()[0]
        place = where(found[1])
        raise Wrong(keys[found[0]], f"The refusal: {said}" + (f" At {place}" if place else "")) from found[1]
