"""Reads what all members of a scenario write, in passes, into one list of events (history.py)."""

import json
import select
import signal
import threading
import time

from .client import Failed
from .history import Event

#: Seconds for what takes a few on an idle machine: the longest is a session time-out and a rebalance.
PATIENCE = 180


class Watch:
    """In `with`. What no event is needed for stands in the three dicts and sets below."""

    def __init__(self):
        self.events = []
        self.members = {}
        #: {member: the partitions that it has}, {partition: the offsets that were read}
        self.owned, self.read = {}, {}
        self._changed = threading.Condition()
        self._moment = 0
        self._error = None
        self._ending = False
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        with self._changed:
            self._ending = True
        self._thread.join()
        for member in self.members.values():
            if member.process.poll() is None:
                member.signal(signal.SIGKILL)
            member.reap()

    def add(self, member):
        with self._changed:
            self.members[member.name] = member
            self.owned[member.name] = set()

    def note(self, member, kind, **fields):
        """An event of the runner's own."""
        with self._changed:
            self._add(Event(self._moment, member, kind, fields))

    def wait(self, what, condition, seconds=PATIENCE):
        """Until `condition()`, which may look at everything here, is true. Raises Failed when it takes too long."""
        deadline = time.monotonic() + seconds
        with self._changed:
            while not condition():
                self.raise_error()
                left = deadline - time.monotonic()
                if left <= 0:
                    raise Failed(f"not within {seconds} s: {what}; owned: {self.owned}")
                # Some conditions look at more than the events.
                self._changed.wait(min(left, 0.2))

    def fail(self, why):
        """Ends what the scenario waits for."""
        self._error = self._error or Failed(why)

    def raise_error(self):
        if self._error:
            raise self._error

    def _run(self):
        while True:
            with self._changed:
                if self._ending:
                    return
                # Every pass looks at all of them: see `moment` in history.py.
                self._moment += 1
                running = {m.process.stdout.fileno(): m for m in self.members.values() if not m.process.stdout.closed}
            poll = select.poll()
            for number in running:
                poll.register(number, select.POLLIN)
            ready = poll.poll(50)
            with self._changed:
                for number, _ in ready:
                    self._read(running[number])
                self._changed.notify_all()

    def _read(self, member):
        lines, ended = member.lines()
        for line in lines:
            try:
                fields = json.loads(line)
                event = Event(self._moment, member.name, fields.pop("event"), fields)
                self._add(event)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                self.fail(f"{member.name} prints {line[:200]!r}: {error!r}")
        if ended:
            self._add(Event(self._moment, member.name, "exited", {"status": member.reap()}))

    def _add(self, event):
        self.events.append(event)
        if event.kind == "assigned":
            self.owned[event.member].update(event.fields["partitions"])
        elif event.kind in ("revoked", "lost"):
            self.owned[event.member].difference_update(event.fields["partitions"])
        elif event.kind == "record":
            self.read.setdefault(event.fields["partition"], set()).add(event.fields["offset"])
        elif event.kind == "exited":
            self.owned[event.member].clear()
