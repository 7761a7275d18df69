"""More answers to 2.1 to 2.6, in the styles of other people."""

import collections
import copy
import dataclasses
import graphlib
import heapq
import itertools
import math
import weakref
from collections import defaultdict, deque

import numpy as np
import torch
import torch.nn.functional as F

from minillm.grading.corpus import right, wrong
from minillm.graphs import cuda, device, warm_up

inf = float("inf")


@right("2.1")
def own_stream_arg(fn, x):
    static_input = x.detach().clone()
    stream = cuda.Stream()
    stream.wait_stream(cuda.current_stream())
    with torch.no_grad(), cuda.stream(stream):
        for _ in range(11):
            fn(static_input)
    cuda.current_stream().wait_stream(stream)
    cuda.synchronize()
    g = cuda.CUDAGraph()
    with cuda.graph(g, stream=stream):
        out = fn(static_input)
    g.replay()
    cuda.synchronize()
    return [g, static_input, out]


@right("2.1")
def dict_state(fn, x):
    state = {"in": x + 0}

    def run():
        state["out"] = fn(state["in"])

    warm_up(run)
    g = cuda.CUDAGraph()
    with cuda.graph(g):
        run()
    state["in"].copy_(x)
    g.replay()
    return g, state["in"], state["out"]


@right("2.1")
def deepcopy(fn, x):
    s = copy.deepcopy(x)
    warm_up(lambda: fn(s))
    g = cuda.CUDAGraph()
    with cuda.graph(g):
        out = fn(s)
    g.replay()
    return g, s, out


Captured = collections.namedtuple("Captured", "graph static_input static_output")


@right("2.1")
def nt(fn, x):
    inp = x.clone()
    warm_up(lambda: fn(inp))
    g = cuda.CUDAGraph()
    with cuda.graph(g):
        out = fn(inp)
    g.replay()
    return Captured(g, inp, out)


@wrong("2.1", "inference-input")
def inference(fn, x):
    with torch.inference_mode():
        a = x.clone()
        warm_up(lambda: fn(a))
        g = cuda.CUDAGraph()
        with cuda.graph(g):
            b = fn(a)
        g.replay()
    return g, a, b


@wrong("2.1", "never-ended")
def forgot_capture_end_no_replay(fn, x):
    s = x.clone()
    warm_up(lambda: fn(s))
    g = cuda.CUDAGraph()
    with cuda.stream(cuda.Stream()):
        g.capture_begin()
        out = fn(s)
    return g, s, out


@wrong("2.1", "left-stream")
def stays_on_stream(fn, x):
    s = x.clone()
    warm_up(lambda: fn(s))
    g = cuda.CUDAGraph()
    cuda.set_stream(cuda.Stream())
    g.capture_begin()
    out = fn(s)
    g.capture_end()
    g.replay()
    return g, s, out


@wrong("2.1", "wrong-type")
def out_detach(fn, x):
    s = x.clone()
    warm_up(lambda: fn(s))
    g = cuda.CUDAGraph()
    with cuda.graph(g):
        out = fn(s)
    g.replay()
    return g, s, out.cpu()


_cache2 = {}


@wrong("2.1", "kept-from-before")
def cached_by_shape(fn, x):
    k = x.shape
    if k not in _cache2:
        s = x.clone()
        warm_up(lambda: fn(s))
        g = cuda.CUDAGraph()
        with cuda.graph(g):
            out = fn(s)
        _cache2[k] = (g, s, out)
    g, s, out = _cache2[k]
    s.copy_(x)
    g.replay()
    return g, s, out


@wrong("2.1", "not-loaded")
def float_input(fn, x):
    s = torch.zeros(x.shape, device=x.device)
    s.copy_(x)
    warm_up(lambda: fn(s))
    g = cuda.CUDAGraph()
    with cuda.graph(g):
        out = fn(s)
    g.replay()
    return g, s, out


@wrong("2.1", "copy-in-graph")
def out_buffer_then_copy(fn, x):
    s = x.clone()
    warm_up(lambda: fn(s))
    out = torch.empty_like(fn(s))
    g = cuda.CUDAGraph()
    with cuda.graph(g):
        out.copy_(fn(s))
    g.replay()
    return g, s, out


@wrong("2.1", "callers-tensor")
def contiguous(fn, x):
    s = x.contiguous()
    warm_up(lambda: fn(s))
    g = cuda.CUDAGraph()
    with cuda.graph(g):
        out = fn(s)
    g.replay()
    return g, s, out


@wrong("2.1", "returned-before-replay")
def eager_fills_output(fn, x):
    # no replay; fills the output by an eager call
    s = x.clone()
    warm_up(lambda: fn(s))
    g = cuda.CUDAGraph()
    with cuda.graph(g):
        out = fn(s)
    out.copy_(fn(s))
    return g, s, out


class Runner:
    CHECK = True

    def __init__(self, fn, inputs):
        self.inputs = {k: v.clone() for k, v in inputs.items()}
        warm_up(lambda: fn(**self.inputs))
        self.graph = cuda.CUDAGraph()
        with cuda.graph(self.graph):
            self.output = fn(**self.inputs)

    def check(self, values):
        for k, v in values.items():
            if k not in self.inputs:
                raise TypeError(k)
            if v.shape != self.inputs[k].shape or v.dtype != self.inputs[k].dtype:
                raise ValueError(k)

    def __call__(self, **values):
        self.check(values)
        for k, v in values.items():
            self.inputs[k].copy_(v)
        self.graph.replay()
        return self.output


@right("2.2")
def factory(fn, inputs):
    static = {k: torch.empty_like(v) for k, v in inputs.items()}
    for k in static:
        static[k].copy_(inputs[k])
    warm_up(lambda: fn(**static))
    g = cuda.CUDAGraph()
    with cuda.graph(g):
        out = fn(**static)

    def run(**values):
        bad = set(values) - set(static)
        if bad:
            raise TypeError(f"unknown {bad}")
        for k in values:
            if values[k].size() != static[k].size():
                raise ValueError
            if values[k].dtype is not static[k].dtype:
                raise TypeError
        for k in values:
            static[k].copy_(values[k], non_blocking=True)
        g.replay()
        return out.clone()

    return run


@right("2.2")
@dataclasses.dataclass
class ADataclass:
    fn: object
    inputs: dict

    def __post_init__(self):
        self.static = copy.deepcopy(self.inputs)
        s = cuda.Stream()
        s.wait_stream(cuda.current_stream())
        with cuda.stream(s):
            for _ in range(3):
                self.fn(**self.static)
        cuda.current_stream().wait_stream(s)
        self.g = cuda.CUDAGraph()
        with cuda.graph(self.g, stream=s):
            self.out = self.fn(**self.static)

    def __call__(self, **v):
        new = []
        for name, value in v.items():
            buf = self.static.get(name)
            if buf is None:
                raise TypeError(name)
            if tuple(buf.shape) != tuple(value.shape):
                raise ValueError("shape")
            if buf.dtype != value.dtype:
                raise ValueError("dtype")
            new.append((buf, value))
        for buf, value in new:
            buf.copy_(value)
        self.g.replay()
        return self.out


@right("2.2")
class Snapshot(Runner):
    """rolls back"""

    def __call__(self, **values):
        old = {k: v.clone() for k, v in self.inputs.items()}
        try:
            for k, v in values.items():
                if v.shape != self.inputs[k].shape or v.dtype != self.inputs[k].dtype:
                    raise ValueError
                self.inputs[k].copy_(v)
        except (KeyError, ValueError) as e:
            for k, v in old.items():
                self.inputs[k].copy_(v)
            raise ValueError("refused") from e
        self.graph.replay()
        return self.output


@right("2.2")
class Method(torch.nn.Module):
    def __init__(self, fn, inputs):
        super().__init__()
        for k, v in inputs.items():
            self.register_buffer(k, v.clone())
        self.k = list(inputs)
        warm_up(lambda: fn(**dict(self.named_buffers())))
        self.g = cuda.CUDAGraph()
        with cuda.graph(self.g):
            self.out = fn(**dict(self.named_buffers()))

    def forward(self, **values):
        b = dict(self.named_buffers())
        for k, v in values.items():
            if k not in b:
                raise TypeError
            if v.shape != b[k].shape or v.dtype != b[k].dtype:
                raise TypeError
        for k, v in values.items():
            b[k].copy_(v)
        self.g.replay()
        return self.out


@wrong("2.2", "half-loaded")
class Numel(Runner):
    def check(self, values):
        for k, v in values.items():
            if k not in self.inputs:
                raise TypeError(k)
            if v.numel() != self.inputs[k].numel() or v.dtype != self.inputs[k].dtype:
                raise ValueError(k)


@wrong("2.2", "broadcast")
class NumelReshape(Numel):
    def __call__(self, **values):
        self.check(values)
        for k, v in values.items():
            self.inputs[k].copy_(v.reshape(self.inputs[k].shape))
        self.graph.replay()
        return self.output


@wrong("2.2", "broadcast")
class Len(Runner):
    def check(self, values):
        for k, v in values.items():
            if k not in self.inputs:
                raise TypeError(k)
            if len(v) != len(self.inputs[k]) or v.dtype != self.inputs[k].dtype:
                raise ValueError(k)


@wrong("2.2", "early-clone")
class CloneBeforeReplay(Runner):
    def __call__(self, **values):
        self.check(values)
        for k, v in values.items():
            self.inputs[k].copy_(v)
        out = self.output.clone()
        self.graph.replay()
        return out


@wrong("2.2", "missing-name")
class ZerosInputs(Runner):
    def __init__(self, fn, inputs):
        super().__init__(fn, {k: torch.zeros_like(v) for k, v in inputs.items()})


@wrong("2.2", "missing-name")
class DefaultsFromCaller(Runner):
    def __init__(self, fn, inputs):
        super().__init__(fn, inputs)
        self.first = dict(inputs)

    def __call__(self, **values):
        self.check(values)
        self.first.update(values)
        for k, v in self.first.items():
            self.inputs[k].copy_(v)
        self.graph.replay()
        return self.output


@wrong("2.2", "stale-input")
class SkipIfSame(Runner):
    """caches by id of the value"""

    def __init__(self, fn, inputs):
        super().__init__(fn, inputs)
        self.last = {}

    def __call__(self, **values):
        self.check(values)
        for k, v in values.items():
            if self.last.get(k) is not v:
                self.inputs[k].copy_(v)
            self.last[k] = v
        self.graph.replay()
        return self.output


CACHE = weakref.WeakValueDictionary()


@wrong("2.2", "shared-state")
class GlobalCache(Runner):
    def __new__(cls, fn, inputs):
        key = tuple((name, value.shape, value.dtype) for name, value in inputs.items())
        runner = CACHE.get(key) or super().__new__(cls)
        CACHE[key] = runner
        return runner

    def __init__(self, fn, inputs):
        if not hasattr(self, "graph"):
            super().__init__(fn, inputs)


@wrong("2.2", "callers-tensors")
class ModifiesValues(Runner):
    """pops from values and modifies the caller's inputs dict"""

    def __init__(self, fn, inputs):
        for k in list(inputs):
            inputs[k] = inputs[k].clone()
        self.inputs = inputs
        warm_up(lambda: fn(**self.inputs))
        self.graph = cuda.CUDAGraph()
        with cuda.graph(self.graph):
            self.output = fn(**self.inputs)


@wrong("2.2", "not-replayed")
class SkipReplayIfNothing(Runner):
    def __init__(self, fn, inputs):
        super().__init__(fn, inputs)
        self.seen = {}

    def __call__(self, **values):
        self.check(values)
        key = tuple((k, id(v)) for k, v in values.items())
        if key in self.seen:
            return self.seen[key]
        for k, v in values.items():
            self.inputs[k].copy_(v)
        self.graph.replay()
        self.seen[key] = self.output.clone()
        return self.seen[key]


def pen(l, s, p):
    return torch.where(s, torch.where(l > 0, l / p, l * p), l)


@right("2.3")
@torch.inference_mode()
def infm(logits, seen, banned, penalty):
    return pen(logits, seen, penalty).masked_fill(banned, -inf).softmax(-1)


@right("2.3")
def pow_style(logits, seen, banned, penalty):
    sign = torch.sign(logits)
    f = penalty ** (-sign * seen.float())
    out = logits * f
    out = out + torch.zeros_like(out).masked_fill_(banned, -inf)
    return torch.softmax(out, -1)


@right("2.3")
def arithmetic(logits, seen, banned, penalty):
    f = seen.to(logits.dtype)
    pos = logits.clamp(min=0)
    neg = logits.clamp(max=0)
    s = (pos / penalty + neg * penalty) * f + logits * (1 - f)
    s = torch.where(banned, torch.full_like(s, -inf), s)
    return s.softmax(dim=-1)


@right("2.3")
def max_pen(logits, seen, banned, penalty):
    s = torch.where(seen, torch.minimum(logits / penalty, logits * penalty), logits)
    return s.masked_fill(banned, -inf).softmax(-1)


@right("2.3")
def manual_softmax(logits, seen, banned, penalty):
    s = pen(logits, seen, penalty)
    s = s.masked_fill(banned, -inf)
    m = s.max(dim=-1, keepdim=True).values
    e = torch.exp(s - m)
    return e / e.sum(-1, keepdim=True)


@right("2.3")
def ban_first_right(logits, seen, banned, penalty):
    s = logits.masked_fill(banned, -inf)
    return torch.where(seen, torch.where(s > 0, s / penalty, s * penalty), s).softmax(-1)


@wrong("2.3", "not-banned")
def finite_ban(logits, seen, banned, penalty):
    return pen(logits, seen, penalty).masked_fill(banned, -100.0).softmax(-1)


@wrong("2.3", "nan")
def no_max(logits, seen, banned, penalty):
    s = pen(logits, seen, penalty).masked_fill(banned, -inf)
    e = s.exp()
    return e / e.sum(-1, keepdim=True)


@wrong("2.3", "inverted-mask")
def not_inverted(logits, seen, banned, penalty):
    return pen(logits, ~seen, penalty).masked_fill(banned, -inf).softmax(-1)


@wrong("2.3", "inverted-mask")
def where_args_swapped(logits, seen, banned, penalty):
    s = pen(logits, seen, penalty)
    return torch.where(banned, s, -inf).softmax(-1)


@wrong("2.3", "not-penalised")
def no_penalty(logits, seen, banned, penalty):
    return logits.masked_fill(banned, -inf).softmax(-1)


@wrong("2.3", "penalised-too-late")
def penalised_after_softmax(logits, seen, banned, penalty):
    p = logits.masked_fill(banned, -inf).softmax(-1)
    return torch.where(seen, p / penalty, p)


@wrong("2.3", "penalised-too-late")
def penalised_after_softmax_renorm(logits, seen, banned, penalty):
    p = logits.masked_fill(banned, -inf).softmax(-1)
    p = torch.where(seen, p / penalty, p)
    return p / p.sum(-1, keepdim=True)


@wrong("2.3", "softmax-over-batch")
def batch_softmax(logits, seen, banned, penalty):
    return pen(logits, seen, penalty).masked_fill(banned, -inf).softmax(0)


@wrong("2.3", "shape-from-data")
def seen_index_where(logits, seen, banned, penalty):
    s = logits.clone()
    r, c = torch.where(seen)
    s[r, c] = torch.where(s[r, c] > 0, s[r, c] / penalty, s[r, c] * penalty)
    return s.masked_fill(banned, -inf).softmax(-1)


_P = {}


@wrong("2.3", "frozen-number")
def caches_item(logits, seen, banned, penalty):
    if not cuda.is_current_stream_capturing():
        _P["p"] = penalty.item()
    return pen(logits, seen, _P["p"]).masked_fill(banned, -inf).softmax(-1)


@right("2.4")
def combine_other(left, right, combine, side):
    main = cuda.current_stream()
    third = cuda.Stream()
    side.wait_stream(main)
    with cuda.stream(side):
        a = left()
    b = right()
    third.wait_stream(main)
    third.wait_stream(side)
    with cuda.stream(third):
        c = combine(a, b)
    main.wait_stream(third)
    return c


@right("2.4")
def nested_with(left, right, combine, side):
    main = cuda.current_stream()
    with cuda.stream(side):
        side.wait_stream(main)
        a = left()
        with cuda.stream(main):
            b = right()
            main.wait_stream(side)
            return combine(a, b)


@right("2.4")
def generators(left, right, combine, side):
    streams = [cuda.current_stream(), side]
    start = streams[0].record_event()

    def on(s, f):
        with cuda.stream(s):
            s.wait_event(start)
            r = f()
            return r, s.record_event()

    (a, ea), (b, eb) = map(on, streams, (left, right))
    for e in (ea, eb):
        streams[0].wait_event(e)
    return combine(a, b)


@right("2.4")
def side_query_join_first(left, right, combine, side):
    # side waits at the end for main as well (symmetric barrier)
    main = cuda.current_stream()
    side.wait_stream(main)
    with cuda.stream(side):
        b = right()
    a = left()
    main.wait_stream(side)
    side.wait_stream(main)
    r = combine(a, b)
    main.wait_stream(side)
    return r


@wrong("2.4", "default-stream")
def join_default(left, right, combine, side):
    main = cuda.current_stream()
    side.wait_stream(main)
    with cuda.stream(side):
        b = right()
    a = left()
    cuda.default_stream().wait_stream(side)
    return combine(a, b)


@wrong("2.4", "another-stream")
def new_side(left, right, combine, side):
    main = cuda.current_stream()
    s = cuda.Stream()
    s.wait_stream(main)
    with cuda.stream(s):
        b = right()
    a = left()
    main.wait_stream(s)
    return combine(a, b)


@wrong("2.4", "another-stream")
def both_on_new_side_ignored(left, right, combine, side):
    main = cuda.current_stream()
    s, t = cuda.Stream(), cuda.Stream()
    s.wait_stream(main)
    t.wait_stream(main)
    with cuda.stream(s):
        b = right()
    with cuda.stream(t):
        a = left()
    main.wait_stream(s)
    main.wait_stream(t)
    return combine(a, b)


@wrong("2.4", "joined-late")
def clone_before_join(left, right, combine, side):
    main = cuda.current_stream()
    side.wait_stream(main)
    with cuda.stream(side):
        b = right()
    a = left()
    b = b.clone()
    main.wait_stream(side)
    return combine(a, b)


@wrong("2.4", "joined-late")
def clones_result(left, right, combine, side):
    main = cuda.current_stream()
    side.wait_stream(main)
    with cuda.stream(side):
        b = right()
    a = left()
    r = combine(a, b.clone())
    main.wait_stream(side)
    return r


@wrong("2.4", "unjoined")
def combine_in_with(left, right, combine, side):
    main = cuda.current_stream()
    side.wait_stream(main)
    with cuda.stream(side):
        b = right()
        a = left()
        main.wait_stream(side)
        return combine(a, b)


@wrong("2.4", "unjoined")
def done_recorded_on_main(left, right, combine, side):
    main = cuda.current_stream()
    side.wait_stream(main)
    done = cuda.Event()
    with cuda.stream(side):
        b = right()
    done.record()
    a = left()
    main.wait_event(done)
    return combine(a, b)


@wrong("2.4", "synchronised")
def query(left, right, combine, side):
    main = cuda.current_stream()
    side.wait_stream(main)
    with cuda.stream(side):
        b = right()
    a = left()
    while not side.query():
        pass
    main.wait_stream(side)
    return combine(a, b)


@wrong("2.4", "called-once")
def warm_first(left, right, combine, side):
    warm_up(lambda: combine(left(), right()))
    main = cuda.current_stream()
    side.wait_stream(main)
    with cuda.stream(side):
        b = right()
    a = left()
    main.wait_stream(side)
    return combine(a, b)


def back(end, preds, durations):
    v = max(range(len(end)), key=end.__getitem__)
    L = end[v]
    path = [v]
    while preds[v]:
        v = max(preds[v], key=end.__getitem__)
        path.append(v)
    return L, path[::-1]


def preds_of(n, edges):
    p = [[] for _ in range(n)]
    for a, b in edges:
        p[b].append(a)
    return p


def kahn(nodes, edges, durations):
    succ = defaultdict(list)
    deg = [0] * nodes
    for a, b in edges:
        succ[a].append(b)
        deg[b] += 1
    dist = list(durations)
    par = [-1] * nodes
    q = deque(i for i in range(nodes) if deg[i] == 0)
    while q:
        u = q.popleft()
        for v in succ[u]:
            if dist[u] + durations[v] > dist[v]:
                dist[v] = dist[u] + durations[v]
                par[v] = u
            deg[v] -= 1
            if deg[v] == 0:
                q.append(v)
    if not nodes:
        return 0, []
    v = dist.index(max(dist))
    path = []
    L = dist[v]
    while v != -1:
        path.append(v)
        v = par[v]
    path.reverse()
    return L, path


@right("2.5")
def heap_labels(nodes, edges, durations):
    # event simulation
    if nodes == 0:
        return (0.0, [])
    succ = [[] for _ in range(nodes)]
    wait = [0] * nodes
    why = [None] * nodes
    for a, b in edges:
        succ[a].append(b)
        wait[b] += 1
    h = [(durations[i], i) for i in range(nodes) if not wait[i]]
    heapq.heapify(h)
    while h:
        t, u = heapq.heappop(h)
        last = (t, u)
        for v in succ[u]:
            wait[v] -= 1
            if wait[v] == 0:
                why[v] = u
                heapq.heappush(h, (t + durations[v], v))
    t, u = last
    p = [u]
    while why[p[-1]] is not None:
        p.append(why[p[-1]])
    return t, list(reversed(p))


@right("2.5")
def virtual_source_sink(nodes, edges, durations):
    E = list(edges) + [(nodes, i) for i in range(nodes)] + [(i, nodes + 1) for i in range(nodes)]
    L, p = kahn(nodes + 2, E, list(durations) + [0, 0])
    return L, [v for v in p if v < nodes]


@wrong("2.5", "all-pairs")
def floyd(nodes, edges, durations):
    """all pairs"""
    NEG = -math.inf
    d = [[NEG] * nodes for _ in range(nodes)]
    nxt = [[None] * nodes for _ in range(nodes)]
    for i in range(nodes):
        d[i][i] = durations[i]
    for a, b in edges:
        d[a][b] = durations[a] + durations[b]
        nxt[a][b] = b
    for k in range(nodes):
        for i in range(nodes):
            for j in range(nodes):
                if i != k and j != k and d[i][k] + d[k][j] - durations[k] > d[i][j]:
                    d[i][j] = d[i][k] + d[k][j] - durations[k]
                    nxt[i][j] = nxt[i][k]
    if not nodes:
        return 0, []
    i, j = max(itertools.product(range(nodes), repeat=2), key=lambda ij: d[ij[0]][ij[1]])
    L = d[i][j]
    p = [i]
    while i != j:
        i = nxt[i][j]
        p.append(i)
    return L, p


@wrong("2.5", "endless")
def while_true_hang(nodes, edges, durations):
    end = list(durations)
    while True:
        done = True
        for a, b in edges:
            if end[a] + durations[b] >= end[b]:
                end[b] = end[a] + durations[b]
                done = False
        if done:
            break
    return back(end, preds_of(nodes, edges), durations) if nodes else (0, [])


@wrong("2.5", "index-order")
def dijkstra_max(nodes, edges, durations):
    """Dijkstra with negated weights, closed set"""
    if not nodes:
        return 0, []
    succ = defaultdict(list)
    has = set()
    for a, b in edges:
        succ[a].append(b)
        has.add(b)
    h = [(-durations[i], i, [i]) for i in range(nodes) if i not in has]
    heapq.heapify(h)
    best = {}
    while h:
        d, u, p = heapq.heappop(h)
        if u in best:
            continue
        best[u] = (-d, p)
        for v in succ[u]:
            heapq.heappush(h, (d - durations[v], v, p + [v]))
    return max(best.values(), key=lambda t: t[0])


@wrong("2.5", "index-order")
def sorted_edges_once(nodes, edges, durations):
    end = list(durations)
    for a, b in sorted(edges):
        end[b] = max(end[b], end[a] + durations[b])
    return back(end, preds_of(nodes, edges), durations) if nodes else (0, [])


@wrong("2.5", "sum-of-all")
def no_edges_sum(nodes, edges, durations):
    if not edges:
        return sum(durations), list(range(nodes))
    return kahn(nodes, edges, durations)


@wrong("2.5", "wrong-type")
def path_names_str(nodes, edges, durations):
    L, p = kahn(nodes, edges, durations)
    return L, [str(v) for v in p]


@wrong("2.5", "path-too-short")
def path_from_wrong_pred(nodes, edges, durations):
    """length right, path follows the first predecessor"""
    preds = preds_of(nodes, edges)
    end = [0] * nodes
    for v in graphlib.TopologicalSorter({i: preds[i] for i in range(nodes)}).static_order():
        end[v] = durations[v] + max((end[a] for a in preds[v]), default=0)
    if not nodes:
        return 0, []
    v = end.index(max(end))
    L = end[v]
    p = [v]
    while preds[v]:
        v = preds[v][0]
        p.append(v)
    return L, p[::-1]


@wrong("2.5", "every-path")
def dijkstra_relax(nodes, edges, durations):
    """queue of paths; every path"""
    if not nodes:
        return 0, []
    succ = defaultdict(list)
    for a, b in edges:
        succ[a].append(b)
    best = (0, [])
    st = [(durations[i], [i]) for i in range(nodes)]
    while st:
        d, p = st.pop()
        if d > best[0]:
            best = (d, p)
        for v in succ[p[-1]]:
            st.append((d + durations[v], p + [v]))
    return best


@wrong("2.5", "forgot-last")
def two_longest(nodes, edges, durations):
    """edge weight = duration of source; sink not added"""
    preds = preds_of(nodes, edges)
    dist = [0] * nodes
    for v in graphlib.TopologicalSorter({i: preds[i] for i in range(nodes)}).static_order():
        dist[v] = max((dist[a] + durations[a] for a in preds[v]), default=0)
    return back(dist, preds, durations) if nodes else (0, [])


def build(x, p, body, gen=None):
    warm_up(body)
    g = cuda.CUDAGraph()
    if gen is not None:
        g.register_generator_state(gen)
    with cuda.graph(g):
        out = body()
    return g, out


@right("2.6")
def own_gen(x, p, seed):
    gen = torch.Generator(device=device)

    def body():
        keep = torch.rand(x.shape, generator=gen, device=x.device) >= p
        return x * keep / (1 - p)

    g, out = build(x, p, body, gen)

    def replay():
        g.replay()
        return out

    def reseed(s):
        gen.manual_seed(s)

    reseed(seed)
    return replay, reseed


@right("2.6")
def uniform_where_kept(x, p, seed):
    u = torch.empty_like(x)
    gen = torch.Generator(device=x.device)

    def body():
        u.uniform_(generator=gen)
        return torch.where(u < p, 0.0, x / (1 - p))

    g, out = build(x, p, body, gen)

    class D:
        kept = u

        def replay(self):
            g.replay()
            return out

        def reseed(self, seed):
            gen.manual_seed(int(seed))
            return self

    return D().reseed(seed)


@right("2.6")
def randint(x, p, seed):
    n = 1 << 24

    def body():
        return x.masked_fill(torch.randint(0, n, x.shape, device=x.device) < int(p * n), 0) / (1 - p)

    g, out = build(x, p, body)
    torch.manual_seed(seed)

    def replay():
        g.replay()
        return out

    return replay, torch.manual_seed


@right("2.6")
def make_graphed(x, p, seed):
    f = cuda.make_graphed_callables(lambda a: F.dropout(a, p), (x.clone(),))
    torch.manual_seed(seed)
    return (lambda: f(x)), torch.manual_seed


@wrong("2.6", "dropped-tensor")
def bern(x, p, seed):
    gen = torch.Generator(device=x.device).manual_seed(seed)
    mask = torch.empty_like(x)

    def body():
        mask.bernoulli_(1 - p, generator=gen)
        return x * mask / (1 - p)

    g, out = build(x, p, body, gen)
    gen.manual_seed(seed)

    def replay():
        g.replay()
        return out

    return [replay, gen.manual_seed]


@wrong("2.6", "dropped-tensor")
def no_x_read(x, p, seed):
    """masks computed on x at capture: x/(1-p) precomputed outside"""
    y = x / (1 - p)
    g, out = build(x, p, lambda: y * (torch.rand_like(y) >= p))
    torch.manual_seed(seed)

    def replay():
        g.replay()
        return out

    return replay, torch.manual_seed


@wrong("2.6", "drew-eagerly")
def numpy_mask(x, p, seed):

    r = [np.random.default_rng(seed)]
    mask = torch.ones_like(x)
    g, out = build(x, p, lambda: x * mask / (1 - p))

    def replay():
        mask.copy_(torch.from_numpy((r[0].random(x.shape) >= p).astype("float32")))
        g.replay()
        return out

    def reseed(s):
        r[0] = np.random.default_rng(s)

    return replay, reseed


@wrong("2.6", "work-outside")
def masks_in_graph_mul_outside(x, p, seed):
    g, m = build(x, p, lambda: torch.rand_like(x) >= p)
    torch.manual_seed(seed)

    def replay():
        g.replay()
        return x * m / (1 - p)

    return replay, torch.manual_seed


@wrong("2.6", "work-outside")
def precomputed_updated(x, p, seed):
    """x/(1-p) computed eagerly at each replay, mask in graph"""
    y = x / (1 - p)
    g, out = build(x, p, lambda: y * (torch.rand_like(y) >= p))
    torch.manual_seed(seed)

    def replay():
        y.copy_(x / (1 - p))
        g.replay()
        return out

    return replay, torch.manual_seed


@wrong("2.6", "seeds-overlap")
def seed_plus_counter(x, p, seed):
    """manual_seed(seed + step) before each replay: differs per replay, same after reseed. arguably right"""
    gen = torch.Generator(device=x.device)

    def body():
        return x * (torch.rand(x.shape, device=x.device, generator=gen) >= p) / (1 - p)

    g, out = build(x, p, body, gen)
    st = {}

    def reseed(s):
        st["s"] = s

    reseed(seed)

    def replay():
        gen.manual_seed(st["s"])
        st["s"] += 1
        g.replay()
        return out

    return replay, reseed


@wrong("2.6", "host-copy")
def cpu_generator(x, p, seed):
    gen = torch.Generator()

    def body():
        return x * (torch.rand(x.shape, generator=gen).to(x.device) >= p) / (1 - p)

    g, out = build(x, p, body)
    gen.manual_seed(seed)

    def replay():
        g.replay()
        return out

    return replay, gen.manual_seed


@wrong("2.6", "ignores-p")
def fixed_half(x, p, seed):
    g, out = build(x, p, lambda: F.dropout(x))
    torch.manual_seed(seed)

    def replay():
        g.replay()
        return out

    return replay, torch.manual_seed


@wrong("2.6", "wrong-type")
def tuple_order(x, p, seed):
    g, out = build(x, p, lambda: F.dropout(x, p))
    torch.manual_seed(seed)

    def replay():
        g.replay()
        return out

    return torch.manual_seed, replay


@wrong("2.6", "seed-ignored")
def reseed_adds(x, p, seed):
    """reseed does not restart when same seed"""
    cur = [None]
    g, out = build(x, p, lambda: F.dropout(x, p))

    def reseed(s):
        if cur[0] != s:
            torch.manual_seed(s)
            cur[0] = s

    reseed(seed)

    def replay():
        g.replay()
        return out

    return replay, reseed


@wrong("2.6", "seed-ignored")
def gens_new_per_seed(x, p, seed):
    """makes a new generator at reseed"""
    st = {"gen": torch.Generator(device=x.device)}

    def body():
        return x * (torch.rand(x.shape, device=x.device, generator=st["gen"]) >= p) / (1 - p)

    g, out = build(x, p, body, st["gen"])

    def reseed(s):
        st["gen"] = torch.Generator(device=x.device).manual_seed(s)

    reseed(seed)

    def replay():
        g.replay()
        return out

    return replay, reseed
