"""A text file of more than 100,000 lines goes through kcat into the tables, and comes out of them three
ways: kcat, SQL, and pgQueue's client."""

import subprocess
import sysconfig
import threading
from pathlib import Path

from pyclient import PATIENCE
from sides import Queue

LINES = 100_000
#: Messages in one transaction of pgQueue's client.
BATCH = 5_000
#: Seconds for pgQueue's client, which asks four times for every message.
LIMIT = 500


class RealFile:
    """The sources of Python's own library, one file after the other, until there are enough lines."""

    def __init__(self, context, work):
        self.context, self.topic = context, context.topic("real-file")
        self.path = Path(work) / "real-file.txt"
        self.lines = []
        for source in sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py")):
            # kcat sends a line without its end, and no line that is then empty.
            self.lines.extend(filter(None, source.read_bytes().split(b"\n")))
            if len(self.lines) > LINES:
                break
        self.path.write_bytes(b"".join(line + b"\n" for line in self.lines))

    def tests(self):
        return self.is_sent_by_kcat, self.is_read_by_kcat, self.stands_in_the_table, self.is_received_by_pgqueue

    def is_sent_by_kcat(self):
        assert len(self.lines) > LINES, f"no more than {len(self.lines)} lines in Python's library"
        self._kcat("-P", "-l", str(self.path))

    def is_read_by_kcat(self):
        # Of both partitions at once: the same lines, in another order.
        read = self._kcat("-C", "-o", "beginning", "-e")
        assert sorted(read) == sorted(self.lines), (len(read), len(self.lines))
        self._check_order(*(self._kcat("-C", "-o", "beginning", "-e", "-p", p) for p in ("0", "1")))

    def stands_in_the_table(self):
        rows = self.context.rows(
            "select m.partition_id, count(*), min(m.enqueue_seq), max(m.enqueue_seq), sum(length(m.payload)) "
            "from {}_message m join {}_topic t on t.id = m.topic_id where t.topic_name = %s group by 1 order by 1",
            self.topic,
        )
        assert [partition for partition, *_ in rows] == [0, 1], rows
        assert sum(count for _, count, *_ in rows) == len(self.lines), rows
        assert all((first, last) == (1, count) for _, count, first, last, _ in rows), rows
        assert sum(size for *_, size in rows) == sum(map(len, self.lines)), rows

    def is_received_by_pgqueue(self):
        """To the last one, by one worker for each partition."""
        received, errors = {0: [], 1: []}, []
        self._tell_the_planner()

        def work(partition):
            try:
                with Queue(self.context) as queue:
                    received[partition] = queue.drain(self.topic, "group", [partition], BATCH)
                    committed = queue.offset(self.topic, "group", partition)
                    assert committed == len(received[partition]), (committed, len(received[partition]))
            except Exception as error:
                errors.append(error)

        workers = [threading.Thread(target=work, args=(partition,), daemon=True) for partition in received]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(LIMIT)
            assert not worker.is_alive(), f"a worker is not done after {LIMIT} s"
        assert not errors, errors
        for messages in received.values():
            assert [message.seq for message in messages] == list(range(1, len(messages) + 1))
        self._check_order(*([message.payload for message in received[p]] for p in (0, 1)))

    def _tell_the_planner(self):
        """Where Postgres knows nothing of the rows, or knows of the leases that each is acknowledged, it joins
        whole tables for each look-up of pgQueue's client (`l.id is null or l.lock_owner <> …`), and hundreds
        of messages a second become a few dozen."""
        self.context.execute("analyze {}_message")
        self.context.execute("alter table {}_message_group_lease alter column lock_owner set statistics 0")

    def _kcat(self, mode, *arguments):
        """The lines that kcat prints."""
        command = ["kcat", mode, "-q", "-b", self.context.bootstrap, "-t", self.topic, "-m", str(PATIENCE)]
        done = subprocess.run([*command, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True)
        return done.stdout.split(b"\n")[:-1]

    def _check_order(self, zero, one):
        """The file must be the lines of the two partitions, each in its order, shuffled into each other."""
        assert zero and one and len(zero) + len(one) == len(self.lines), (len(zero), len(one), len(self.lines))
        # How many of the lines so far can have come from partition 0: one number, but where both go on alike.
        possible = {0}
        for n, line in enumerate(self.lines):
            possible = {i + 1 for i in possible if i < len(zero) and zero[i] == line} | {
                i for i in possible if n - i < len(one) and one[n - i] == line
            }
            assert possible, f"line {n + 1} of {self.path} is neither partition's next"
