"""A transaction that holds its snapshot for ten minutes, so that nothing can be vacuumed, under load.

Two gateways, each on a database of its own and under the same steady load; the transaction is in
one of the two databases, and holds back the vacuum of that one only. After the ten minutes, with
transaction and load still there, a producer and a reader go as fast as they can against the one
and the other in turn, on the topic that has the load.
"""

import contextlib
import subprocess
import time

from load import Load, Row, thousands
from peers import gateway_on_new_database

PARTITIONS = 4
#: A producer that ever waits for its last ten records: a hundred or two requests a second, without the
#: tool's own pacing, which is a busy loop.
STEADY = {"linger.ms": 5, "queue.buffering.max.messages": 10}
#: Commits ten times a second: each leaves a dead row behind.
COMMITTING = ("-X", "auto.commit.interval.ms=100")


class HeldSnapshot(Load):
    name = "held-snapshot"
    limit = 0.95

    def lanes(self, bench):
        return ["held", "free"]

    @contextlib.contextmanager
    def prepared(self, bench):
        with contextlib.ExitStack() as stack:
            servers = {}
            for lane in self.lanes(bench):
                gateway = stack.enter_context(gateway_on_new_database(bench, f"snapshot_{lane}"))
                topic = gateway.topic(PARTITIONS)
                servers[lane] = gateway, topic
                # What a new topic and its first reader cost once.
                bench.clients.there_and_back(gateway.bootstrap, topic, PARTITIONS, bench.sizes.growth_records)
                stack.enter_context(bench.clients.flow(gateway.bootstrap, topic, STEADY, *COMMITTING))
            stack.enter_context(held_transaction(bench.postgres, servers["held"][0].database))
            time.sleep(bench.sizes.held_seconds)
            yield servers

    def measure(self, bench, lane, servers):
        gateway, topic = servers[lane]
        # Read back from as far before the end as there are so many records: the topic holds more by now.
        count = bench.sizes.growth_records
        measured = bench.clients.there_and_back(gateway.bootstrap, topic, PARTITIONS, count, first=-(count // PARTITIONS))
        return {**measured, "held_s": bench.sizes.held_seconds}

    def rows(self, found):
        held = found.median("held", "held_s")
        rows = []
        for name, what in (("produced_per_s", "produce"), ("consumed_per_s", "consume")):
            during, free = found.median("held", name), found.median("free", name)
            rows.append(Row(load=f"snapshot held for {held / 60:g} min: {what}", figure=f"≥ {self.limit} ×", limit=self.limit,
                            at_least=True, value=found.ratio(name, "held", "free"), unit="×",
                            behind=f"{thousands(during)} records/s, without it {thousands(free)}"))
        return rows


@contextlib.contextmanager
def held_transaction(postgres, database):
    """An open transaction with a snapshot; in another database it would not hold back this one's vacuum."""
    session = subprocess.Popen(["psql", "-XAtq", "-d", postgres.url(database)], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
    session.stdin.write("BEGIN ISOLATION LEVEL REPEATABLE READ;\nSELECT 'held', pg_current_snapshot();\n")
    session.stdin.flush()
    if not session.stdout.readline().startswith("held"):
        raise RuntimeError("no snapshot")
    try:
        yield
    finally:
        session.communicate("COMMIT;\n")
