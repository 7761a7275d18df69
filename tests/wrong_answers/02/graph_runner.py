"""Answers to 2.2, as classes that differ from a right one in one place."""

import torch

from minillm.engine.runner import GraphRunner
from minillm.grading.corpus import right, wrong
from minillm.graphs import cuda, warm_up


class Base:
    """Right; the others below it change one step of it."""

    def __init__(self, fn, inputs):
        self.fn = fn
        self.static = self.own(inputs)
        self.prepare()
        self.graph = cuda.CUDAGraph()
        with cuda.graph(self.graph):
            self.output = self.record()
        self.afterwards()

    def own(self, inputs):
        return {name: tensor.clone() for name, tensor in inputs.items()}

    def prepare(self):
        warm_up(lambda: self.fn(**self.static))

    def record(self):
        return self.fn(**self.static)

    def afterwards(self):
        pass

    def refuse(self, values):
        for name, value in values.items():
            if name not in self.static:
                raise TypeError(name)
            if value.shape != self.static[name].shape or value.dtype != self.static[name].dtype:
                raise ValueError(name)

    def load(self, values):
        for name, value in values.items():
            self.static[name].copy_(value)

    def __call__(self, **values):
        self.refuse(values)
        self.load(values)
        self.graph.replay()
        return self.output


right("2.2")(Base)


@right("2.2")
class Asserts:
    """Compact, with assertions, and a copy of the output at each call."""

    def __init__(self, fn, inputs):
        self.buffers = {k: torch.empty_like(v).copy_(v) for k, v in inputs.items()}
        stream = cuda.Stream()
        stream.wait_stream(cuda.current_stream())
        with cuda.stream(stream):
            fn(**self.buffers)
        cuda.current_stream().wait_stream(stream)
        self.g = cuda.CUDAGraph()
        with cuda.graph(self.g, stream=stream):
            self.out = fn(**self.buffers)

    def __call__(self, **new):
        assert new.keys() <= self.buffers.keys()
        assert all(
            (self.buffers[k].shape, self.buffers[k].dtype) == (v.shape, v.dtype) for k, v in new.items()
        )
        for k, v in new.items():
            self.buffers[k].copy_(v, non_blocking=True)
        self.g.replay()
        return self.out.clone()


def as_a_closure(fn, inputs):
    """A function that makes a function will do: only the call counts."""
    static = {name: tensor.detach().clone() for name, tensor in inputs.items()}
    warm_up(lambda: fn(**static), times=1)
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        output = fn(**static)

    def run(**values):
        pairs = []
        for name in values:
            old, new = static[name], values[name]
            if old.size() != new.size() or old.dtype is not new.dtype:
                raise ValueError(f"{name}: expected {old.dtype} {old.shape}, got {new.dtype} {new.shape}")
            pairs.append((old, new))
        for old, new in pairs:
            old.copy_(new)
        graph.replay()
        return output

    return run


right("2.2")(as_a_closure)


@right("2.2")
class CopiesIntoAnOutputBuffer(Base):
    """As vLLM does: the result goes to a buffer from outside the pool, at the price of one node."""

    def prepare(self):
        super().prepare()
        self.result = torch.empty_like(self.static["hidden"])

    def record(self):
        return self.result.copy_(self.fn(**self.static))


@right("2.2")
class SlicesOfLargerBuffers:
    """As engines do: one buffer for the largest batch, of which the graph uses the first rows."""

    def __init__(self, fn, inputs):
        self.rows = len(next(iter(inputs.values())))
        self.large = {}
        for name, tensor in inputs.items():
            self.large[name] = tensor.new_zeros(64, *tensor.shape[1:])
            self.large[name][: self.rows] = tensor
        views = {name: large[: self.rows] for name, large in self.large.items()}
        self.wanted = {name: (view.shape, view.dtype) for name, view in views.items()}
        warm_up(lambda: fn(**views))
        self.graph = cuda.CUDAGraph()
        with cuda.graph(self.graph):
            self.result = fn(**views)

    def __call__(self, **values):
        if wrong_names := set(values) - set(self.wanted):
            raise KeyError(wrong_names)
        if any((v.shape, v.dtype) != self.wanted[n] for n, v in values.items()):
            raise RuntimeError("shape or dtype")
        for name, value in values.items():
            self.large[name][: self.rows] = value
        self.graph.replay()
        return self.result


@wrong("2.2", "callers-tensors")
class Aliases(Base):
    def own(self, inputs):
        return dict(inputs)


@wrong("2.2", "callers-tensors")
class DetachIsNoCopy(Base):
    def own(self, inputs):
        return {name: tensor.detach() for name, tensor in inputs.items()}


@wrong("2.2", "dropped-input")
class KeepsOthers(Base):
    """The block table of the articles' manager: captured on a tensor that nobody keeps."""

    def afterwards(self):
        self.static["positions"] = self.static["positions"].clone()


@wrong("2.2", "dropped-input")
class KeepsNone:
    def __init__(self, fn, inputs):
        static = {name: tensor.clone() for name, tensor in inputs.items()}
        warm_up(lambda: fn(**static))
        self.graph, self.inputs = cuda.CUDAGraph(), {name: t.clone() for name, t in inputs.items()}
        with cuda.graph(self.graph):
            self.output = fn(**static)

    def __call__(self, **values):
        for name, value in values.items():
            self.inputs[name].copy_(value)
        self.graph.replay()
        return self.output


@wrong("2.2", "clone-in-graph")
class ClonesTheOutput(Base):
    def record(self):
        return self.fn(**self.static).clone()


@wrong("2.2", "clone-in-graph")
class ClonesTheInputs(Base):
    def record(self):
        return self.fn(**{name: tensor.clone() for name, tensor in self.static.items()})


@wrong("2.2", "rebinds")
class PutsIntoTheDict(Base):
    def load(self, values):
        for name, value in values.items():
            self.static[name] = value


@wrong("2.2", "rebinds")
class UpdatesTheDict(Base):
    def load(self, values):
        self.static = {**self.static, **values}


@wrong("2.2", "rebinds")
class BindsALocalName(Base):
    def load(self, values):
        for name, value in values.items():
            static = self.static[name]
            static = value.clone()  # noqa: F841


@wrong("2.2", "rebinds")
class ClonesIntoAnotherDict(Base):
    def afterwards(self):
        self.inputs = dict(self.static)

    def load(self, values):
        for name, value in values.items():
            self.inputs[name] = value.clone()


@wrong("2.2", "stale-input")
class ForgetsThePositions(Base):
    """As the articles' manager does."""

    def load(self, values):
        for name in values.keys() & {"token_ids", "hidden"}:
            self.static[name].copy_(values[name])


@wrong("2.2", "stale-input")
class ReturnsFromTheLoop(Base):
    def load(self, values):
        for name, value in values.items():
            self.static[name].copy_(value)
            return


@wrong("2.2", "late-copy")
class ReplaysFirst(Base):
    def __call__(self, **values):
        self.refuse(values)
        self.graph.replay()
        self.load(values)
        return self.output


@wrong("2.2", "not-replayed")
class OnlyLoads(Base):
    def __call__(self, **values):
        self.refuse(values)
        self.load(values)
        return self.output


@wrong("2.2", "recaptures")
class CapturesAtEachCall(Base):
    def __call__(self, **values):
        self.refuse(values)
        self.load(values)
        self.graph = cuda.CUDAGraph()
        with cuda.graph(self.graph):
            self.output = self.fn(**self.static)
        self.graph.replay()
        return self.output


@wrong("2.2", "not-captured")
class CapturesAtTheFirstCall(Base):
    def __init__(self, fn, inputs):
        self.fn, self.static, self.graph = fn, self.own(inputs), None
        self.prepare()

    def __call__(self, **values):
        self.refuse(values)
        self.load(values)
        if self.graph is None:
            self.graph = cuda.CUDAGraph()
            with cuda.graph(self.graph):
                self.output = self.fn(**self.static)
        self.graph.replay()
        return self.output


@wrong("2.2", "calls-fn")
class CallsItToo(Base):
    def __call__(self, **values):
        self.refuse(values)
        self.load(values)
        self.graph.replay()
        return self.fn(**self.static)


@wrong("2.2", "no-warm-up")
class NoWarmUp(Base):
    def prepare(self):
        pass


@wrong("2.2", "no-warm-up")
class WarmsUpByAReplay(Base):
    """As one of the articles has it."""

    def prepare(self):
        pass

    def afterwards(self):
        self.graph.replay()


@wrong("2.2", "warm-up-after")
class WarmsUpAfterwards(Base):
    def prepare(self):
        pass

    def afterwards(self):
        warm_up(lambda: self.fn(**self.static))


@wrong("2.2", "warm-up-on-default-stream")
class WarmsUpOnTheDefaultStream(Base):
    def prepare(self):
        self.fn(**self.static)
        cuda.synchronize()


@wrong("2.2", "captured-twice")
class WarmsUpInTheCapture(Base):
    def record(self):
        self.fn(**self.static)
        return self.fn(**self.static)


@wrong("2.2", "waits-in-capture")
class LooksInTheCapture(Base):
    def record(self):
        output = self.fn(**self.static)
        assert not output.isnan().any()
        return output


@wrong("2.2", "waits-in-capture")
class DownloadsInTheCapture(Base):
    def record(self):
        return self.fn(**self.static).cpu()


@wrong("2.2", "default-stream")
class BeginsByHand:
    def __init__(self, fn, inputs):
        self.static, self.graph = {n: t.clone() for n, t in inputs.items()}, cuda.CUDAGraph()
        warm_up(lambda: fn(**self.static))
        self.graph.capture_begin()
        self.output = fn(**self.static)
        self.graph.capture_end()

    def __call__(self, **values):
        self.graph.replay()
        return self.output


@wrong("2.2", "replayed-too-early")
class ReplaysInTheCapture(Base):
    def record(self):
        output = self.fn(**self.static)
        self.graph.replay()
        return output


@wrong("2.2", "missing-name")
class WantsAllNames(Base):
    def refuse(self, values):
        super().refuse(values)
        if values.keys() != self.static.keys():
            raise TypeError("some are missing")


@wrong("2.2", "missing-name")
class GoesThroughItsOwnNames(Base):
    def load(self, values):
        for name, static in self.static.items():
            static.copy_(values[name])


@wrong("2.2", "missing-name")
class ZeroesWhatIsMissing(Base):
    def load(self, values):
        for name, static in self.static.items():
            static.copy_(values.get(name, torch.zeros_like(static)))


@wrong("2.2", "unknown-name")
class IgnoresUnknownNames(Base):
    def __call__(self, **values):
        known = {name: value for name, value in values.items() if name in self.static}
        return super().__call__(**known)


@wrong("2.2", "unknown-name")
class LoopsOverItsOwn(Base):
    def refuse(self, values):
        pass

    def load(self, values):
        for name, static in self.static.items():
            if name in values:
                static.copy_(values[name])


@wrong("2.2", "broadcast")
class TrustsCopy(Base):
    def refuse(self, values):
        for name in values:
            self.static[name]


@wrong("2.2", "broadcast")
class LooksAtTheWidth(Base):
    def refuse(self, values):
        for name, value in values.items():
            if value.dtype != self.static[name].dtype or value.dim() != self.static[name].dim():
                raise ValueError(name)


@wrong("2.2", "converted")
class LooksAtShapesOnly(Base):
    def refuse(self, values):
        for name, value in values.items():
            if value.shape != self.static[name].shape:
                raise ValueError(name)


@wrong("2.2", "converted")
class ConvertsItself(Base):
    def __call__(self, **values):
        return super().__call__(**{n: v.to(self.static[n].dtype) for n, v in values.items()})


@wrong("2.2", "half-loaded")
class ChecksAsItGoes(Base):
    def refuse(self, values):
        pass

    def load(self, values):
        for name, value in values.items():
            super().refuse({name: value})
            self.static[name].copy_(value)


@wrong("2.2", "shared-state")
class OnTheClass(Base):
    static = {}

    def own(self, inputs):
        self.static.update({name: tensor.clone() for name, tensor in inputs.items()})
        return self.static


class OneGraph(Base):
    """The graph stands on the class, so the second runner takes it from the first."""

    def afterwards(self):
        OneGraph.shared = self.graph, self.output

    def __call__(self, **values):
        self.refuse(values)
        self.load(values)
        graph, output = OneGraph.shared
        graph.replay()
        return output


wrong("2.2", "shared-state")(OneGraph)


@wrong("2.2", "wrong-value")
class OutOfDate(Base):
    """A copy of the output, made once."""

    def afterwards(self):
        self.graph.replay()
        self.graph, self.output = self.graph, self.output * 0


@wrong("2.2", "wrong-type")
class ReturnsAllOfIt(Base):
    def __call__(self, **values):
        return [super().__call__(**values)]


@wrong("2.2", "returned-nothing")
class NoReturn(Base):
    def __call__(self, **values):
        super().__call__(**values)


@wrong("2.2", "reexport")
class Derived(GraphRunner):
    """Has checks, but is ours."""


@wrong("2.2", "reexport")
class Wrapped:
    def __init__(self, fn, inputs):
        self.runner = GraphRunner(fn, {name: tensor.clone() for name, tensor in inputs.items()})

    def __call__(self, **values):
        return self.runner(**values)
