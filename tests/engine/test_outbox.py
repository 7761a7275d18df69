"""Tokens on their way to the host: in order, none overwritten, and nobody waits before they are wanted."""

import types
from collections import deque

import pytest
import torch
from helpers import DEVICE, PLACES
from hypothesis import given, settings
from hypothesis import strategies as st

from minillm import graphs
from minillm.engine.outbox import Kind, Outbox
from minillm.engine.request import refused_request

MOST = 4
REQUESTS = tuple(refused_request(ValueError(str(number))) for number in range(MOST))
ACTIONS = st.one_of(
    st.tuples(
        st.lists(st.integers(-1, 99), min_size=1, max_size=MOST),
        st.sampled_from(Kind),
        st.integers(1, MOST),
    ),
    st.none(),  # receive
)


def outbox():
    return Outbox(MOST, torch.device(DEVICE))


@settings(deadline=None, max_examples=60)
@given(actions=st.lists(ACTIONS, max_size=30), place=st.sampled_from([*PLACES]))
def test_what_was_sent_comes_back_in_order_whatever_is_sent_in_between(actions, place):
    with PLACES[place]():
        box, underway = outbox(), deque()
        static = torch.zeros(MOST, dtype=torch.int64, device=DEVICE)  # as the engine: always the same tensor
        for action in actions:
            if action is not None:
                tokens, kind, count = action
                requests = REQUESTS[: min(count, len(tokens))]
                static[: len(tokens)].copy_(torch.tensor(tokens, device=DEVICE))
                box.send(static[: len(tokens)], kind, requests)
                underway.append((kind, requests, tokens[: len(requests)]))
                static.fill_(-7)  # the next step overwrites them
            elif underway:
                assert box.receive() == underway.popleft()
            assert len(box) == len(underway)
        while underway:
            assert box.receive() == underway.popleft()


class Late:
    """Tokens whose copy to the host happens when somebody waits for its event, as on a GPU that is behind."""

    copies = []

    def __init__(self, values):
        self.values = torch.tensor(values)

    def __len__(self):
        return len(self.values)


class LateEvent:
    def __init__(self):
        self.copy = None

    def record(self):
        self.copy = Late.copies.pop()

    def synchronize(self):
        assert self.copy is not None, "waited for an event that was not recorded"
        self.copy()
        self.copy = None


class LateHost:
    """The host's memory of a copy; what is in it before the event is garbage."""

    def __init__(self, tensor):
        self.tensor, self.waiting = tensor, []

    def __getitem__(self, index):
        return LateHost(self.tensor[index])

    def copy_(self, tokens, non_blocking):
        assert non_blocking
        values = tokens.values.clone()
        Late.copies.append(lambda: self.tensor.copy_(values))


@pytest.fixture
def late(monkeypatch):
    """An outbox before a device that never gets on unless it is waited for."""
    monkeypatch.setattr(Late, "copies", [])
    monkeypatch.setattr(graphs, "cuda", types.SimpleNamespace(Event=LateEvent))
    box = Outbox(MOST, torch.device("cpu"))
    new, made = box._new, []

    def counted():
        host, array, event = new()
        host.fill_(-99)
        made.append(host)
        return LateHost(host), array, event

    monkeypatch.setattr(box, "_new", counted)
    return box, made


@pytest.mark.parametrize("held", [1, 2, 3, 6])
def test_a_buffer_is_filled_anew_only_after_it_was_read(late, held):
    box, made = late
    for number in range(20):
        box.send(Late([number, number + 1]), Kind.STEP, REQUESTS[:2])
        if len(box) > held:
            assert box.receive()[2] == [number - held, number - held + 1]
    assert len(made) == held + 1  # and they are used again


def test_to_send_is_not_to_wait(late, monkeypatch):
    box, _ = late
    waits = []
    monkeypatch.setattr(box, "wait", lambda event: (waits.append(event), event.synchronize()))
    for number in range(5):
        box.send(Late([number]), Kind.STEP, REQUESTS[:1])
    assert not waits
    box.receive()
    assert len(waits) == 1


def test_clear_forgets_what_is_underway_and_its_buffers():
    box = outbox()
    for number in range(3):
        box.send(torch.tensor([number], device=DEVICE), Kind.PLAIN, REQUESTS[:1])
    box.clear()
    assert len(box) == 0
    with pytest.raises(IndexError):
        box.receive()
    box.send(torch.tensor([8], device=DEVICE), Kind.PREFILL, REQUESTS[:1])
    assert box.receive() == (Kind.PREFILL, REQUESTS[:1], [8])
