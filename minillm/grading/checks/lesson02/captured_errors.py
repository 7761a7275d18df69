"""What went wrong in a capture, told by CUDA's own words: the same on both backends."""

from minillm.grading.registry import Wrong

SYNCHRONISED = (  # the errors 900 and 907 of the CUDA runtime, and 901, which follows them
    "operation not permitted when stream is capturing",
    "operation not permitted on an event last recorded in a capturing stream",
    "operation failed due to a previous error during capture",
)


def first_of(error: BaseException) -> BaseException:
    """What was raised first. The end of a broken capture raises again and hides what broke it."""
    while error.__context__ is not None or error.__cause__ is not None:
        error = error.__cause__ or error.__context__
    return error


def refuse_as(error: Exception, words: dict[str, tuple[str, ...]], seen: str = "") -> None:
    """Raise Wrong with the mistake whose words CUDA used; else the first error, which is the answer's own.

    words: mistake -> pieces of the messages that it leads to.
    """
    first = first_of(error)
    said = (str(first).splitlines() or [""])[0]
    for key, pieces in words.items():
        if any(piece in said for piece in pieces):
            raise Wrong(key, f"{seen} The first error: {said}".strip()) from error
    raise first
