"""A transaction that holds its snapshot for ten minutes, so that nothing can be vacuumed, under a
steady load of a producer and a committing group.

In between, bursts of a producer and a reader as fast as they can: the last ones under the
snapshot beside those before it.
"""

import statistics
import subprocess
import time

from clients import LIBRDKAFKA_DEFAULTS
from load import Load, Row, thousands
from peers import gateway_on_new_database

PARTITIONS = 4
RATE = 2_000
BURSTS = 5


class HeldSnapshot(Load):
    name = "held-snapshot"
    most_rounds = 1
    limit = 0.95

    def lanes(self, bench):
        return ["gateway"]

    def measure(self, bench, lane, prepared):
        with gateway_on_new_database(bench, "held_snapshot") as gateway:
            steady = gateway.topic(PARTITIONS)
            # Commits ten times a second: each leaves dead rows behind.
            member = bench.clients.group_consumer(gateway.bootstrap, steady, "steady", "-X", "auto.commit.interval.ms=100")
            producer = bench.clients.endless_producers(1, gateway.bootstrap, steady, 100, LIBRDKAFKA_DEFAULTS, rate=RATE)
            with member, producer:
                self.burst(bench, gateway)
                before = [self.burst(bench, gateway) for _ in range(BURSTS)]
                with HeldTransaction(bench.postgres, gateway.database):
                    time.sleep(bench.sizes.held_seconds)
                    during = [self.burst(bench, gateway) for _ in range(BURSTS)]
        measured = {"held_s": bench.sizes.held_seconds}
        for name in ("produced_per_s", "consumed_per_s"):
            measured[name] = statistics.median(burst[name] for burst in during)
            measured[name + "_before"] = statistics.median(burst[name] for burst in before)
        return measured

    @staticmethod
    def burst(bench, gateway):
        count = bench.sizes.growth_records
        topic = gateway.topic(PARTITIONS)
        produced = bench.clients.produce(gateway.bootstrap, topic, 100, count)
        consumed = bench.clients.consume(gateway.bootstrap, topic, PARTITIONS, count)
        return {"produced_per_s": produced["records_per_s"], "consumed_per_s": consumed["records_per_s"]}

    def rows(self, found):
        held = found.median("gateway", "held_s")
        rows = []
        for name, what in (("produced_per_s", "produce"), ("consumed_per_s", "consume")):
            during, before = found.median("gateway", name), found.median("gateway", name + "_before")
            rows.append(Row(load=f"snapshot held for {held / 60:.0f} min: {what}", figure=f"≥ {self.limit} ×", limit=self.limit,
                            at_least=True, value=during / before, unit="×",
                            behind=f"{thousands(during)} records/s, before {thousands(before)}"))
        return rows


class HeldTransaction:
    """An open transaction with a snapshot; in another database it would not hold back this one's vacuum."""

    def __init__(self, postgres, database):
        self.process = subprocess.Popen(["psql", "-XAtq", "-d", postgres.url(database)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        self.process.stdin.write("BEGIN ISOLATION LEVEL REPEATABLE READ;\nSELECT 'held', pg_current_snapshot();\n")
        self.process.stdin.flush()
        if not self.process.stdout.readline().startswith("held"):
            raise RuntimeError("no snapshot")
        return self

    def __exit__(self, *_):
        self.process.communicate("COMMIT;\n")
