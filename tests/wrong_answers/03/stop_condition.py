"""Answers to 3.5."""

import itertools
from math import ceil

import numpy as np
import torch

from minillm.grading.corpus import right, wrong
from minillm.graphs import cuda, device


def cut(rows, end_token):
    return [row[: row.index(end_token) + 1] if end_token in row else row for row in rows]


def by_row(history):
    return torch.stack(history, 1).tolist()


@right("3.5")
def in_blocks_with_a_buffer(step, tokens, end_token, max_steps, check_every):
    """History in one buffer on the device; the end is looked for in it."""
    history = torch.full((max_steps, len(tokens)), -1, dtype=tokens.dtype, device=tokens.device)
    done = 0
    while done < max_steps:
        for _ in range(min(check_every, max_steps - done)):
            step()
            history[done].copy_(tokens)
            done += 1
        if (history[:done] == end_token).any(0).all().item():
            break
    rows = history[:done].cpu().numpy().T
    is_end = rows == end_token
    last = np.where(is_end.any(1), is_end.argmax(1), done - 1)
    return [row[: n + 1].tolist() for row, n in zip(rows, last, strict=True)]


@right("3.5")
def counts_the_rows_that_are_left(step, tokens, end_token, max_steps, check_every):
    """Keeps the first end of each row, and checks before a step."""
    lengths = torch.full_like(tokens, max_steps)
    kept = []
    for number in range(max_steps):
        if number and number % check_every == 0 and int((lengths == max_steps).sum()) == 0:
            break
        step()
        lengths = torch.where((tokens == end_token) & (lengths == max_steps), number + 1, lengths)
        kept.append(tokens.clone())
    table = torch.stack([*kept, torch.zeros_like(tokens)]).cpu()
    return [table[:-1, row][:length].tolist() for row, length in enumerate(lengths.tolist())]


@right("3.5")
def pinned_flag_and_event(step, tokens, end_token, max_steps, check_every):
    finished = torch.zeros(tokens.shape, dtype=torch.bool, device=device)
    flag, copied, history = torch.zeros((), dtype=torch.bool).pin_memory(), cuda.Event(), []
    for number in itertools.count(1):
        step()
        history += [tokens + 0]
        finished.logical_or_(tokens.eq(end_token))
        if number % check_every == 0:
            flag.copy_(finished.all(), non_blocking=True)
            copied.record()
            copied.synchronize()
        if flag.item() or number == max_steps:
            return cut(by_row(history), end_token)


@right("3.5")
def writes_the_end_token_itself(step, tokens, end_token, max_steps, check_every):
    """Rows that have ended are overwritten with the end token, on the device; tuples come back."""
    finished, history = torch.zeros_like(tokens, dtype=torch.bool), []
    for number in range(max_steps):
        step()
        tokens.masked_fill_(finished, end_token)
        finished = finished | (tokens == end_token)
        history.append(tokens.clone())
        if number % check_every == check_every - 1:
            cuda.synchronize()
            if finished.all():
                break
    return tuple(tuple(row) for row in cut(by_row(history), end_token))


def loop(check, note=torch.clone, finish=cut):
    """An answer that stops when `check(number, tokens, end_token, check_every, state)` says so."""

    def decode_until_done(step, tokens, end_token, max_steps, check_every):
        state = {"finished": torch.zeros_like(tokens, dtype=torch.bool)}
        history = []
        for number in range(1, max_steps + 1):
            step()
            history.append(note(tokens))
            if check(number, tokens, end_token, check_every, state):
                break
        return finish(by_row(history), end_token)

    return decode_until_done


def named(function, name):
    function.__name__ = name
    return function


def add(key, name, *parts, **more):
    wrong("3.5", key)(named(loop(*parts, **more), name))


def accumulated(number, tokens, end_token, check_every, state):
    """As it should be."""
    state["finished"] |= tokens == end_token
    return number % check_every == 0 and bool(state["finished"].all())


def asks_each_step(number, tokens, end_token, check_every, state):
    state["finished"] |= tokens == end_token
    return state["finished"].all().item()


def compares_with_equal(number, tokens, end_token, check_every, state):
    state["finished"] |= tokens == end_token
    return torch.equal(state["finished"], torch.ones_like(state["finished"]))


def synchronizes_each_step(number, tokens, end_token, check_every, state):
    cuda.synchronize()
    return accumulated(number, tokens, end_token, check_every, state)


def event_each_step(number, tokens, end_token, check_every, state):
    event = cuda.Event()
    event.record()
    event.synchronize()
    return accumulated(number, tokens, end_token, check_every, state)


def nonzero_each_step(number, tokens, end_token, check_every, state):
    state["finished"] |= tokens == end_token
    return len((~state["finished"]).nonzero()) == 0


def a_mask_as_index_each_step(number, tokens, end_token, check_every, state):
    state["finished"] |= tokens == end_token
    return tokens[~state["finished"]].numel() == 0


def in_python_each_step(number, tokens, end_token, check_every, state):
    rows = state.setdefault("rows", set())
    rows.update(row for row, token in enumerate(tokens.tolist()) if token == end_token)
    return len(rows) == len(tokens)


def copies_to_numpy_each_step(number, tokens, end_token, check_every, state):
    ended = tokens.cpu().numpy() == end_token
    state["host"] = state.get("host", False) | ended
    return number % check_every == 0 and state["host"].all()


for _function in (
    asks_each_step,
    compares_with_equal,
    synchronizes_each_step,
    event_each_step,
    nonzero_each_step,
    a_mask_as_index_each_step,
    in_python_each_step,
    copies_to_numpy_each_step,
):
    add("waits-each-step", _function.__name__, _function)


@wrong("3.5", "waits-each-step")
def lists_each_step(step, tokens, end_token, max_steps, check_every):
    rows = [[] for _ in tokens]
    for number in range(max_steps):
        step()
        for row, token in zip(rows, tokens.tolist(), strict=True):
            if end_token not in row:
                row.append(token)
        if (number + 1) % check_every == 0 and all(end_token in row for row in rows):
            break
    return rows


@wrong("3.5", "waits-each-step")
def prints_each_step(step, tokens, end_token, max_steps, check_every):
    def check(number, tokens, *more):
        f"{tokens}"
        return accumulated(number, tokens, *more)

    return loop(check)(step, tokens, end_token, max_steps, check_every)


add("never-stops", "looks_at_nothing", lambda *_: False)


@wrong("3.5", "never-stops")
def asks_once_before_the_loop(step, tokens, end_token, max_steps, check_every):
    finished, history = torch.zeros_like(tokens, dtype=torch.bool), []
    all_done = finished.all()  # a value, and not a view of what comes
    for number in range(1, max_steps + 1):
        step()
        history.append(tokens.clone())
        finished |= tokens == end_token
        if number % check_every == 0 and all_done:
            break
    return cut(by_row(history), end_token)


@wrong("3.5", "never-stops")
def discards_the_or(step, tokens, end_token, max_steps, check_every):
    def check(number, tokens, end_token, check_every, state):
        state["finished"].logical_or(tokens == end_token)
        return number % check_every == 0 and bool(state["finished"].all())

    return loop(check)(step, tokens, end_token, max_steps, check_every)


def any_row(number, tokens, end_token, check_every, state):
    state["finished"] |= tokens == end_token
    return number % check_every == 0 and bool(state["finished"].any())


add("stops-at-first", "stops_with_the_first_row", any_row)


@wrong("3.5", "prompt-ended")
def finished_from_the_prompt(step, tokens, end_token, max_steps, check_every):
    finished, history = tokens == end_token, []
    for number in range(1, max_steps + 1):
        step()
        finished |= tokens == end_token
        history.append(tokens.clone())
        if number % check_every == 0 and bool(finished.all()):
            break
    return cut(by_row(history), end_token)


def most_rows(number, tokens, end_token, check_every, state):
    state["finished"] |= tokens == end_token
    left = (~state["finished"]).sum()
    return number % check_every == 0 and bool(left <= len(tokens) // 4)


add("stops-too-early", "leaves_the_last_row_alone", most_rows)


def same_step(number, tokens, end_token, check_every, state):
    return number % check_every == 0 and bool((tokens == end_token).all())


def overwrites_finished(number, tokens, end_token, check_every, state):
    state["finished"] = tokens == end_token
    return number % check_every == 0 and state["finished"].all().item()


add("not-accumulated", "all_in_one_step", same_step)
add("not-accumulated", "finished_of_this_step", overwrites_finished)


def only_at_checks(number, tokens, end_token, check_every, state):
    if number % check_every:
        return False
    state["finished"] |= tokens == end_token
    return bool(state["finished"].all())


add("looked-only-at-checks", "accumulates_only_at_checks", only_at_checks)


def one_check_late(number, tokens, end_token, check_every, state):
    state["finished"] |= tokens == end_token
    if number % check_every:
        return False
    before, state["flag"] = state.get("flag"), state["finished"].all()
    return before is not None and bool(before)


add("late-stop", "acts_on_the_check_before", one_check_late)


def every_twice(number, tokens, end_token, check_every, state):
    return accumulated(number, tokens, end_token, 2 * check_every, state)


add("late-stop", "checks_half_as_often", every_twice)


@wrong("3.5", "beyond-max")
def whole_blocks(step, tokens, end_token, max_steps, check_every):
    finished, history = torch.zeros_like(tokens, dtype=torch.bool), []
    for _ in range(ceil(max_steps / check_every)):
        for _ in range(check_every):
            step()
            finished |= tokens == end_token
            history.append(tokens.clone())
        if bool(finished.all()):
            break
    return cut(by_row(history), end_token)


@wrong("3.5", "beyond-max")
def until_done_and_no_further(step, tokens, end_token, max_steps, check_every):
    finished, history = torch.zeros_like(tokens, dtype=torch.bool), []
    while True:
        step()
        finished |= tokens == end_token
        history.append(tokens.clone())
        if len(history) % check_every == 0 and finished.all():
            return cut(by_row(history), end_token)


add("keeps-after-end", "whole_rows", accumulated, finish=lambda rows, end: rows)


def pads(rows, end):
    return [row + [end] * (max(map(len, rows)) - len(row)) for row in cut(rows, end)]


add("keeps-after-end", "pads_to_the_longest", accumulated, finish=pads)


def last_end(rows, end):
    return [row[: len(row) - row[::-1].index(end)] if end in row else row for row in rows]


def strip(rows, end):
    return [row[: row.index(end)] if end in row else row for row in rows]


add("lost-end", "drops_the_end_token", accumulated, finish=strip)
add(
    "lost-end",
    "takes_while",
    accumulated,
    finish=lambda rows, end: [list(itertools.takewhile(end.__ne__, row)) for row in rows],
)


@wrong("3.5", "prompt-token")
def notes_before_the_step(step, tokens, end_token, max_steps, check_every):
    finished, history = torch.zeros_like(tokens, dtype=torch.bool), []
    for number in range(1, max_steps + 1):
        history.append(tokens.clone())
        step()
        finished |= tokens == end_token
        if number % check_every == 0 and bool(finished.all()):
            break
    return cut(by_row(history), end_token)


@wrong("3.5", "prompt-token")
def begins_with_the_prompt(step, tokens, end_token, max_steps, check_every):
    finished, history = torch.zeros_like(tokens, dtype=torch.bool), [tokens.clone()]
    for number in range(1, max_steps + 1):
        step()
        finished |= tokens == end_token
        history.append(tokens.clone())
        if number % check_every == 0 and bool(finished.all()):
            break
    return cut(by_row(history), end_token)


add("aliased-tokens", "keeps_the_buffer", accumulated, note=lambda tokens: tokens)
add("aliased-tokens", "keeps_a_view", accumulated, note=lambda tokens: tokens.detach())
add(
    "not-by-row",
    "a_list_for_each_step",
    accumulated,
    finish=lambda rows, end: [list(step) for step in zip(*rows, strict=True)],
)


@wrong("3.5", "read-too-early")
def pinned_flag_without_a_wait(step, tokens, end_token, max_steps, check_every):
    finished, history = torch.zeros_like(tokens, dtype=torch.bool), []
    flag = torch.zeros((), dtype=torch.bool, pin_memory=True)
    for number in range(1, max_steps + 1):
        step()
        finished |= tokens == end_token
        history.append(tokens.clone())
        if number % check_every == 0:
            flag.copy_(finished.all(), non_blocking=True)
            if flag:
                break
    return cut(by_row(history), end_token)


@wrong("3.5", "read-too-early")
def to_the_host_without_a_wait(step, tokens, end_token, max_steps, check_every):
    finished, history = torch.zeros_like(tokens, dtype=torch.bool), []
    for number in range(1, max_steps + 1):
        step()
        finished |= tokens == end_token
        history.append(tokens.clone())
        if number % check_every == 0 and finished.all().to("cpu", non_blocking=True).item():
            break
    return cut(by_row(history), end_token)


@wrong("3.5", "wrong-length")
def rows_that_ended(step, tokens, end_token, max_steps, check_every):
    rows = loop(accumulated)(step, tokens, end_token, max_steps, check_every)
    return [row for row in rows if row[-1] == end_token]


@wrong("3.5", "wrong-type")
def how_many_steps(step, tokens, end_token, max_steps, check_every):
    return max(map(len, loop(accumulated)(step, tokens, end_token, max_steps, check_every)))


@wrong("3.5", "returned-nothing")
def prints_them(step, tokens, end_token, max_steps, check_every):
    loop(accumulated)(step, tokens, end_token, max_steps, check_every)
