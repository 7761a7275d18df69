"""Whether an answer can be called as its exercise asks."""

import inspect

from minillm.grading.registry import Exercise, Wrong, all_exercises


def refuse_uncallable(exercise: Exercise, answer) -> None:
    """Raise Wrong if `answer` is no function, is that of another exercise, or has another signature."""
    if not callable(answer):
        raise Wrong("not-a-function", f"You gave it a {type(answer).__name__}; {_check_call(exercise)}.")
    name = getattr(answer, "__name__", type(answer).__name__)
    for other in all_exercises() if name != exercise.answer else []:
        if other.answer == name:
            seen = f"{name} belongs to {other.id}; {exercise.id} asks for {exercise.answer}."
            raise Wrong("another-exercise", f"{seen} For this one, {_check_call(exercise)}.")
    if inspect.iscoroutinefunction(answer):
        raise Wrong("wrong-type", f"{name} returns a coroutine: remove `async` in front of its def.")
    try:
        signature = inspect.signature(answer)
    except (TypeError, ValueError):  # some functions written in C have none
        return
    keywords = [f"{key}={value!r}" for key, value in exercise.keywords.items()]
    wanted = f"{exercise.answer}({', '.join([*exercise.arguments, *keywords])})"
    try:
        signature.bind(*exercise.arguments)  # the keywords may be left out,
        signature.bind(*exercise.arguments, **exercise.keywords)  # and be given by name
    except TypeError:
        raise Wrong("wrong-signature", f"It calls {wanted}; yours is {name}{signature}.") from None
    for key, value in exercise.keywords.items():
        if key in signature.parameters and signature.parameters[key].default != value:
            seen = f"Your defaults differ from those asked for: {wanted}; yours is {name}{signature}."
            raise Wrong("wrong-signature", seen)


def _check_call(exercise: Exercise) -> str:
    return f'write check("{exercise.id}", {exercise.answer})'
