"""Which tensor lands where in a graph's pool, and what the pool takes from the device.

A pattern: captures apart by ``|`` that share one pool; ``a=5000`` allocates 5000 bytes, ``-a`` lets them
go, ``!a`` lets them go after that capture has ended, ``^0`` then deletes the first graph, ``@1`` or ``@2``
chooses the capture's stream, ``/2`` the stream for what follows within it (forked; all are joined at the
end).  K and M are KiB and MiB.
"""

import torch

from .helpers import places, segments, streams


def size(text):
    return eval(text.replace("K", "*1024").replace("M", "*1048576"))


def one_capture(cuda, words, others, live, met, device):
    used = []
    for word in words:
        if word[0] == "/":
            stream = others[int(word[1:])]
            stream.wait_stream(cuda.current_stream())
            used.append(stream)
            cuda.set_stream(stream)
        elif word[0] == "-":
            del live[word[1:]]
        elif word[0] not in "!@^":
            name, _, amount = word.partition("=")
            live[name] = torch.empty(size(amount), dtype=torch.uint8, device=device)
            met.append((name, live[name].data_ptr()))
    return used


def let_go(words, live, kept):
    for word in words:
        if word[0] == "!":
            del live[word[1:]]
        elif word[0] == "^":
            kept[int(word[1:])] = None


def pattern(text):
    def run(cuda, device):
        pool, x = cuda.graph_pool_handle(), torch.zeros(1, device=device)
        others, live, met, kept, taken = streams(cuda, 3), {}, [], [], []
        for part in text.split("|"):
            words = part.split()
            own = [others[int(w[1:])] for w in words if w[0] == "@"]
            g = cuda.CUDAGraph()
            with cuda.graph(g, pool=pool, **({"stream": own[0]} if own else {})):
                x.add_(1)
                main = cuda.current_stream()
                used = one_capture(cuda, words, others, live, met, device)
                cuda.set_stream(main)
                for stream in used:
                    main.wait_stream(stream)
            kept.append(g)
            del g
            let_go(words, live, kept)
            taken.append(sorted(bytes for _, bytes in segments(pool)))
        at = places(pool, [address for _, address in met])
        return {"places": [[n, p] for (n, _), p in zip(met, at, strict=True)], "segments": taken[-1]}

    return run


def sizes(text):
    """The segments after each capture, for pools that die and come back: their addresses say nothing."""

    def run(cuda, device):
        pool, x, live, kept, taken = cuda.graph_pool_handle(), torch.zeros(1, device=device), {}, [], []
        for part in text.split("|"):
            g = cuda.CUDAGraph()
            with cuda.graph(g, pool=pool):
                x.add_(1)
                one_capture(cuda, part.split(), [], live, [], device)
            kept.append(g)
            del g
            let_go(part.split(), live, kept)
            taken.append(sorted(bytes for _, bytes in segments(pool)))
        return taken

    return run
