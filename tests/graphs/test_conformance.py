"""What a CUDA graph does, stated so that a GPU and the emulator must both agree.

What is refused is in test_refusals.py, which runs after this file: on a GPU a failed capture can
leave the process in a bad way.
"""

import gc

import pytest
import torch
import torch.nn.functional as F
from toy import Toy, inputs

from minillm import graphs

MiB = 1 << 20


# ---- capture records, replay runs
def test_capture_does_not_compute(device, grab):
    x = torch.rand(64, device=device) + 1
    g, y = grab(lambda: x * 2)
    assert not torch.equal(y, x * 2)
    g.replay()
    assert torch.equal(y, x * 2)


def test_in_place_during_capture_leaves_inputs_alone(device, grab):
    x = torch.ones(8, device=device)
    g, _ = grab(lambda: x.add_(1))
    assert x.tolist() == [1] * 8
    for _ in range(3):
        g.replay()
    assert x.tolist() == [4] * 8


def test_replay_reads_current_contents(device, grab):
    x = torch.zeros(4, device=device)
    g, y = grab(lambda: x + 1)
    x.copy_(torch.arange(4.0))
    g.replay()
    assert y.tolist() == [1, 2, 3, 4]


def test_rebinding_a_name_does_nothing(device, grab):
    x = old = torch.zeros(4, device=device)
    g, y = grab(lambda: x + 1)
    x = torch.full((4,), 9.0, device=device)
    g.replay()
    assert y.tolist() == [1] * 4 and old.tolist() == [0] * 4


def test_output_is_one_buffer_overwritten_by_each_replay(device, grab):
    x = torch.zeros(1, device=device)
    g, y = grab(lambda: x + 1)
    kept, copies = [], []
    for i in range(3):
        x.fill_(i)
        g.replay()
        kept.append(y)
        copies.append(y.clone())
    assert [k.item() for k in kept] == [3, 3, 3] and [c.item() for c in copies] == [1, 2, 3]


def test_python_runs_once(device, grab):
    x, calls, flag, scale = torch.ones(2, device=device), [], True, 3.0

    def f():
        calls.append(1)
        return x * scale if flag else x * 0

    g, y = grab(f)
    flag, scale = False, 100.0
    g.replay()
    g.replay()
    assert len(calls) == 1 and y.tolist() == [3, 3]


def test_a_scale_in_a_tensor_is_live(device, grab):
    x, scale = torch.ones(2, device=device), torch.full((), 3.0, device=device)
    g, y = grab(lambda: x * scale)
    scale.fill_(5)
    g.replay()
    assert y.tolist() == [5, 5]


def test_views_share_the_static_buffer(device, grab):
    x = torch.zeros(2, 4, device=device)
    row = x[1]
    g, y = grab(lambda: row.view(2, 2).t() + 1)
    x[1] = torch.arange(4.0, device=device)
    g.replay()
    assert y.tolist() == [[1, 3], [2, 4]]


def test_numbers_that_ride_in_the_launch(device, grab):
    x, y, two = torch.arange(4.0, device=device), torch.zeros(4, device=device), torch.tensor(2.0)

    def f():
        y[:2] = 7.0  # fill_
        y[2:3] = x[2:3]  # device to device
        y[x > 2] = -1.0  # masked_fill_
        return torch.where(x > 1, x * two, 0.0)  # a 0-dim CPU tensor is a number

    g, z = grab(f)
    for _ in range(2):
        g.replay()
    assert y.tolist() == [7, 7, 2, -1] and z.tolist() == [0, 0, 4, 6]


def test_a_number_made_inside_the_capture_is_frozen(device, grab):
    x, kept = torch.ones(3, device=device), []

    def f():
        scale = torch.tensor(3.0)  # host memory: its value goes into the launch
        kept.append(scale)
        return x * scale + torch.full((), 1.0)

    g, y = grab(f)
    kept[0].fill_(100.0)
    g.replay()
    assert y.tolist() == [4] * 3


def test_python_may_compute_on_the_host_during_a_capture(device, grab):
    x, seen = torch.arange(4.0, device=device), []

    def f():
        lengths = torch.tensor([3, 1]) + torch.arange(2)  # no device=: it runs at once, on the CPU
        seen.append(lengths.tolist())
        return x[: int(lengths.max())] * 2

    g, y = grab(f)
    g.replay()
    assert seen == [[3, 2]] and y.tolist() == [0, 2, 4]


def test_kv_cache_writes_follow_the_slot_tensor(device, grab):
    k, v = torch.zeros(6, 2, device=device), torch.zeros(6, 2, device=device)
    slots, new = torch.tensor([0, 1], device=device), torch.ones(2, 2, device=device)

    def f():
        k.index_copy_(0, slots, new)
        v[slots] = new * 2

    g, _ = grab(f)
    assert k.sum().item() == v.sum().item() == 0
    slots.copy_(torch.tensor([4, 2]))
    g.replay()
    assert k[:, 0].tolist() == [0, 0, 1, 0, 1, 0] and v[:, 0].tolist() == [0, 0, 2, 0, 2, 0]


def test_a_position_that_is_a_python_int_is_baked_in(device, grab):
    cache, new, pos = torch.zeros(4, device=device), torch.ones(1, device=device), 1

    def f():
        cache[pos : pos + 1] = new

    g, _ = grab(f)
    pos = 3
    g.replay()
    assert cache.tolist() == [0, 1, 0, 0]


def test_a_graph_can_feed_itself(device, grab):
    table = torch.tensor([1, 2, 3, 0], device=device)
    token = torch.zeros(1, dtype=torch.long, device=device)
    pos, said = torch.zeros_like(token), torch.full((6,), -1, device=device)

    def step():
        token.copy_(table[token])
        said.index_copy_(0, pos, token)
        pos.add_(1)

    g, _ = grab(step)
    for _ in range(5):
        g.replay()
    assert said.tolist() == [1, 2, 3, 0, 1, -1]


def test_ops_with_several_outputs_and_integer_outputs(device, grab):
    x = torch.tensor([[3.0, 1, 2], [1, 5, 4]], device=device)
    g, (top, arg, most, ordered) = grab(lambda: (x.topk(2), x.argmax(-1), x.max(-1), x.sort(-1)))
    g.replay()
    assert top.indices.tolist() == [[0, 2], [1, 2]] and arg.tolist() == [0, 1]
    assert most.values.tolist() == [3, 5] and ordered.indices.tolist() == [[1, 2, 0], [0, 2, 1]]


def test_zeros_inside_capture_are_zeroed_by_every_replay(device, grab):
    x = torch.ones(4, device=device)
    g, total = grab(lambda: torch.zeros(4, device=device).add_(x))
    g.replay()
    g.replay()
    assert total.tolist() == [1] * 4


def test_weights_copied_are_seen_weights_replaced_are_not(device, grab):
    m = torch.nn.Linear(2, 2, bias=False, device=device).requires_grad_(False)
    x, old = torch.ones(2, 2, device=device), m.weight.data
    m.weight.fill_(1)
    graphs.warm_up(lambda: m(x))
    g, y = grab(lambda: m(x))
    m.load_state_dict({"weight": torch.full((2, 2), 2.0)})
    g.replay()
    assert y.unique().tolist() == [4]
    m.weight.data = torch.full((2, 2), 5.0, device=device)
    g.replay()
    assert y.unique().tolist() == [4] and old.unique().tolist() == [2]


def test_inference_mode_too(device, grab):
    q = torch.rand(2, 4, 3, 8, device=device)
    with torch.inference_mode():
        graphs.warm_up(lambda: F.scaled_dot_product_attention(q, q, q))
        g, y = grab(lambda: F.scaled_dot_product_attention(q, q, q).transpose(1, 2).reshape(2, 3, 32))
        g.replay()
        assert torch.equal(y, F.scaled_dot_product_attention(q, q, q).transpose(1, 2).reshape(2, 3, 32))


def test_a_training_step(device, grab):
    w, x = torch.nn.Parameter(torch.ones(3, device=device)), torch.ones(3, device=device)
    w.grad = torch.zeros_like(w)

    def step():
        w.grad.zero_()
        (w * x).pow(2).sum().backward()
        with torch.no_grad():
            w.sub_(w.grad, alpha=0.25)

    graphs.warm_up(step, 1)
    g, _ = grab(step)
    assert w.tolist() == [0.5] * 3
    g.replay()
    assert w.tolist() == [0.25] * 3


OPS = {
    "add": lambda x, i: x + x.flip(0),
    "add a number": lambda x, i: x + 1,
    "a number minus": lambda x, i: 2 - x,
    "addcmul": lambda x, i: torch.addcmul(x, x, x, value=0.5),
    "arange": lambda x, i: torch.arange(8, device=x.device) * i,
    "batch norm": lambda x, i: F.batch_norm(x, x[0], x[1].abs()),
    "cast": lambda x, i: x.to(torch.bfloat16),
    "cat": lambda x, i: torch.cat([x, x * 2, x[:1]]),
    "clamp": lambda x, i: x.clamp(-0.5, 0.5),
    "compare": lambda x, i: x > 0,
    "contiguous": lambda x, i: x.t().contiguous(),
    "cumsum": lambda x, i: i.cumsum(0),
    "embedding": lambda x, i: F.embedding(i, x),
    "full": lambda x, i: torch.full((3,), 2.5, device=x.device),
    "gather": lambda x, i: x.gather(1, i[None].expand(8, -1)),
    "gelu": lambda x, i: F.gelu(x),
    "index": lambda x, i: x[i, i],
    "layer norm": lambda x, i: F.layer_norm(x, (8,), x[0], x[1]),
    "log softmax": lambda x, i: x.log_softmax(-1),
    "masked fill": lambda x, i: x.masked_fill(x > 0, -1.0),
    "mean": lambda x, i: x.mean(-1, keepdim=True),
    "outer": lambda x, i: torch.outer(i, i),
    "pow": lambda x, i: x.pow(2),
    "rms norm": lambda x, i: F.rms_norm(x, (8,), x[0]),
    "roll": lambda x, i: x.roll(1, -1),
    "rsqrt": lambda x, i: (x * x + 1).rsqrt(),
    "scatter": lambda x, i: torch.zeros_like(x).scatter(1, i[None].expand(8, -1), x),
    "silu": lambda x, i: F.silu(x),
    "softmax": lambda x, i: x.softmax(-1),
    "split": lambda x, i: [part + 1 for part in x.split([3, 5], 1)],
    "stack": lambda x, i: torch.stack([x, x.neg()], -1),
    "topk": lambda x, i: x.topk(3),
    "tril": lambda x, i: x.tril(),
    "where": lambda x, i: torch.where(x > 0, x, x.exp()),
}


@pytest.mark.parametrize("name", OPS)
def test_an_op_gives_the_bits_that_eager_gives(device, grab, name):
    """In two replays with different inputs; strides included."""
    op = OPS[name]
    x, i = torch.zeros(8, 8, device=device), torch.arange(8, device=device)
    graphs.warm_up(lambda: op(x, i), 1)
    g, got = grab(lambda: op(x, i))
    for _ in range(2):
        x.copy_(torch.randn(8, 8))
        i.copy_(torch.randperm(8))
        g.replay()
        want = op(x, i)
        pairs = list(zip(got, want, strict=True)) if isinstance(want, (tuple, list)) else [(got, want)]
        for a, b in pairs:
            assert a.dtype == b.dtype and a.stride() == b.stride() and torch.equal(a, b)


# ---- random numbers
def test_replays_draw_fresh_numbers_as_eager_would(device, grab):
    torch.manual_seed(7)
    eager = [torch.rand(4, device=device).tolist() for _ in range(3)]
    torch.manual_seed(7)
    g, y = grab(lambda: torch.rand(4, device=device))
    replayed = []
    for _ in range(3):
        g.replay()
        replayed.append(y.tolist())
    assert replayed == eager and eager[0] != eager[1]


def test_a_seed_between_replays_is_honoured(device, grab):
    x = torch.ones(64, device=device)
    g, y = grab(lambda: F.dropout(x, 0.5))
    drawn = []
    for seed in (1, 2, 1):
        torch.manual_seed(seed)
        g.replay()
        drawn.append(y.tolist())
    assert drawn[0] == drawn[2] != drawn[1]


def test_a_registered_generator(cuda, device):
    x, generator = torch.zeros(4, device=device), torch.Generator(device)
    g = cuda.CUDAGraph()
    g.register_generator_state(generator)
    with cuda.graph(g):
        x.uniform_(generator=generator)
    generator.manual_seed(3)
    g.replay()
    assert torch.equal(x, torch.zeros(4, device=device).uniform_(generator=generator.manual_seed(3)))


# ---- memory
def test_dead_intermediates_are_reused_within_a_capture(device, grab):
    x, addresses = torch.ones(1000, device=device), []

    def f():
        a = x + 1
        addresses.append(a.data_ptr())
        b = a * 2
        del a
        c = b * 3
        addresses.append(c.data_ptr())
        return c

    g, c = grab(f)
    g.replay()
    assert addresses[0] == addresses[1] == c.data_ptr() and c[0].item() == 12


def test_live_outputs_of_a_shared_pool_are_safe(cuda, device, grab):
    pool, x = cuda.graph_pool_handle(), torch.ones(1000, device=device)
    ga, a = grab(lambda: x + 1, pool=pool)
    gb, b = grab(lambda: x + 2, pool=pool)
    ga.replay()
    gb.replay()
    assert a.data_ptr() != b.data_ptr() and a[0].item() == 2 and b[0].item() == 3


def test_a_graph_lends_its_own_pool(device, grab):
    x = torch.ones(MiB, device=device)
    ga, a = grab(lambda: x + 1)
    address = a.data_ptr()
    del a
    gb, b = grab(lambda: x + 2, pool=ga.pool())
    assert gb.pool() == ga.pool() and b.data_ptr() == address
    assert graphs.pool_bytes(ga.pool()) == 20 * MiB  # one large segment for both


def test_dropped_outputs_of_a_shared_pool_are_reused(cuda, device, grab):
    pool, x = cuda.graph_pool_handle(), torch.ones(1000, device=device)
    ga, a = grab(lambda: x + 1, pool=pool)
    address = a.data_ptr()
    del a
    gb, b = grab(lambda: x + 2, pool=pool)
    assert b.data_ptr() == address
    gb.replay()
    assert b[0].item() == 3
    ga.replay()  # writes where b lives
    assert b[0].item() == 2


def test_blocks_are_not_shared_between_capture_streams(cuda, device, grab):
    pool, x = cuda.graph_pool_handle(), torch.ones(1000, device=device)
    ga, a = grab(lambda: x + 1, pool=pool, stream=cuda.Stream())
    address = a.data_ptr()
    del a
    gb, b = grab(lambda: x + 2, pool=pool, stream=cuda.Stream())
    assert b.data_ptr() != address and graphs.pool_bytes(pool) == 4 * MiB


def test_a_view_keeps_the_block(cuda, device, grab):
    pool, x = cuda.graph_pool_handle(), torch.ones(1000, device=device)
    ga, a = grab(lambda: (x + 1)[10:], pool=pool)
    gb, b = grab(lambda: x + 2, pool=pool)
    ga.replay()
    gb.replay()
    assert a[0].item() == 2 and b[0].item() == 3


def test_private_pools_do_not_alias_and_eager_stays_out(device, grab):
    x = torch.ones(1000, device=device)
    ga, a = grab(lambda: x + 1)
    address = a.data_ptr()
    del a
    gb, b = grab(lambda: x + 2)
    eager = [x + 3 for _ in range(50)]
    assert address not in {t.data_ptr() for t in [b, *eager]} and ga.pool() != gb.pool()


@pytest.mark.parametrize(
    "sizes, shared, reserved",
    [([16, 8, 4, 2], True, 34), ([2, 4, 8, 16], True, 38), ([16, 8, 4, 2], False, 100)],
)
def test_pool_bytes_shared_private_and_order(cuda, device, grab, sizes, shared, reserved):
    """The numbers are the caching allocator's, on either backend."""
    pools, keep = [], []
    for n in sizes:
        if not (pools and shared):
            pools.append(cuda.graph_pool_handle())
        x = torch.zeros(n * MiB // 4, device=device)
        keep.append((x, grab(lambda x=x: ((x + 1) * 2)[:1].clone(), pool=pools[-1])))
    assert sum(map(graphs.pool_bytes, pools)) == reserved * MiB


def test_outputs_outlive_their_graph(device, grab):
    x = torch.ones(4, device=device)
    g, y = grab(lambda: x + 1)
    g.replay()
    del g
    gc.collect()
    others = [torch.zeros(4, device=device) for _ in range(10)]
    assert y.tolist() == [2] * 4 and len(others) == 10


@pytest.mark.filterwarnings("ignore:this graph uses")
def test_use_after_free_of_a_static_input(device, grab):
    def build():
        x = torch.zeros(MiB, device=device)
        return grab(lambda: x + 1)

    g, y = build()
    squatter = torch.full((MiB,), 41.0, device=device)
    g.replay()
    assert (y != 1).all() and squatter[0].item() == 41


def test_graph_chained_on_another_graphs_output(device, grab):
    x = torch.ones(4, device=device)
    ga, a = grab(lambda: x + 1)
    gb, b = grab(lambda: a * 10)
    x.fill_(4)
    ga.replay()
    gb.replay()
    assert b.tolist() == [50] * 4


# ---- streams and events
def test_the_current_stream(cuda, side):
    main = cuda.current_stream()
    assert main == cuda.default_stream() != side
    with cuda.stream(side):
        assert cuda.current_stream() == side
        with cuda.stream(None):
            assert cuda.current_stream() == side
    assert cuda.current_stream() == main


def test_a_capture_has_a_stream_of_its_own(cuda, device, grab):
    x, seen, given = torch.ones(2, device=device), [], cuda.Stream()
    before = cuda.current_stream()

    def f():
        seen.append(cuda.current_stream())
        return x + 1

    grab(f)
    grab(f)
    grab(f, stream=given)
    assert seen[0] == seen[1] != before and seen[2] == given and cuda.current_stream() == before


def test_fork_and_join(cuda, device, grab, side):
    x = torch.ones(8, device=device)

    def f():
        main = cuda.current_stream()
        side.wait_stream(main)
        with cuda.stream(side):
            a = x + 1
        b = x + 2
        main.wait_stream(side)
        return a * b

    g, y = grab(f)
    g.replay()
    assert y.tolist() == [6] * 8


def test_fork_and_join_with_events(cuda, device, grab, side):
    x, forked, joined = torch.ones(8, device=device), cuda.Event(), cuda.Event()

    def f():
        a = x + 1
        forked.record()
        with cuda.stream(side):
            forked.wait()
            b = a * 2
            joined.record()
        c = a * 3
        joined.wait()
        return b + c

    g, y = grab(f)
    g.replay()
    assert y.tolist() == [10] * 8


def test_waiting_for_an_event_that_was_never_recorded_does_nothing(cuda, device, grab):
    x, event = torch.ones(4, device=device), cuda.Event()
    assert event.query()

    def f():
        event.wait()
        return x + 1

    g, y = grab(f)
    g.replay()
    assert y.tolist() == [2] * 4


def test_events_outside_a_capture(cuda, device, side):
    x, event = torch.ones(4, device=device), cuda.Event()
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        x.add_(1)
        event.record()
    event.wait()
    x.mul_(10)
    assert side.record_event() is not None and side.record_event(event) is event
    event.synchronize()
    side.synchronize()
    cuda.synchronize()
    assert event.query() and side.query() and x.tolist() == [20] * 4


def test_elapsed_time_needs_timing_and_two_records(cuda):
    plain, a, b = cuda.Event(), cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    with pytest.raises((ValueError, RuntimeError), match="enable_timing=True"):
        plain.elapsed_time(a)
    a.record()
    with pytest.raises((ValueError, RuntimeError), match="must be recorded"):
        a.elapsed_time(b)


def test_is_current_stream_capturing(cuda, device, grab, side):
    x, seen = torch.ones(4, device=device), []

    def here():
        seen.append(cuda.is_current_stream_capturing())

    def f():
        here()
        with cuda.stream(side):
            here()
        side.wait_stream(cuda.current_stream())  # now it is drawn in
        with cuda.stream(side):
            here()
            y = x + 1
        cuda.current_stream().wait_stream(side)
        return y

    here()
    grab(f)
    here()
    assert seen == [False, True, False, True, False]


# ---- the life of a graph
def test_capture_by_hand(cuda, device, side):
    x, g = torch.ones(4, device=device), cuda.CUDAGraph()
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        g.capture_begin()
        y = x + 1
        assert cuda.is_current_stream_capturing()
        g.capture_end()
    assert not cuda.is_current_stream_capturing()
    cuda.current_stream().wait_stream(side)
    g.replay()
    assert y.tolist() == [2] * 4


@pytest.mark.parametrize("mode", ["global", "thread_local", "relaxed"])
def test_capture_error_modes(cuda, device, grab, mode):
    x = torch.ones(4, device=device)
    g, y = grab(lambda: x + 1, capture_error_mode=mode)
    g.replay()
    assert y.tolist() == [2] * 4


def test_an_empty_capture_warns(grab):
    with pytest.warns(UserWarning, match="The CUDA Graph is empty. This usually means"):
        g, _ = grab(lambda: None)
    g.replay()


def test_capture_ends_on_the_stream_it_began_on(cuda, device, side):
    x, g = torch.ones(4, device=device), cuda.CUDAGraph()
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        g.capture_begin()
        y = x + 1
        with cuda.stream(cuda.Stream()):
            with pytest.raises(RuntimeError, match="Capture must end on the same stream it began on"):
                g.capture_end()
        g.capture_end()  # nothing was lost
    g.replay()
    assert y.tolist() == [2] * 4


def test_reset_allows_another_capture(cuda, device):
    x, g = torch.ones(4, device=device), cuda.CUDAGraph()
    for k in (2, 3):
        g.reset()
        with cuda.graph(g):
            y = x * k
        g.replay()
        assert y.tolist() == [k] * 4


def test_keep_graph(cuda, device):
    x, g = torch.ones(4, device=device), cuda.CUDAGraph(keep_graph=True)
    with pytest.raises(RuntimeError, match="must have been called before calling instantiate"):
        g.instantiate()
    with cuda.graph(g):
        x.add_(1)
    g.instantiate()
    g.replay()
    g.instantiate()  # as often as you like
    g.replay()
    assert x.tolist() == [3] * 4


def test_keep_graph_instantiates_at_the_first_replay(cuda, device):
    x, g = torch.ones(4, device=device), cuda.CUDAGraph(keep_graph=True)
    with cuda.graph(g):
        x.add_(1)
    g.replay()
    assert x.tolist() == [2] * 4


def test_instantiate_is_not_for_plain_graphs(device, grab):
    x = torch.ones(4, device=device)
    g, y = grab(lambda: x + 1)
    with pytest.raises(RuntimeError, match="only when keep_graph=true"):
        g.instantiate()


# ---- the real thing
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_bucketed_decode_equals_eager_bit_for_bit(cuda, device, grab, mode):
    with mode():
        model, reference = Toy().to(device), Toy().to(device)
        reference.load_state_dict(model.state_dict())
        pool, graph = cuda.graph_pool_handle(), {}
        for b in (8, 4, 2, 1):
            static = inputs(b, model, device)
            graphs.warm_up(lambda static=static: model(*static))
            graph[b] = static, *grab(lambda static=static: model(*static), pool=pool)
        model.key_cache.zero_()
        model.value_cache.zero_()
        for step in range(16):
            n = [1, 2, 3, 5, 8][step % 5]
            b = next(b for b in (1, 2, 4, 8) if b >= n)
            tokens, positions, tables = inputs(b, model, "cpu")  # rows n.. stay on page 0, the scratch page
            tokens[:n], positions[:n] = torch.randint(0, 97, (n,)), step
            tables[:n] = 1 + torch.arange(n)[:, None] * 3 % 28 + torch.arange(4)
            static, g, out = graph[b]
            for buffer, new in zip(static, (tokens, positions, tables), strict=True):
                buffer.copy_(new)
            g.replay()
            expect = reference(*[t.to(device) for t in (tokens, positions, tables)])
            assert torch.equal(out[0][:n], expect[0][:n]) and torch.equal(out[1][:n], expect[1][:n])
            assert torch.equal(model.key_cache[:, 4:], reference.key_cache[:, 4:])
            assert torch.equal(model.value_cache[:, 4:], reference.value_cache[:, 4:])
