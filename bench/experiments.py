#!/usr/bin/env python3
"""What was tried for docs/performance.md: one choice each, its variants measured in turns, and the ratio to the first.

    bench/experiments.py                                   # all but `binaries`
    bench/experiments.py --only indexes,plans
    bench/experiments.py --only binaries --other PATH      # --gateway beside another build of it

`binaries` is for what only another build can have: take the line out or put it in, build it elsewhere, and compare.
Run nothing else on the machine meanwhile.
"""

import argparse
import contextlib
import dataclasses
import re
import statistics
import tempfile
from pathlib import Path
from urllib.parse import quote

import floor
from clients import LIBRDKAFKA_DEFAULTS, ONE_BY_ONE
from floor import MESSAGE, SCHEMA
from load import Sizes, short
from loads.groups_at_tail import GroupsAtTail
from loads.many_producers import ManyProducers
from machine import ROOT
from peers import gateway_on_new_database, new_database
from run import bench_of
from tools import build_drivers, run

PARTITIONS = 4
RECORDS = 600_000
PRODUCERS = 50


@dataclasses.dataclass
class Outcome:
    experiment: str
    measure: str
    #: Variant → what each round measured.
    values: dict


def main():
    asked = arguments()
    chosen = asked.only.split(",") if asked.only else [name for name in EXPERIMENTS if name != "binaries"]
    sizes = dataclasses.replace(Sizes(), producers=PRODUCERS, window_seconds=6, latency_seconds=8, tail_seconds=10)
    with bench_of(asked.gateway, sizes, with_kafka=False) as bench:
        bench.other = asked.other
        for name in chosen:
            for outcome in in_turns(bench, name, EXPERIMENTS[name](bench), asked.rounds):
                tell(outcome)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gateway", type=Path, default=ROOT / "target/release/pgqueue-gateway", help="the binary to measure")
    parser.add_argument("--other", type=Path, help="another one, for `binaries`")
    parser.add_argument("--only", help=f"these, with commas between: {', '.join(EXPERIMENTS)}")
    parser.add_argument("--rounds", type=int, default=3, help="how often each variant has its turn (default 3)")
    return parser.parse_args()


def in_turns(bench, name, variants, rounds):
    """`variants`: name → function that returns measure → value."""
    found = {}
    with contextlib.ExitStack() as stack:
        if isinstance(variants, contextlib.AbstractContextManager):
            variants = stack.enter_context(variants)
        for _ in range(rounds):
            for variant, measure in variants.items():
                bench.postgres.settle()
                for what, value in measure().items():
                    found.setdefault(what, {}).setdefault(variant, []).append(value)
    return [Outcome(name, what, values) for what, values in found.items()]


def tell(outcome):
    first = next(iter(outcome.values.values()))
    print(f"\n{outcome.experiment}: {outcome.measure}\n\n| variant | median | ratio |\n|---|---|---|")
    for variant, values in outcome.values.items():
        ratio = statistics.median(value / base for value, base in zip(values, first))
        print(f"| {variant} | {short(statistics.median(values))} | {ratio:.2f} |", flush=True)


def produced(bench, gateway, count=RECORDS, settings=LIBRDKAFKA_DEFAULTS):
    return bench.clients.produce(gateway.bootstrap, gateway.topic(PARTITIONS), 100, count, settings)["records_per_s"]


def by_gateway(bench, *options, url=None):
    """Records of 100 bytes: in bulk, one in flight, and one each of many producers."""
    with gateway_on_new_database(bench, "experiment", *options, url=url) as gateway:
        return {
            "100 B records/s, one producer": produced(bench, gateway),
            "ms of one record in flight": bench.clients.round_trip(
                gateway.bootstrap, gateway.topic(PARTITIONS), 100, bench.sizes.latency_seconds),
            f"records/s, {PRODUCERS} producers with one each": ManyProducers().window(bench, gateway, PRODUCERS)["records_per_s"],
        }


def writers(bench):
    """Connections that write."""
    return {f"--append-writers {number}": lambda number=number: by_gateway(bench, "--append-writers", str(number))
            for number in (2, 1, 4)}


def socket(bench):
    """TCP over loopback, or the Unix socket."""
    at = quote(str(bench.postgres.directory), safe="")

    def over_unix():
        url = re.sub(r"@[^/]*/", f"@{at}:{bench.postgres.port}/", bench.postgres.url("experiment"))
        return by_gateway(bench, url=url)
    return {"TCP": lambda: by_gateway(bench), "Unix socket": over_unix}


def batches(bench):
    """Records of a batch with one batch in flight: up to 128 go in one statement, more by COPY."""
    def of(number):
        settings = {**ONE_BY_ONE, "linger.ms": 50, "batch.num.messages": number, "queue.buffering.max.messages": 2 * number}
        with gateway_on_new_database(bench, "experiment") as gateway:
            return {"records/s": produced(bench, gateway, min(RECORDS, 4_000 * number), settings)}
    return {f"{number} records": lambda number=number: of(number) for number in (1, 4, 16, 64, 128, 129, 256, 1024)}


def binaries(bench):
    """Two builds of the gateway."""
    def by(binary):
        before, bench.gateway = bench.gateway, str(binary)
        try:
            measured = by_gateway(bench)
            for variant, measure in batches(bench).items():
                measured |= {f"{what}, {variant} a batch": value for what, value in measure().items()}
            return measured
        finally:
            bench.gateway = before
    return {"--gateway": lambda: by(bench.gateway), "--other": lambda: by(bench.other)}


@contextlib.contextmanager
def rows_of_the_gateway(bench):
    """A file of rows as the gateway writes them, for COPY."""
    with tempfile.NamedTemporaryFile(dir=bench.postgres.directory.parent) as file:
        with gateway_on_new_database(bench, "experiment") as gateway:
            produced(bench, gateway)
            floor.export_rows(bench, gateway.database, file.name)
        yield file.name


def copied(bench, rows, *changes):
    """Rows/s of one COPY into the gateway's table, changed like that."""
    with new_database(bench, "experiment") as database:
        floor.migrate(bench, database)
        wanted = floor.columns(bench.postgres, database)
        for change in changes:
            bench.postgres.psql(database, change)
        bench.postgres.settle()
        seconds = bench.postgres.timed(database, f"\\copy {MESSAGE} ({wanted}) FROM '{rows}' WITH (FORMAT binary)")
        return {"rows/s of COPY": bench.postgres.number(database, f"SELECT count(*) FROM {MESSAGE}") / seconds}


@contextlib.contextmanager
def identity(bench):
    """Ids that a session takes from the sequence at once."""
    with rows_of_the_gateway(bench) as rows:
        cache = f"ALTER TABLE {MESSAGE} ALTER COLUMN id SET CACHE "
        yield {f"CACHE {number}": lambda number=number: copied(bench, rows, cache + str(number)) for number in (1, 32, 1000)}


@contextlib.contextmanager
def indexes(bench):
    """Each index and each check of the message table taken away, and all of them."""
    with rows_of_the_gateway(bench) as rows:
        with new_database(bench, "experiment") as database:
            floor.migrate(bench, database)
            constraints = bench.postgres.sql(database, f"""
                SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint
                WHERE conrelid = '{MESSAGE}'::regclass AND contype IN ('p', 'u', 'c', 'f') ORDER BY 1""")
            plain = bench.postgres.sql(database, f"""
                SELECT i.indexrelid::regclass, pg_get_indexdef(i.indexrelid) FROM pg_index i
                WHERE i.indrelid = '{MESSAGE}'::regclass
                  AND NOT EXISTS (SELECT FROM pg_constraint c WHERE c.conindid = i.indexrelid) ORDER BY 1""")
        drops = {f"without {definition} ({name})": f"ALTER TABLE {MESSAGE} DROP CONSTRAINT {name} CASCADE"
                 for name, definition in constraints}
        drops |= {f"without {definition.split(' USING ')[1]} ({name})": f"DROP INDEX {name}" for name, definition in plain}
        variants = {"as it is": lambda: copied(bench, rows)}
        variants |= {name: lambda drop=drop: copied(bench, rows, drop) for name, drop in drops.items()}
        yield {**variants, "without any": lambda: copied(bench, rows, *drops.values())}


@contextlib.contextmanager
def drivers(bench):
    """The gateway's driver beside another, by a program of their own: COPY, and single rows."""
    program = build_drivers()
    insert = (f"INSERT INTO {MESSAGE} (topic_id, partition_id, enqueue_seq, routing_key, payload, payload_compression, "
              "kafka_flags, kafka_timestamp) VALUES (0, 0, $1, '', decode(repeat('78', 100), 'hex'), 0, 1, 1)")

    def by(driver, rows):
        with new_database(bench, "experiment") as database:
            floor.migrate(bench, database)
            copy = f"COPY {MESSAGE} ({floor.columns(bench.postgres, database)}) FROM STDIN (FORMAT binary)"
            bench.postgres.settle()
            said = run([program, driver, bench.postgres.url(database), copy, rows, insert, 5_000], ROOT)
            seconds, milliseconds = map(float, said.split())
            return {"rows/s of COPY": RECORDS / seconds, "ms of one row": milliseconds}
    with rows_of_the_gateway(bench) as rows:
        yield {driver: lambda driver=driver: by(driver, rows) for driver in ("sqlx", "tokio-postgres")}


#: As the gateway's connections have it.
GENERIC = "-c plan_cache_mode=force_generic_plan"
PAYLOAD = "decode(repeat('78', 100), 'hex')"

#: The parameters of the gateway's statement for one row, by number.
ONE_ROW = dict(enumerate([
    "ARRAY[{topic}]::bigint[]", "ARRAY[0]::int[]", "ARRAY[1]::bigint[]", "ARRAY[:seq]::bigint[]", "ARRAY[1]::int[]",
    "ARRAY[:seq]::bigint[]", "ARRAY['']::text[]", f"ARRAY[{PAYLOAD}]::bytea[]", "ARRAY[0]::smallint[]", "ARRAY[NULL]::text[]",
    "ARRAY[NULL]::bytea[]", "ARRAY[1]::smallint[]", "ARRAY[1]::bigint[]", "ARRAY[1]::bigint[]", "ARRAY[NULL]::bigint[]",
    "ARRAY[NULL]::smallint[]", "ARRAY[NULL]::int[]", "ARRAY[NULL]::int[]"], 1))

#: The same for one row of one partition, with plain parameters: the best that a function can do.
FUNCTION = f"""
CREATE FUNCTION append(of_topic bigint, of_partition int, lock_key bigint, seq bigint, payload bytea) RETURNS void
LANGUAGE plpgsql AS $$ BEGIN
    PERFORM pg_advisory_xact_lock(lock_key);
    INSERT INTO {MESSAGE} (topic_id, partition_id, enqueue_seq, routing_key, payload, payload_compression, kafka_flags,
        kafka_timestamp, kafka_max_timestamp)
    SELECT t.id, of_partition, seq, '', payload, 0::smallint, 1::smallint, 1, 1 FROM {SCHEMA}.metadata_queue_topic t
    WHERE t.id = of_topic AND of_partition < t.partition_count
        AND NOT EXISTS (SELECT FROM {MESSAGE} m
            WHERE m.topic_id = of_topic AND m.partition_id = of_partition AND m.enqueue_seq >= seq)
        AND NOT EXISTS (SELECT FROM {SCHEMA}.metadata_queue_kafka_partition k
            WHERE k.topic_id = of_topic AND k.partition_id = of_partition AND k.next_seq > seq);
END $$"""


@contextlib.contextmanager
def statements(bench):
    """One row with its commit, and what each part of the gateway's statement costs, by pgbench."""
    with gateway_on_new_database(bench, "experiment") as gateway:
        # The first append to a partition is not known well enough for the statement.
        produced(bench, gateway, 100, ONE_BY_ONE)
        ours = bench.postgres.sql("postgres", "SELECT query FROM pg_stat_statements WHERE query LIKE 'WITH part AS %'")[0][0]

    def of(script):
        with gateway_on_new_database(bench, "experiment") as gateway:
            topic = topic_id(bench, gateway.topic(1))
            bench.postgres.psql("experiment", FUNCTION)
            script = "\\set seq :seq + 1\n" + script.replace("{topic}", topic)
            return {"ms": statistics.median(floor.pgbench(bench, "experiment", script, 5, GENERIC))}
    texts = {
        "lock, insert, commit: the floor": floor.PGBENCH.split("\n", 1)[1],
        "nothing but a round trip": "SELECT :seq::bigint;",
        "insert alone": f"""INSERT INTO {MESSAGE} (topic_id, partition_id, enqueue_seq, routing_key, payload,
            payload_compression, kafka_flags, kafka_timestamp) VALUES ({{topic}}, 0, :seq, '', {PAYLOAD}, 0, 1, 1);""",
        "the gateway's": re.sub(r"\$(\d+)", lambda found: ONE_ROW[int(found.group(1))], ours) + ";",
        "a function": f"SELECT append({{topic}}, 0, 1, :seq, {PAYLOAD});",
    }
    yield {name: lambda text=text: of(text) for name, text in texts.items()}


def topic_id(bench, topic):
    return bench.postgres.sql("experiment", f"SELECT id FROM {SCHEMA}.metadata_queue_topic WHERE topic_name = '{topic}'")[0][0]


@contextlib.contextmanager
def plans(bench):
    """The gateway's read of a few rows over many time partitions, by the kind of plan."""
    read = f"""\\set seq random(1, 90000)
        SELECT m.enqueue_seq, m.kafka_timestamp, m.payload FROM {MESSAGE} m WHERE m.topic_id = 1 AND m.partition_id = 0
          AND m.enqueue_seq >= :seq AND m.priority >= 0 ORDER BY m.enqueue_seq LIMIT 10;"""

    def asked(mode, database):
        return {"ms of reading 10 rows": statistics.median(
            floor.pgbench(bench, database, read, 5, f"-c plan_cache_mode={mode} -c jit=off"))}
    with contextlib.ExitStack() as stack:
        variants = {}
        for days in (0, 30, 400):
            database = stack.enter_context(new_database(bench, f"days_{days}"))
            floor.migrate(bench, database)
            bench.postgres.psql(database, f"""DO $$ BEGIN FOR n IN 1 .. {days} LOOP EXECUTE format(
                'CREATE TABLE {MESSAGE}_x%s PARTITION OF {MESSAGE} FOR VALUES FROM (%L) TO (%L)', n,
                date_trunc('day', now()) - make_interval(days => n), date_trunc('day', now()) - make_interval(days => n - 1));
                END LOOP; END $$""", f"""
                INSERT INTO {MESSAGE} (topic_id, partition_id, enqueue_seq, routing_key, payload, payload_compression, kafka_timestamp)
                SELECT 1, 0, i, '', {PAYLOAD}, 0, 1 FROM generate_series(1, 100000) i""")
            variants |= {f"{mode}, {days} time partitions more": lambda mode=mode, database=database: asked(mode, database)
                         for mode in ("force_generic_plan", "force_custom_plan", "auto")}
        yield variants


def tail_cache(bench):
    """Five groups at the end of a topic, with and without the tail cache (storage.md D13)."""
    def read(*options):
        measured = GroupsAtTail().measure(bench, "5 groups", None, *options)
        return {what.replace("_", " "): measured[what] for what in ("statements_a_record", "rows_read_a_record")}
    return {"--tail-cache-bytes 32 MiB": read, "--tail-cache-bytes 0": lambda: read("--tail-cache-bytes", "0")}


EXPERIMENTS = {"writers": writers, "socket": socket, "batches": batches, "identity": identity, "indexes": indexes,
               "drivers": drivers, "statements": statements, "plans": plans, "tail-cache": tail_cache, "binaries": binaries}

if __name__ == "__main__":
    main()
