"""What five groups at the end of a log cost Postgres more than one: statements, and rows read."""

import contextlib
import time

from clients import LIBRDKAFKA_DEFAULTS
from load import Load, Row, thousands
from peers import Gateway, new_database

PARTITIONS = 4
RATE = 2_000


class GroupsAtTail(Load):
    name = "groups-at-tail"
    limit = 1.2
    most_rounds = 3

    def lanes(self, bench):
        return ["1 group", "5 groups"]

    def measure(self, bench, lane, prepared, *options):
        groups = int(lane.split()[0])
        postgres = bench.postgres
        with new_database(bench, "groups_at_tail") as database:
            with Gateway(bench, database, *options) as gateway, contextlib.ExitStack() as members:
                topic = gateway.topic(PARTITIONS)
                consumers = [
                    members.enter_context(bench.clients.group_consumer(gateway.bootstrap, topic, f"tail-{number}"))
                    for number in range(groups)]
                postgres.settle()
                statements, rows_read = postgres.statements(database), postgres.rows_read(database)
                with bench.clients.endless_producers(1, gateway.bootstrap, topic, 100, LIBRDKAFKA_DEFAULTS, rate=RATE):
                    time.sleep(bench.sizes.tail_seconds)
                sent = gateway.records(topic, PARTITIONS)
                for consumer in consumers:
                    received = consumer.stop()
                    # At the tail: of what was sent, all but the last moment's.
                    if received < 0.9 * sent:
                        raise RuntimeError(f"a group received {received:.0f} of {sent} records")
                statements = postgres.statements(database) - statements
            # Counters of rows reach Postgres at the latest when the gateway's connections end.
            rows_read = postgres.rows_read(database) - rows_read
        return {"records": sent, "statements": statements, "rows_read": rows_read,
                "statements_a_record": statements / sent, "rows_read_a_record": rows_read / sent}

    def rows(self, found):
        rows = []
        for name, what in (("statements", "statements"), ("rows_read", "rows read")):
            rows.append(Row(
                load=f"5 groups at the tail instead of 1: {what}", figure=f"≤ {self.limit} ×", limit=self.limit,
                at_least=False, value=found.ratio(f"{name}_a_record", "5 groups", "1 group"), unit="×",
                behind=f"{thousands(found.median('5 groups', name))} for {thousands(found.median('5 groups', 'records'))} records, "
                       f"one group {thousands(found.median('1 group', name))} for {thousands(found.median('1 group', 'records'))}"))
        return rows
