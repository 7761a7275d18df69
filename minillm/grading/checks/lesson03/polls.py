"""Event.query and Stream.query as on a busy device, so that a loop that asks until it is done shows."""

from contextlib import ExitStack, contextmanager
from unittest.mock import patch

from minillm.graphs import cuda


class Polls:
    """Within ``on()`` the first answer is no. Who asks again with nothing done in between waits: `spun()`."""

    def __init__(self, spun):
        self._spun, self._asked, self._done = spun, {}, 0

    def something_done(self) -> None:
        """The host did something else than to ask."""
        self._done += 1

    @contextmanager
    def on(self):
        with ExitStack() as stack:
            for owner in (cuda.Event, cuda.Stream):
                stack.enter_context(patch.object(owner, "query", self._query(owner.query)))
            stack.enter_context(patch.object(cuda.Event, "record", self._record(cuda.Event.record)))
            yield

    def _query(self, original):
        def query(subject):
            is_done, before = original(subject), self._asked.get(subject)
            again = before is not None and (before[0] == self._done or not isinstance(subject, cuda.Stream))
            spins = again and before[0] == self._done
            if spins and not before[1]:  # one wait, however often it asks
                self._spun()
            self._asked[subject] = self._done, spins
            return is_done and again

        return query

    def _record(self, original):
        def record(event, *args, **kwargs):
            self._asked.pop(event, None)
            return original(event, *args, **kwargs)

        return record
