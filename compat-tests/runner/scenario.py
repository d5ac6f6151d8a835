"""What every scenario of groups has: a topic and a group of its own, members, load, and the check at the end."""

import contextlib
import itertools
import json
import signal
import threading
import time

from .client import Failed
from .history import History
from .load import Load
from .member import Member
from .server import Server
from .watch import PATIENCE, Watch

#: README.md promises 10; on a busy machine the rebalance in which a member ends takes longer.
CLOSE_SECONDS = 30
#: Of every member, in seconds: `session.timeout.ms` and `heartbeat.interval.ms` of the verb.
SESSION_TIMEOUT = 6
HEARTBEAT = 0.5
#: Seconds between two looks at what the server says to be committed.
LOOK = 0.2

_ids = itertools.count(1)
_run_id = f"{time.time_ns() // 1_000_000:x}"


class Scenario:
    """In `with`: members may be added, and the load runs. `finish` ends it and returns the faults."""

    def __init__(self, bootstrap, assignor, partitions):
        self.bootstrap, self.assignor, self.partitions = bootstrap, assignor, partitions
        self.group = self.topic = f"groups-{_run_id}-{next(_ids)}"
        self.faults = []
        self._numbers = itertools.count(1)
        self._stack = contextlib.ExitStack()

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.server = stack.enter_context(Server(self.bootstrap))
            self.server.create_topic(self.topic, self.partitions)
            self.load = stack.enter_context(Load(self.bootstrap, self.topic, self.partitions))
            self.watch = stack.enter_context(Watch())
            stack.enter_context(self._observer())
            # Some clients end when they do not find the topic at once.
            self.load.send_to_all()
            self.load.start()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *failure):
        return self._stack.__exit__(*failure)

    def save(self, path):
        """All that was told, a line each."""
        with open(path, "w", encoding="ascii") as lines:
            for event in self.watch.events:
                lines.write(json.dumps([event.moment, event.member, event.kind, event.fields]) + "\n")

    @contextlib.contextmanager
    def _observer(self):
        """Asks the server all the time what is committed."""
        ending = threading.Event()

        def look():
            try:
                with Server(self.bootstrap) as server:
                    while not ending.wait(LOOK):
                        offsets = server.committed(self.group, self.topic, self.partitions)
                        self.watch.note(None, "seen", offsets=offsets)
            except Exception as error:  # noqa: BLE001 -- whatever it is, it ends the scenario
                self.watch.fail(f"the server cannot be asked any more: {error!r}")

        thread = threading.Thread(target=look)
        thread.start()
        try:
            yield
        finally:
            ending.set()
            thread.join()

    # Members.

    def start(self, client, instance_id=None):
        name = f"{self.group}-{next(self._numbers)}-{client.name}"
        member = Member(client, name, self.bootstrap, self.topic, self.group, self.assignor, instance_id)
        self.watch.add(member)
        return member

    def close(self, *members):
        """Ends their input, and waits until they have left in order."""
        with self.quiet(*members):
            for member in members:
                self.watch.note(member.name, "closing")
                member.end_input()
            for member in members:
                self.watch.wait(f"{member.name} ends", lambda: self.has_told(member, "exited"), CLOSE_SECONDS)
                if not self.has_told(member, "closed"):
                    self.faults.append(f"{member.name} ended without a word, see {member.log}")

    def kill(self, member):
        """Returns when it was: not at once where a member needs quiet."""
        with self.quiet(member):
            self.watch.note(member.name, "killed")
            killed = time.monotonic()
            member.signal(signal.SIGKILL)
            self.watch.wait(f"{member.name} is gone", lambda: self.has_told(member, "exited"))
        return killed

    def pause(self, member):
        self.watch.note(member.name, "paused")
        member.signal(signal.SIGSTOP)

    def resume(self, member):
        self.watch.note(member.name, "resumed")
        member.signal(signal.SIGCONT)

    @contextlib.contextmanager
    def quiet(self, *members):
        """No load meanwhile, and all of it read and committed before, where a member needs that to end."""
        needed = self.load.running() and not all(member.claim["commits_after_processing"] for member in members)
        if needed:
            self.load.stop()
            self.wait_drained()
        yield
        if needed:
            self.load.start()

    # Conditions to wait for.

    def has_told(self, member, kind, since=0):
        return any(e.member == member.name and e.kind == kind for e in self.watch.events[since:])

    def wait_owners(self, *members):
        """Until these members have all partitions, and each of them some, as far as they tell it. A member that
        was killed or is paused does not count, whatever it told before."""
        telling = [member.name for member in members if member.claim["rebalance_events"]]
        since = len(self.watch.events)

        def settled():
            owned = [self.watch.owned[name] for name in telling]
            total = sum(map(len, owned))
            complete = total == self.partitions if len(telling) == len(members) else total <= self.partitions
            # The others show by their records that they have some.
            quiet = [m for m in members if m.name not in telling and not self.has_told(m, "record", since)]
            return all(owned) and complete and not quiet

        self.watch.wait(f"partitions are with {[member.name for member in members]}", settled)

    def wait_read_on(self, partitions=None):
        """Until what was sent up to now is read, of these partitions or of all of them."""
        ends = {p: end for p, end in self.load.ends().items() if partitions is None or p in partitions}
        self.watch.wait(f"all is read up to {ends}", lambda: self.all_read(ends))

    def all_read(self, ends):
        if self.load.error:
            raise Failed(f"the load ended: {self.load.error!r}")
        return all(len(self.watch.read.get(partition, ())) >= end for partition, end in ends.items())

    def wait_drained(self):
        """Until everything is read and committed; the load stands still."""
        self.wait_read_on()
        ends = {partition: end for partition, end in self.load.ends().items() if end}
        deadline = time.monotonic() + PATIENCE
        while self.committed() != ends:
            if time.monotonic() > deadline:
                raise Failed(f"not within {PATIENCE} s: {ends} committed, but {self.committed()}")
            time.sleep(0.1)

    def committed(self):
        return self.server.committed(self.group, self.topic, self.partitions)

    def wait_group(self, what, condition):
        """Until what DescribeGroups says is so."""
        deadline = time.monotonic() + PATIENCE
        while not condition(group := self.server.group(self.group)):
            self.watch.raise_error()
            if time.monotonic() > deadline:
                raise Failed(f"not within {PATIENCE} s: {what}, the group is {group}")
            time.sleep(0.02)

    # The end.

    def finish(self, *members):
        """Lets these members, the last ones, read everything, closes them, and checks all that was told."""
        self.load.stop()
        self.wait_drained()
        for member in members:
            if member.process.poll() is not None:
                self.faults.append(f"{member.name} ended by itself, see {member.log}")
        self.close(*members)
        without_events = [m.name for m in self.watch.members.values() if not m.claim["rebalance_events"]]
        history = History(self.watch.events, without_events)
        return self.faults + history.check(self.load.sent, self.committed())
