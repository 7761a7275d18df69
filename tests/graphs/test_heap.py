"""What holds of device and host memory, on a GPU and in an emulated heap alike."""

import pytest
import torch
from conftest import NO_GPU
from test_refusals import works

from minillm import graphs

MiB = 1 << 20
TWO_DEVICES = "Expected all tensors to be on the same device"
NO_COPY = "Cannot copy between CPU and CUDA tensors during CUDA graph capture unless the CPU tensor is pinned"
# Only where the two memories are apart: not on the emulator as it is without a heap.
pytestmark = pytest.mark.parametrize("backend", ["heap", pytest.param("cuda", marks=NO_GPU)], indirect=True)


# ---- outside of a capture
def test_downloads_copy(device):
    x = torch.ones(4, device=device)
    kept = [x.cpu(), x.to("cpu"), x.to(device="cpu"), torch.tensor(x.tolist())]
    x.fill_(2)
    assert [k.tolist() for k in kept] == [[1] * 4] * 4
    host = kept[0]
    assert host.cpu() is host and host.to("cpu") is host and host.numpy().tolist() == [1] * 4


def test_uploads_copy_and_moves_within_the_device_do_not(device):
    host = torch.ones(4)
    x = host.to(device)
    y = torch.as_tensor(host, device=device)
    host.fill_(2)
    assert x.tolist() == y.tolist() == [1] * 4
    assert x.to(device) is x and torch.as_tensor(x, device=device) is x


def test_a_download_may_change_the_dtype_too(device):
    x = torch.tensor([1.5, 2.5], device=device)
    host = x.to("cpu", torch.float64)
    x.zero_()
    assert host.dtype == torch.float64 and host.numpy().tolist() == [1.5, 2.5]


@pytest.mark.parametrize("make", [lambda x: x.numpy(), lambda x: x.__array__()])
def test_numpy_is_for_the_host(device, make):
    x = torch.ones(4, device=device)
    with pytest.raises(TypeError, match="can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu()"):
        make(x)
    assert make(x.cpu()).tolist() == [1] * 4


MIXED = {
    "add": lambda x, host: x + host,
    "other way round": lambda x, host: host + x,
    "in place": lambda x, host: x.mul_(host),
    "cat": lambda x, host: torch.cat([x, host]),
    "where": lambda x, host: torch.where(x > 0, x, host),
}


@pytest.mark.parametrize("name", MIXED)
def test_device_and_host_do_not_mix(device, name):
    x, host = torch.ones(4, device=device), torch.ones(4)
    with pytest.raises(RuntimeError, match=TWO_DEVICES):
        MIXED[name](x, host)
    assert x.tolist() == host.tolist() == [1] * 4


def test_numbers_and_indices_may_come_from_the_host(device):
    x = torch.arange(4.0, device=device)
    assert (x * torch.tensor(2.0)).tolist() == [0, 2, 4, 6]
    assert x[torch.tensor([3, 1])].tolist() == x[[3, 1]].tolist() == [3, 1]
    x[torch.tensor([0, 1])] = 7.0
    x[2] = torch.tensor(8.0)
    x[3:].copy_(torch.tensor([9.0]))
    assert x.tolist() == [7, 7, 8, 9]


def test_results_are_where_their_operands_are(device):
    x, host = torch.ones(4, device=device), torch.ones(4)
    for like in (torch.zeros_like, torch.empty_like, lambda t: t.new_zeros(4), lambda t: t * 2, torch.clone):
        assert (x + like(x)).shape == (host + like(host)).shape == (4,)
        with pytest.raises(RuntimeError, match=TWO_DEVICES):
            x + like(host)
        with pytest.raises(RuntimeError, match=TWO_DEVICES):
            host + like(x)


def test_a_default_device(device):
    torch.set_default_device(device)
    try:
        x = torch.ones(4)
    finally:
        torch.set_default_device(None)
    assert (x + torch.ones(4, device=device)).tolist() == [2] * 4


def test_a_module_and_its_gradients(device):
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
    wanted, x = [p.detach().clone() for p in model.parameters()], torch.ones(2, 3)
    expect = model(x)
    expect.sum().backward()
    grads = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    model.to(device)
    got = model(x.to(device))
    got.sum().backward()
    assert torch.allclose(got.cpu(), expect, atol=1e-6)
    for p, weight, grad in zip(model.parameters(), wanted, grads, strict=True):
        assert p.is_leaf and p.requires_grad and torch.equal(p.detach().cpu(), weight)
        assert torch.allclose(p.grad.cpu(), grad, atol=1e-6)
        with pytest.raises(RuntimeError, match=TWO_DEVICES):
            p.detach() + weight


def test_gradients_flow_through_moves_and_back_to_where_their_tensors_are(device):
    host, x = torch.ones(3, requires_grad=True), torch.ones(3, device=device, requires_grad=True)
    (host.to(device) * 2).cpu().sum().backward()
    assert host.grad.numpy().tolist() == [2] * 3
    ((x * x).cpu() * torch.full((3,), 3.0)).sum().backward()
    assert (x.grad + torch.ones(3, device=device)).tolist() == [7] * 3
    with pytest.raises(RuntimeError, match=TWO_DEVICES):
        x.grad + host.grad


# ---- inside a capture
def test_a_number_from_the_host_is_frozen(device, grab):
    x, scale = torch.ones(2, device=device), torch.tensor(3.0)
    g, y = grab(lambda: x * scale)
    scale.fill_(5)
    g.replay()
    assert y.tolist() == [3, 3]


REFUSED = {
    "copy_": lambda x, host: x.copy_(host),
    "copy_ of a number": lambda x, host: x.copy_(host[0]),
    "to": lambda x, host: host.to(x.device),
    "as_tensor": lambda x, host: torch.as_tensor(host, device=x.device),
    "to the host": lambda x, host: host.copy_(x),
    "to cpu": lambda x, host: x.to("cpu"),
    "index": lambda x, host: x[host.long()],
    "index write": lambda x, host: x.__setitem__(host.long(), 1.0),
}


@pytest.mark.filterwarnings("ignore:The CUDA Graph is empty")
@pytest.mark.parametrize("name", REFUSED)
def test_pageable_copies_are_refused_wherever_the_tensor_was_made(cuda, device, grab, name):
    x, host = torch.zeros(4, device=device), torch.ones(4)
    with pytest.raises(RuntimeError, match=NO_COPY):
        grab(lambda: REFUSED[name](x, host))
    assert works(cuda, device)


@pytest.mark.filterwarnings("ignore:The CUDA Graph is empty")
def test_arithmetic_with_a_host_tensor_is_refused(cuda, device, grab):
    x, host = torch.zeros(4, device=device), torch.ones(4)
    with pytest.raises(RuntimeError, match=TWO_DEVICES):
        grab(lambda: x + host)
    assert works(cuda, device)


def test_host_tensors_compute_at_once(device, grab):
    x, host = torch.ones(4, device=device), torch.ones(4)
    g, _ = grab(lambda: (host.add_(1), x.add_(1)))
    assert host.tolist() == [2] * 4
    g.replay()
    assert host.tolist() == [2] * 4 and x.tolist() == [2] * 4


@pytest.mark.parametrize(
    "upload",
    [
        lambda x, pinned: x.copy_(pinned, non_blocking=True) + 0,
        lambda x, pinned: pinned.to(x.device, non_blocking=True),
        lambda x, pinned: pinned.to(device=x.device, non_blocking=True),
    ],
)
def test_a_copy_from_pinned_memory_reads_it_at_every_replay(device, grab, upload):
    x, pinned = torch.zeros(4, device=device), torch.ones(4).pin_memory()
    assert pinned.is_pinned() and not torch.ones(4).is_pinned()
    g, y = grab(lambda: upload(x, pinned))
    for value in (5.0, 6.0):
        pinned.fill_(value)
        g.replay()
        assert y.tolist() == [value] * 4


def test_a_copy_to_pinned_memory(cuda, device, grab):
    x, pinned = torch.zeros(4, device=device), torch.empty(4, pin_memory=True)
    g, _ = grab(lambda: pinned.copy_(x, non_blocking=True))
    x.fill_(3)
    g.replay()
    cuda.synchronize()
    assert pinned.tolist() == [3] * 4


def test_a_copy_that_waits_is_refused_from_pinned_memory_too(cuda, device):
    x, pinned, seen = torch.zeros(4, device=device), torch.ones(4).pin_memory(), []
    with pytest.raises(RuntimeError, match="previous error during capture"):
        with cuda.graph(cuda.CUDAGraph()):
            try:
                x.copy_(pinned)
            except RuntimeError as error:
                seen.append(str(error))
    assert "not permitted when stream is capturing" in seen[0]
    graphs.recover()
    assert works(cuda, device)


# ---- freed memory
def test_the_address_of_a_freed_input_belongs_to_the_next_tensor(device, grab):
    """And nobody says so: no error, no warning."""

    def build():
        x = torch.zeros(MiB, device=device)
        return x.data_ptr(), grab(lambda: x + 1)

    address, (g, y) = build()
    squatter = torch.full((MiB,), 41.0, device=device)
    g.replay()
    assert squatter.data_ptr() == address and y.unique().tolist() == [42]


def test_an_in_place_graph_writes_into_the_next_tensor(device, grab):
    def build():
        x = torch.zeros(MiB, device=device)
        return grab(lambda: x.add_(1))[0]

    g = build()
    victim = torch.full((MiB,), 41.0, device=device)
    g.replay()
    assert victim.unique().tolist() == [42]


def test_eager_memory_is_handed_out_again(device):
    x = torch.full((1000,), 7.0, device=device)
    address = x.data_ptr()
    del x
    y = torch.empty(1000, device=device)
    assert y.data_ptr() == address and y.unique().tolist() == [7]  # empty means not cleared
