"""The floor: what Postgres itself takes for the same rows, in the same table, over one connection."""

import os
import subprocess
import tempfile
from pathlib import Path

from machine import WORK
from peers import new_database

SCHEMA = "queue"
MESSAGE = f"{SCHEMA}.metadata_queue_message"

#: Where exported rows are kept for the rounds of a load.
ROWS = WORK / "rows.bin"


def migrate(bench, database):
    """The tables as the gateway makes them."""
    subprocess.run([bench.gateway, "migrate", "--database-url", bench.postgres.url(database)], check=True,
                   stdin=subprocess.DEVNULL, capture_output=True)


def columns(postgres, database):
    """All columns of a message that a client has to bring: not the identity, the generated length and
    `enqueued_at`, which Postgres gives the gateway's rows, too."""
    return postgres.sql(database, f"""
        SELECT string_agg(attname, ', ' ORDER BY attnum) FROM pg_attribute
        WHERE attrelid = '{MESSAGE}'::regclass AND attnum > 0 AND NOT attisdropped
          AND attidentity = '' AND attgenerated = '' AND attname <> 'enqueued_at'""")[0][0]


def export_rows(bench, database, path=ROWS):
    """All messages into a file of COPY's binary format."""
    wanted = columns(bench.postgres, database)
    bench.postgres.psql(database, f"\\copy (SELECT {wanted} FROM {MESSAGE}) TO '{path}' WITH (FORMAT binary)")


def copy_in(bench, path=ROWS):
    """Rows per second of one COPY and its commit, into a table as the gateway makes it."""
    with new_database(bench, "floor") as database:
        migrate(bench, database)
        wanted = columns(bench.postgres, database)
        bench.postgres.settle()
        seconds = bench.postgres.timed(database, f"\\copy {MESSAGE} ({wanted}) FROM '{path}' WITH (FORMAT binary)")
        return bench.postgres.number(database, f"SELECT count(*) FROM {MESSAGE}") / seconds


def copy_out(bench, database, topic):
    """Rows per second of COPY TO of a topic, thrown away on arrival."""
    wanted = columns(bench.postgres, database)
    rows = (f"SELECT {wanted} FROM {MESSAGE} WHERE topic_id = "
            f"(SELECT id FROM {SCHEMA}.metadata_queue_topic WHERE topic_name = '{topic}')")
    seconds = bench.postgres.timed(database, f"\\copy ({rows}) TO '/dev/null' WITH (FORMAT binary)")
    return bench.postgres.number(database, f"SELECT count(*) FROM ({rows}) r") / seconds


PGBENCH = f"""\
\\set seq :seq + 1
BEGIN;
SELECT pg_advisory_xact_lock(1);
INSERT INTO {MESSAGE} (topic_id, partition_id, enqueue_seq, routing_key, payload, payload_compression,
  kafka_flags, kafka_timestamp) VALUES (1, 0, :seq, '', decode(repeat('78', 100), 'hex'), 0, 1, 1);
COMMIT;
"""


def lock_insert_commit(bench, seconds):
    """Milliseconds of each transaction of lock, insert of one row and commit, one after the other."""
    with new_database(bench, "floor") as database:
        migrate(bench, database)
        return pgbench(bench, database, PGBENCH, seconds)


def pgbench(bench, database, script, seconds, settings=""):
    """Milliseconds of each run of a script over one connection, with prepared statements; it may count in `:seq`."""
    bench.postgres.settle()
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "script.sql")
        file.write_text(script)
        done = subprocess.run(["pgbench", "-n", "-M", "prepared", "-f", file, "-D", "seq=0", "-T", str(seconds), "-l",
                               "--log-prefix", f"{directory}/log", bench.postgres.url(database)],
                              cwd=directory, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              env={**os.environ, "PGOPTIONS": settings})
        if done.returncode:
            raise RuntimeError(f"pgbench: {done.stdout}{done.stderr}")
        log = next(Path(directory).glob("log.*")).read_text()
    return [int(line.split()[2]) / 1000 for line in log.splitlines()]
