"""One member of a consumer group, for clients that are driven from Python (the verb `group` of README.md)."""

import json
import os
import signal
import sys
import threading

#: Of every member, in ms.
SESSION_TIMEOUT = 6_000
HEARTBEAT_INTERVAL = 500
REBALANCE_TIMEOUT = 15_000
#: One poll: how long it waits, in ms, and how many records it takes.
POLL = 200
POLL_RECORDS = 50

#: A member must end within 10 s. Some clients wait in their poll for a rebalance to end, which may take
#: longer: after so many seconds they are interrupted, as with Ctrl-C.
PATIENCE_WITH_A_POLL = 3


def tell(event, **fields):
    sys.stdout.write(json.dumps({"event": event, **fields}) + "\n")
    sys.stdout.flush()


class Input:
    """Whether standard input has ended, which ends the member: `at_end` is called then."""

    def __init__(self, at_end=None):
        self._ended, self._seen = threading.Event(), threading.Event()
        self._at_end = at_end or self._interrupt
        threading.Thread(target=self._read, daemon=True).start()

    def ended(self):
        if self._ended.is_set():
            self._seen.set()
        return self._seen.is_set()

    def _read(self):
        while os.read(0, 4096):
            pass
        self._ended.set()
        self._at_end()

    def _interrupt(self):
        if not self._seen.wait(PATIENCE_WITH_A_POLL):
            os.kill(os.getpid(), signal.SIGINT)


class Processed:
    """What was printed and not committed yet, and the one commit whose answer is awaited."""

    def __init__(self):
        #: {partition: next offset}
        self._next, self._asked = {}, None

    def record(self, partition, offset, value):
        tell("record", partition=partition, offset=offset, value=bytes(value).hex())
        self._next[partition] = offset + 1

    def to_commit(self):
        """{} as long as an answer is awaited."""
        return {} if self._asked else self.all_to_commit()

    def all_to_commit(self):
        """The answer to a commit before this one is not waited for any more."""
        self._asked = dict(self._next) or None
        return dict(self._next)

    def committed(self, offsets):
        """These were committed."""
        if offsets != self._asked:
            return
        self._asked = None
        for partition, offset in sorted(offsets.items()):
            tell("committed", partition=partition, offset=offset)
            # What came in meanwhile stays.
            if self._next.get(partition) == offset:
                del self._next[partition]

    def refused(self, offsets, error):
        """Whoever owns the partitions now reads them again; what stays ours is committed with the next poll."""
        if offsets == self._asked:
            self._asked = None
            tell("commit_failed", error=str(error) or type(error).__name__)

    def assigned(self, partitions):
        tell("assigned", partitions=sorted(partitions))

    def revoked(self, partitions, event="revoked"):
        tell(event, partitions=sorted(partitions))
        for partition in partitions:
            self._next.pop(partition, None)
        self._asked = None
