"""A table of 50 million rows in 14 time partitions beside an empty one.

Rows are filled in by the server, in the shape of the gateway's, oldest first, so that each
partition of the topic is gapless over all time partitions. On the way, the gateway is measured at
some sizes for the plot.
"""

import contextlib
import random
import statistics
import time
from concurrent.futures import ThreadPoolExecutor

from floor import MESSAGE, SCHEMA
from kafka import Client
from load import Load, Row, milliseconds, thousands
from peers import Gateway, gateway_on_new_database, new_database

PARTITIONS = 4
DAYS = 14
CHUNK = 500_000
#: Shares of the rows at which the plot has a point.
STAGES = (0, 0.02, 0.1, 0.4, 1)
#: Some hundred records of 100 bytes.
FETCH_BYTES = 65_536


class ManyRows(Load):
    name = "many-rows"
    most_rounds = 3
    limit = 0.9
    seek_limit = 3

    def lanes(self, bench):
        return ["empty", "full"]

    @contextlib.contextmanager
    def prepared(self, bench):
        with new_database(bench, "many_rows") as database:
            with Gateway(bench, database) as gateway:
                topic = gateway.topic(PARTITIONS)
            make_time_partitions(bench.postgres, database)
            table = Table(bench, database, topic)
            stages = []
            for stage in STAGES:
                table.fill(int(bench.sizes.table_rows * stage))
                with Gateway(bench, database) as gateway:
                    stages.append({"rows": table.rows, **throughput(bench, gateway)})
            bench.extra(self.name, "by_rows", stages)
            yield table

    def measure(self, bench, lane, table):
        if lane == "empty":
            with gateway_on_new_database(bench, "few_rows") as gateway:
                return throughput(bench, gateway)
        with Gateway(bench, table.database) as gateway:
            bench.postgres.settle()
            measured = throughput(bench, gateway)
            return {**measured, **seeks(gateway, table, bench.sizes.seeks), "rows": table.rows}

    def rows(self, found):
        load = f"{thousands(found.median('full', 'rows'))} rows in {DAYS} time partitions instead of an empty table"
        rows = []
        for name, what, inverse in (("produced_per_s", "produce", False), ("consumed_per_s", "consume at the tail", False),
                                    ("tail_fetch_ms", "tail fetch", True)):
            ratio = found.ratio(name, "empty", "full") if inverse else found.ratio(name, "full", "empty")
            shown = milliseconds if inverse else (lambda value: f"{thousands(value)} records/s")
            rows.append(Row(load=f"{load}: {what}", figure=f"≥ {self.limit} ×", limit=self.limit, at_least=True, value=ratio,
                            unit="×", behind=f"{shown(found.median('full', name))}, empty {shown(found.median('empty', name))}"))
        random_ms, tail_ms = (found.median("full", name) for name in ("random_fetch_ms", "tail_fetch_ms"))
        rows.append(Row(load=f"{load}: fetch at a random old offset", figure=f"≤ {self.seek_limit} × one at the tail",
                        limit=self.seek_limit, at_least=False, value=found.ratio("random_fetch_ms", "full", "full", "tail_fetch_ms"),
                        unit="×", behind=f"median {milliseconds(random_ms)}, tail {milliseconds(tail_ms)}"))
        return rows


class Table:
    """The message table of a topic, filled step by step."""

    def __init__(self, bench, database, topic):
        self.bench, self.database, self.topic = bench, database, topic
        self.total = bench.sizes.table_rows
        self.topic_id = bench.postgres.sql(
            database, f"SELECT id FROM {SCHEMA}.metadata_queue_topic WHERE topic_name = '{topic}'")[0][0]
        self.rows = 0

    def fill(self, rows):
        """Up to so many rows; row i is of partition i % 4. Two sessions, each with two of the partitions."""
        while self.rows < rows:
            end = min(self.rows + 2 * CHUNK, rows)
            with ThreadPoolExecutor(2) as sessions:
                list(sessions.map(lambda half: self.insert(self.rows, end, half), (0, 1)))
            self.rows = end
        self.bench.postgres.psql(self.database, f"VACUUM ANALYZE {MESSAGE}")
        self.bench.postgres.settle(most_seconds=600)

    def insert(self, start, end, half):
        # All before today: what the gateway writes comes later.
        seconds = (DAYS - 1) * 86_400
        self.bench.postgres.psql(self.database, f"""
            INSERT INTO {MESSAGE} (topic_id, partition_id, enqueue_seq, routing_key, payload, payload_compression,
                kafka_flags, kafka_timestamp, enqueued_at)
            SELECT {self.topic_id}, i % {PARTITIONS}, 1 + i / {PARTITIONS}, '',
                decode(repeat(lpad(to_hex(i), 10, '0'), 20), 'hex'), 0, 1, floor(extract(epoch FROM at) * 1000)::bigint, at
            FROM generate_series({start}::bigint, {end - 1}) i
            CROSS JOIN LATERAL (SELECT date_trunc('day', now()) - interval '{DAYS - 1} days'
                + make_interval(secs => i * {seconds / self.total}) AS at) stamped
            WHERE i % 2 = {half}""")


def make_time_partitions(postgres, database):
    """Thirteen days before today's, of which the gateway has made the time partition."""
    for days in range(1, DAYS):
        day, after = (f"(date_trunc('day', now()) - interval '{number} days')" for number in (days, days - 1))
        postgres.psql(database, f"""DO $$ BEGIN EXECUTE format(
            'CREATE TABLE {MESSAGE}_p%s PARTITION OF {MESSAGE} FOR VALUES FROM (%L) TO (%L)',
            to_char({day}, 'YYYYMMDD'), {day}, {after}); END $$""")


def throughput(bench, gateway):
    """Producing to a new topic, reading that back, and single fetches at its end."""
    count = bench.sizes.table_records
    topic = gateway.topic(PARTITIONS)
    measured = bench.clients.there_and_back(gateway.bootstrap, topic, PARTITIONS, count)
    with Client(gateway.bootstrap) as client:
        ends = client.ends(topic, PARTITIONS)
        tail = [(partition, end - 300 - number % 100) for number in range(bench.sizes.seeks)
                for partition, end in [(number % PARTITIONS, ends[number % PARTITIONS])]]
        return {**measured, "tail_fetch_ms": median_fetch(client, topic, tail)}


def seeks(gateway, table, number):
    """Single fetches at offsets anywhere in the old rows."""
    chosen = random.Random(1)
    oldest = [(chosen.randrange(PARTITIONS), chosen.randrange(table.rows // PARTITIONS - 1_000)) for _ in range(number)]
    with Client(gateway.bootstrap) as client:
        return {"random_fetch_ms": median_fetch(client, table.topic, oldest)}


def median_fetch(client, topic, places):
    taken = []
    for partition, offset in places:
        started = time.perf_counter()
        records = client.fetch(topic, partition, offset, FETCH_BYTES)
        taken.append((time.perf_counter() - started) * 1000)
        if not records:
            raise RuntimeError(f"nothing at {topic}-{partition} {offset}")
    return statistics.median(taken)
