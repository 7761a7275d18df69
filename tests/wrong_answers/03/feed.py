"""Answers to 3.1."""

import torch

from minillm.grading.corpus import right, wrong


def checked(batch, static_input):
    if batch.shape != static_input.shape:
        raise ValueError(f"batch is {list(batch.shape)}; expected {list(static_input.shape)}")
    return batch


@right("3.1")
def stacked_and_assigned_to_a_slice(graph, static_input, static_output, batches):
    results = []
    for batch in batches:
        assert batch.shape == static_input.shape, "pad it first"
        static_input[:] = batch
        graph.replay()
        results.append(static_output.detach().clone())
    return torch.stack(results)


@right("3.1")
def one_function_a_batch(graph, static_input, static_output, batches):
    def run(batch):
        torch.add(checked(batch, static_input), 0, out=static_input)
        graph.replay()
        return torch.empty_like(static_output).copy_(static_output)

    return tuple(map(run, batches))


@right("3.1")
def generator_row_by_row_and_to_the_host(graph, static_input, static_output, batches):
    def results():
        for batch in batches:
            for row, new in zip(static_input, checked(batch, static_input), strict=True):
                row.copy_(new, non_blocking=True)
            graph.replay()
            yield static_output.to("cpu", copy=True)

    return list(results())


@right("3.1")
def on_a_stream_of_its_own(graph, static_input, static_output, batches):
    from minillm.graphs import cuda

    side, results = cuda.Stream(), []
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side), torch.inference_mode():
        for batch in batches:
            static_input.zero_().add_(checked(batch, static_input))
            graph.replay()
            results.append(static_output.clone(memory_format=torch.contiguous_format))
            cuda.current_stream().synchronize()
    cuda.current_stream().wait_stream(side)
    return results


@wrong("3.1", "rebound")
def binds_the_name(graph, static_input, static_output, batches):
    results = []
    for batch in batches:
        static_input = batch
        graph.replay()
        results.append(static_output.clone())
    return results


@wrong("3.1", "rebound")
def binds_a_clone(graph, static_input, static_output, batches):
    results = []
    for batch in batches:
        static_input = checked(batch, static_input).clone().contiguous()
        graph.replay()
        results += [static_output.clone()]
    return results


@wrong("3.1", "copied-elsewhere")
def into_a_clone(graph, static_input, static_output, batches):
    results = []
    for batch in batches:
        static_input.clone().copy_(checked(batch, static_input))
        graph.replay()
        results.append(static_output.clone())
    return results


@wrong("3.1", "copied-elsewhere")
def into_a_tensor_that_indexing_made(graph, static_input, static_output, batches):
    rows, results = torch.arange(len(static_input), device=static_input.device), []
    for batch in batches:
        static_input[rows].copy_(checked(batch, static_input))
        graph.replay()
        results.append(static_output.clone())
    return results


@wrong("3.1", "moved-static")
def puts_other_data_under_it(graph, static_input, static_output, batches):
    results = []
    for batch in batches:
        static_input.data = checked(batch, static_input)
        graph.replay()
        results.append(static_output.clone())
    return results


@wrong("3.1", "moved-static")
def sets_it(graph, static_input, static_output, batches):
    results = []
    for batch in batches:
        static_input.set_(checked(batch, static_input))
        graph.replay()
        results.append(static_output.clone())
    return results


@wrong("3.1", "copied-backwards")
def source_and_target_swapped(graph, static_input, static_output, batches):
    results = []
    for batch in batches:
        batch.copy_(checked(static_input, batch))
        graph.replay()
        results.append(static_output.clone())
    return results


@wrong("3.1", "no-replay")
def takes_the_output_for_a_formula(graph, static_input, static_output, batches):
    results = []
    for batch in batches:
        static_input.copy_(checked(batch, static_input))
        results.append(static_output.clone())
    return results


@wrong("3.1", "replay-count")
def one_replay_for_all(graph, static_input, static_output, batches):
    for batch in batches:
        static_input.copy_(checked(batch, static_input))
    graph.replay()
    return [static_output.clone() for _ in batches]


@wrong("3.1", "replay-count")
def warms_up_in_the_loop(graph, static_input, static_output, batches):
    results = []
    for batch in batches:
        static_input.copy_(checked(batch, static_input))
        for _ in range(2):
            graph.replay()
        results.append(static_output.clone())
    return results


@wrong("3.1", "replayed-too-early")
def replay_then_copy(graph, static_input, static_output, batches):
    results = []
    for batch in batches:
        graph.replay()
        static_input.copy_(checked(batch, static_input))
        results.append(static_output.clone())
    return results


@wrong("3.1", "read-ahead")
def all_batches_first(graph, static_input, static_output, batches):
    results = []
    for batch in list(batches):
        static_input.copy_(checked(batch, static_input))
        graph.replay()
        results.append(static_output.clone())
    return results


@wrong("3.1", "read-ahead")
def two_loops(graph, static_input, static_output, batches):
    count = 0
    for batch in batches:
        static_input.copy_(checked(batch, static_input))
        count += 1
    results = []
    for _ in range(count):
        graph.replay()
        results.append(static_output.clone())
    return results


@wrong("3.1", "read-ahead")
def fetches_the_next_one_early(graph, static_input, static_output, batches):
    source, results = iter(batches), []
    batch = next(source, None)
    while batch is not None:
        following = next(source, None)  # overwrites what the iterator put there before
        static_input.copy_(checked(batch, static_input))
        graph.replay()
        results.append(static_output.clone())
        batch = following
    return results


@wrong("3.1", "part-only")
def first_row_only(graph, static_input, static_output, batches):
    results = []
    for batch in batches:
        static_input[0] = checked(batch, static_input)[0]
        graph.replay()
        results.append(static_output.clone())
    return results


@wrong("3.1", "part-only")
def all_rows_but_the_last(graph, static_input, static_output, batches):
    results = []
    for batch in batches:
        static_input[:-1].copy_(checked(batch, static_input)[:-1])
        graph.replay()
        results.append(static_output.clone())
    return results


@wrong("3.1", "other-shape")
def any_shape_will_do(graph, static_input, static_output, batches):
    results = []
    for batch in batches:
        static_input.copy_(batch)
        graph.replay()
        results.append(static_output.clone())
    return results


@wrong("3.1", "other-shape")
def compares_the_columns_only(graph, static_input, static_output, batches):
    results = []
    for batch in batches:
        if batch.shape[1] != static_input.shape[1]:
            raise ValueError("another width")
        static_input[...] = batch
        graph.replay()
        results.append(static_output.clone())
    return results


@wrong("3.1", "other-shape")
def rearranges_it(graph, static_input, static_output, batches):
    results = []
    for batch in batches:
        static_input.copy_(batch.reshape(static_input.shape))
        graph.replay()
        results.append(static_output.clone())
    return results


@wrong("3.1", "aliased")
def the_output_itself(graph, static_input, static_output, batches):
    results = []
    for batch in batches:
        static_input.copy_(checked(batch, static_input))
        graph.replay()
        results.append(static_output)
    return results


@wrong("3.1", "aliased")
def detached_views(graph, static_input, static_output, batches):
    results = []
    for batch in batches:
        static_input.copy_(checked(batch, static_input))
        graph.replay()
        results.append(static_output.detach()[:])
    return results


@wrong("3.1", "aliased")
def one_buffer_for_all_results(graph, static_input, static_output, batches):
    own, results = torch.empty_like(static_output), []
    for batch in batches:
        static_input.copy_(checked(batch, static_input))
        graph.replay()
        results.append(own.copy_(static_output))
    return results


@wrong("3.1", "aliased")
def buffers_kept_for_the_next_call(graph, static_input, static_output, batches):
    own, results = getattr(static_output, "own", []), []
    for number, batch in enumerate(batches):
        static_input.copy_(checked(batch, static_input))
        graph.replay()
        if number == len(own):
            own.append(torch.empty_like(static_output))
        results.append(own[number].copy_(static_output))
    static_output.own = own
    return results


@wrong("3.1", "last-aliased")
def clones_when_the_next_one_comes(graph, static_input, static_output, batches):
    results = []
    for batch in batches:
        if results:
            results[-1] = results[-1].clone()
        static_input.copy_(checked(batch, static_input))
        graph.replay()
        results.append(static_output)
    return results


@wrong("3.1", "copied-after-the-loop")
def stacks_the_views(graph, static_input, static_output, batches):
    results = []
    for batch in batches:
        static_input.copy_(checked(batch, static_input))
        graph.replay()
        results.append(static_output)
    return torch.stack(results)


@wrong("3.1", "cloned-too-early")
def clones_before_the_replay(graph, static_input, static_output, batches):
    results = []
    for batch in batches:
        static_input.copy_(checked(batch, static_input))
        results.append(static_output.clone())
        graph.replay()
    return results
