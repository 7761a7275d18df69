"""More answers to 3.1 to 3.6: each was once judged or named in another way than it should be."""

import torch

from minillm.grading.corpus import right, wrong
from minillm.graphs import cuda, device, warm_up
from minillm.inputs import BUFFERS, DecodeInputs
from minillm.lab.recital import copy_rows

# -- 3.1


@wrong("3.1", "wrong-type")
def yields(graph, static_input, static_output, batches):
    for batch in batches:
        static_input.copy_(batch)
        graph.replay()
        yield static_output.clone()


@wrong("3.1", "graph-arguments")
def calls_it_like_a_module(graph, static_input, static_output, batches):
    return [graph(batch) for batch in batches]


@wrong("3.1", "graph-arguments")
def hands_the_batch_to_replay(graph, static_input, static_output, batches):
    return [graph.replay(batch) for batch in batches]


@wrong("3.1", "captured-again")
def captures_the_copy(graph, static_input, static_output, batches):
    results = []
    for batch in batches:
        with cuda.graph(graph):
            static_input.copy_(batch)
        graph.replay()
        results.append(static_output.clone())
    return results


def on_a_side_stream(graph, static_input, static_output, batches, first, then):
    """Copies each batch on a stream of its own, between `first(side, main)` and `then(main, side)`."""
    side, results = cuda.Stream(), []
    for batch in batches:
        if batch.shape != static_input.shape:
            raise ValueError("another shape")
        first(side, cuda.current_stream())
        with cuda.stream(side):
            static_input.copy_(batch, non_blocking=True)
        then(cuda.current_stream(), side)
        graph.replay()
        results.append(static_output.clone())
    return results


def wait(waiting, other):
    waiting.wait_stream(other)


def nobody_waits(_waiting, _other):
    pass


@right("3.1")
def both_streams_wait(graph, static_input, static_output, batches):
    return on_a_side_stream(graph, static_input, static_output, batches, wait, wait)


@right("3.1")
def the_host_waits_for_both(graph, static_input, static_output, batches):
    def host(_waiting, other):
        other.synchronize()

    return on_a_side_stream(graph, static_input, static_output, batches, host, host)


@right("3.1")
def all_of_it_on_a_side_stream(graph, static_input, static_output, batches):
    side, main = cuda.Stream(), cuda.current_stream()
    side.wait_stream(main)
    with cuda.stream(side):
        results = both_streams_wait(graph, static_input, static_output, batches)
    main.wait_stream(side)
    return results


@wrong("3.1", "unordered")
def copies_beside_the_graph(graph, static_input, static_output, batches):
    return on_a_side_stream(graph, static_input, static_output, batches, nobody_waits, nobody_waits)


@wrong("3.1", "unordered")
def only_the_graph_waits(graph, static_input, static_output, batches):
    return on_a_side_stream(graph, static_input, static_output, batches, nobody_waits, wait)


@wrong("3.1", "unordered")
def results_on_a_side_stream(graph, static_input, static_output, batches):
    side, results = cuda.Stream(), []
    for batch in batches:
        static_input.copy_(batch)
        graph.replay()
        side.wait_stream(cuda.current_stream())
        with cuda.stream(side):
            results.append(static_output.clone())
    return results


# -- 3.2


def fill_and_copy(static, batch):
    rows, columns = batch.block_tables.shape
    for name, target in static.tensors().items():
        target.fill_(BUFFERS[name].padding)
        region = target[:rows, :columns] if target.dim() == 2 else target[:rows]
        region.copy_(getattr(batch, name))


@right("3.2")
def on_a_stream_that_waits(static, batch):
    side = cuda.Stream()
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        fill_and_copy(static, batch)
    cuda.current_stream().wait_stream(side)


@right("3.2")
def one_number_where_a_mask_is(static, batch):
    fill_and_copy(static, batch)
    static.context_lens[torch.arange(static.batch, device=device) >= batch.batch] = 1


@wrong("3.2", "unordered")
def on_a_stream_of_its_own(static, batch):
    with cuda.stream(cuda.Stream()):
        fill_and_copy(static, batch)


@wrong("3.2", "waits")
def rows_chosen_by_a_mask(static, batch):
    fill_and_copy(static, batch)
    static.token_ids[torch.arange(static.batch, device=device) < batch.batch] = batch.token_ids


@wrong("3.2", "at-the-end")
def tables_aligned_to_the_right(static, batch):
    fill_and_copy(static, batch)
    rows, columns = batch.block_tables.shape
    static.block_tables.zero_()
    static.block_tables[:rows, -columns:] = batch.block_tables


@wrong("3.2", "at-the-end")
def the_last_rows(static, batch):
    for name, target in static.tensors().items():
        source = getattr(batch, name)
        target.fill_(BUFFERS[name].padding)
        region = target[-batch.batch :]
        (region[:, : source.shape[1]] if source.dim() == 2 else region).copy_(source)


@wrong("3.2", "reexport")
def as_the_lesson_cures_it(static, batch):
    copy_rows(static, DecodeInputs.padding(*static.block_tables.shape, device=device))
    copy_rows(static, batch)


# -- 3.3


@right("3.3")
def copies_on_a_stream_that_waits(replay, logits, steps):
    side, rows = cuda.Stream(), logits.new_empty(steps, *logits.shape)
    for row in rows:
        replay()
        side.wait_stream(cuda.current_stream())
        with cuda.stream(side):
            row.copy_(logits)
        cuda.current_stream().wait_stream(side)
    return rows


@wrong("3.3", "unordered")
def the_next_replay_does_not_wait(replay, logits, steps):
    side, rows = cuda.Stream(), logits.new_empty(steps, *logits.shape)
    for row in rows:
        replay()
        side.wait_stream(cuda.current_stream())
        with cuda.stream(side):
            row.copy_(logits)
    cuda.current_stream().wait_stream(side)
    return rows


@wrong("3.3", "waits")
def asks_an_event_until_it_is_done(replay, logits, steps):
    kept = []
    for _ in range(steps):
        replay()
        event = cuda.Event()
        event.record()
        while not event.query():
            pass
        kept.append(logits.clone())
    return kept


@wrong("3.3", "wrong-type")
def a_generator_expression(replay, logits, steps):
    return ((replay(), logits.clone())[1] for _ in range(steps))


@wrong("3.3", "changed-input")
def clears_the_logits(replay, logits, steps):
    kept = []
    for _ in range(steps):
        replay()
        kept.append(logits.clone())
        logits.zero_()
    return kept


_preallocated = {}


@wrong("3.3", "aliased")
def one_buffer_for_each_shape(replay, logits, steps):
    key = steps, logits.shape, logits.dtype
    if key not in _preallocated:
        _preallocated[key] = logits.new_empty(steps, *logits.shape)
    for row in _preallocated[key]:
        replay()
        row.copy_(logits)
    return _preallocated[key]


@wrong("3.3", "wrong-length")
def stacked_along_the_batch(replay, logits, steps):
    kept = []
    for _ in range(steps):
        replay()
        kept.append(logits.clone())
    return torch.stack(kept, 1)


# -- 3.4


def captured(step):
    warm_up(step)
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        output = step()
    return graph, output


def with_step(logits, step, value=1.0, dtype=torch.float32):
    """run for probabilities = step(logits, temperature)."""
    temperature = torch.full((), value, device=device, dtype=dtype)
    graph, probabilities = captured(lambda: step(logits, temperature))

    def run(value):
        temperature.fill_(value)
        graph.replay()
        return probabilities

    return run


@right("3.4")
def graphed_callable(logits):
    step = cuda.make_graphed_callables(
        lambda x, t: (x / t).softmax(-1), (logits.clone(), logits.new_ones(()))
    )
    return lambda value: step(logits, torch.full((), value, device=device))


@right("3.4")
def a_copy_of_the_logits_in_each_run(logits):
    mine, temperature = torch.empty_like(logits), torch.ones((), device=device)
    graph, probabilities = captured(lambda: (mine / temperature).softmax(-1))

    def run(value):
        mine.copy_(logits)
        temperature.fill_(value)
        graph.replay()
        return probabilities

    return run


@right("3.4")
def fills_only_what_changed(logits):
    temperature, last = torch.ones((), device=device), [1.0]
    graph, probabilities = captured(lambda: (logits / temperature).softmax(-1))

    def run(value):
        if value != last[0]:
            temperature.fill_(value)
            last[0] = value
        graph.replay()
        return probabilities

    return run


@wrong("3.4", "kept-result")
def caches_by_temperature(logits):
    run = with_step(logits, lambda x, t: (x / t).softmax(-1))
    known = {}

    def cached(value):
        if value not in known:
            known[value] = run(value).clone()
        return known[value]

    return cached


@wrong("3.4", "kept-result")
def replays_only_for_another_temperature(logits):
    run, last = with_step(logits, lambda x, t: (x / t).softmax(-1)), [None, None]

    def skips(value):
        if value != last[0]:
            last[:] = value, run(value)
        return last[1]

    return skips


@wrong("3.4", "divided-after-softmax")
def divides_the_probabilities(logits):
    return with_step(logits, lambda x, t: x.softmax(-1) / t)


@wrong("3.4", "wrong-value")
def log_probabilities(logits):
    return with_step(logits, lambda x, t: (x / t).log_softmax(-1))


@wrong("3.4", "rounded-temperature")
def half_a_temperature(logits):
    return with_step(logits, lambda x, t: (x / t).softmax(-1), dtype=torch.float16)


@wrong("3.4", "wrong-type")
def half_the_probabilities(logits):
    return with_step(logits, lambda x, t: (x / t).softmax(-1).half())


@wrong("3.4", "dropped-temperature")
def drops_a_constant_of_the_step(logits):
    zeros, temperatures = torch.zeros_like(logits), torch.ones_like(logits)
    graph, probabilities = captured(lambda: torch.addcdiv(zeros, logits, temperatures).softmax(-1))

    def run(value):
        temperatures.fill_(value)
        graph.replay()
        return probabilities

    return run


@wrong("3.4", "changed-logits")
def divides_and_puts_back(logits):
    saved = torch.empty_like(logits)
    graph, probabilities = captured(lambda: logits.softmax(-1))

    def run(value):
        saved.copy_(logits)
        logits.div_(value)
        graph.replay()
        logits.copy_(saved)
        return probabilities

    return run


# -- 3.5


def decoded(step, tokens, end_token, max_steps, check_every, done, cut=None):
    """The loop that all have in common. `done(finished)` is asked at the checks, `cut` shortens a row."""
    finished, history = torch.zeros_like(tokens, dtype=torch.bool), []
    for number in range(1, max_steps + 1):
        step()
        finished |= tokens == end_token
        history.append(tokens.clone())
        if number % check_every == 0 and done(finished):
            break
    rows = torch.stack(history, 1).tolist()
    cut = cut or (lambda row: row[: row.index(end_token) + 1])
    return [cut(row) if end_token in row else row for row in rows]


@right("3.5")
def a_padding_token_after_the_end(step, tokens, end_token, max_steps, check_every):
    rows = tokens.new_full((len(tokens), max_steps), -1)
    running = torch.ones_like(tokens, dtype=torch.bool)
    for number in range(1, max_steps + 1):
        step()
        rows[:, number - 1] = torch.where(running, tokens, -1)
        running = running & (tokens != end_token)
        if number % check_every == 0 and not running.any():
            break
    return [[token for token in row if token != -1] for row in rows.tolist()]


@wrong("3.5", "waits-each-step")
def asks_an_event_in_a_loop(step, tokens, end_token, max_steps, check_every):
    event = cuda.Event()

    def step_and_poll():
        step()
        event.record()
        while not event.query():
            continue

    return decoded(step_and_poll, tokens, end_token, max_steps, check_every, torch.all)


@wrong("3.5", "waits-each-row")
def pythons_all(step, tokens, end_token, max_steps, check_every):
    return decoded(step, tokens, end_token, max_steps, check_every, all)


@wrong("3.5", "waits-each-row")
def lists_of_each_step(step, tokens, end_token, max_steps, check_every):
    finished, history = torch.zeros_like(tokens, dtype=torch.bool), []
    for number in range(1, max_steps + 1):
        step()
        finished |= tokens == end_token
        history.append(tokens.clone())
        if number % check_every == 0 and finished.all():
            break
    rows = list(map(list, zip(*[each.tolist() for each in history], strict=True)))
    return [row[: row.index(end_token) + 1] if end_token in row else row for row in rows]


@wrong("3.5", "stops-too-early")
def counts_the_end_tokens(step, tokens, end_token, max_steps, check_every):
    count, history = torch.zeros((), dtype=torch.int64, device=device), []
    for number in range(1, max_steps + 1):
        step()
        count += (tokens == end_token).sum()
        history.append(tokens.clone())
        if number % check_every == 0 and count >= len(tokens):
            break
    rows = torch.stack(history, 1).tolist()
    return [row[: row.index(end_token) + 1] if end_token in row else row for row in rows]


@wrong("3.5", "keeps-after-end")
def up_to_the_last_end_token(step, tokens, end_token, max_steps, check_every):
    def cut(row):
        return row[: len(row) - row[::-1].index(end_token)]

    return decoded(step, tokens, end_token, max_steps, check_every, torch.all, cut)


@wrong("3.5", "no-end-in-the-row")
def argmax_of_the_matches(step, tokens, end_token, max_steps, check_every):
    finished, history = torch.zeros_like(tokens, dtype=torch.bool), []
    for number in range(1, max_steps + 1):
        step()
        finished |= tokens == end_token
        history.append(tokens.clone())
        if number % check_every == 0 and finished.all():
            break
    rows = torch.stack(history, 1)
    last = (rows == end_token).int().argmax(1, keepdim=True)
    return [row[1 : row[0] + 2] for row in torch.cat([last, rows], 1).tolist()]


# -- 3.6


def place(tensor):
    return tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype


def guard_by(note, tensors):
    """A guard that holds the tensors, and compares `note(tensor)` by name."""
    noted = {name: (tensor, note(tensor)) for name, tensor in tensors.items()}

    def check(current):
        moved = [
            name for name, (_, was) in noted.items() if name not in current or note(current[name]) != was
        ]
        if moved:
            raise RuntimeError(", ".join(moved))

    return check


@right("3.6")
def holds_detached_tensors(tensors):
    kept = {name: tensor.detach() for name, tensor in tensors.items()}

    def check(current):
        if moved := [n for n in kept if n not in current or place(kept[n]) != place(current[n])]:
            raise RuntimeError(f"moved: {moved}")

    return check


@right("3.6")
def storage_and_offset(tensors):
    return guard_by(
        lambda t: (t.untyped_storage().data_ptr(), t.storage_offset(), t.size(), t.stride(), t.dtype), tensors
    )


@wrong("3.6", "ignores-address")
def storage_without_offset(tensors):
    return guard_by(lambda t: (t.untyped_storage().data_ptr(), t.size(), t.stride(), t.dtype), tensors)


@wrong("3.6", "ignores-address")
def any_of_the_old_places(tensors):
    places, kept = {place(tensor) for tensor in tensors.values()}, dict(tensors)

    def check(current):
        if moved := [n for n in kept if n not in current or place(current[n]) not in places]:
            raise RuntimeError(", ".join(moved))

    return check


@wrong("3.6", "asks-late")
def asks_the_tensors_that_it_keeps(tensors):
    kept = dict(tensors)

    def check(current):
        if moved := [n for n in kept if n not in current or place(kept[n]) != place(current[n])]:
            raise RuntimeError(", ".join(moved))

    return check


_noted = {}


@wrong("3.6", "shared-notes")
def notes_in_a_global(tensors):
    _noted.clear()
    _noted.update({name: (tensor, place(tensor)) for name, tensor in tensors.items()})

    def check(current):
        moved = [n for n, (_, was) in _noted.items() if n not in current or place(current[n]) != was]
        if moved:
            raise RuntimeError(", ".join(moved))

    return check


@wrong("3.6", "compares-identity")
def compares_the_class_as_well(tensors):
    return guard_by(lambda t: (type(t), t.requires_grad, *place(t)), tensors)


@wrong("3.6", "relies-on-order")
def zips_the_two_dicts(tensors):
    noted, kept = [(name, place(tensor)) for name, tensor in tensors.items()], dict(tensors)

    def check(current):
        moved = [n for (n, was), t in zip(noted, current.values(), strict=False) if place(t) != was]
        moved += [name for name in kept if name not in current]
        if moved:
            raise RuntimeError(", ".join(moved))

    return check


@wrong("3.6", "remembers-the-new")
def notes_the_current_after_each_check(tensors):
    noted, kept = {name: place(tensor) for name, tensor in tensors.items()}, dict(tensors)

    def check(current):
        moved = [name for name, was in noted.items() if name not in current or place(current[name]) != was]
        if moved:
            raise RuntimeError(", ".join(moved))
        for name, tensor in current.items():
            noted[name], kept[name] = place(tensor), tensor

    return check


@wrong("3.6", "changed-input")
def pops_from_the_callers_dict(tensors):
    noted = {name: (tensor, place(tensor)) for name, tensor in tensors.items()}

    def check(current):
        moved = []
        for name, (_, was) in noted.items():
            tensor = current.pop(name, None)
            if tensor is None or place(tensor) != was:
                moved.append(name)
        if moved:
            raise RuntimeError(", ".join(moved))

    return check


@wrong("3.6", "does-not-raise")
def warns_only(tensors):
    import warnings

    noted = {name: (tensor, place(tensor)) for name, tensor in tensors.items()}

    def check(current):
        for name, (_, was) in noted.items():
            if name not in current or place(current[name]) != was:
                warnings.warn(f"{name} has moved", stacklevel=2)

    return check
