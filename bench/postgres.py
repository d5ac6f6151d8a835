"""One private, durable PostgreSQL: the gateway's and the floor's."""

import os
import re
import secrets
import shutil
import socket
import subprocess
import time
from pathlib import Path

#: All that differs from PostgreSQL's defaults, the same for the gateway and for the floor.
SETTINGS = {
    # Durable, said aloud: these are the defaults, and no figure here is taken with others.
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    # What anybody sets who writes in earnest.
    "shared_buffers": "2GB",
    "min_wal_size": "2GB",
    "max_wal_size": "8GB",
    "checkpoint_timeout": "30min",
    "wal_buffers": "64MB",
    "max_connections": "200",
    # Counts statements; a few per cent of the shortest ones, on both sides.
    "shared_preload_libraries": "pg_stat_statements",
    "timezone": "UTC",
    "listen_addresses": "127.0.0.1",
}

START_SECONDS = 60


class Postgres:
    """Runs between `with` and its end, in a directory that is made anew."""

    def __init__(self, directory):
        self.directory = Path(directory)
        self.programs = find_programs()
        self.password = secrets.token_hex(16)
        self.port = free_port()
        # PostgreSQL refuses to run as root.
        self.user = "postgres" if os.geteuid() == 0 else None

    def __enter__(self):
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir(parents=True)
        password_file = self.directory / "password"
        password_file.write_text(self.password)
        if self.user:
            for path in (self.directory, password_file):
                shutil.chown(path, self.user)
        self._run("initdb", "--pgdata", "data", "--username=postgres", "--auth=scram-sha-256",
                  "--pwfile=password", "--encoding=UTF8", "--locale=C", "--no-instructions")
        with open(self.directory / "data/postgresql.conf", "a", encoding="utf-8") as out:
            for name, value in {**SETTINGS, "port": self.port, "unix_socket_directories": self.directory}.items():
                out.write(f"{name} = '{value}'\n")
        self._run("pg_ctl", "start", "-D", "data", "-w", "-t", str(START_SECONDS), "-l", "log")
        self.pid = int((self.directory / "data/postmaster.pid").read_text().split()[0])
        self.sql("postgres", "CREATE EXTENSION pg_stat_statements")
        return self

    def __exit__(self, *_):
        self._run("pg_ctl", "stop", "-D", "data", "-w", "-m", "immediate")
        shutil.rmtree(self.directory)

    def _run(self, program, *arguments):
        # Into a file: pg_ctl leaves its standard output to the server, which would never close a pipe.
        said = self.directory / f"{program}.log"
        environment = {**os.environ, "LC_ALL": "C"}
        as_user = {"user": self.user, "group": self.user, "extra_groups": []} if self.user else {}
        with open(said, "wb") as out:
            status = subprocess.run([self.programs / program, *arguments], cwd=self.directory, env=environment,
                                    stdin=subprocess.DEVNULL, stdout=out, stderr=out, **as_user).returncode
        if status:
            raise RuntimeError(f"{program} failed:\n{said.read_text()}")

    def url(self, database):
        return f"postgres://postgres:{self.password}@127.0.0.1:{self.port}/{database}"

    def psql(self, database, *commands, timeout=3600):
        """What psql prints for commands of SQL or its own, unaligned."""
        arguments = [part for command in commands for part in ("-c", command)]
        done = subprocess.run(["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-d", self.url(database), *arguments],
                              capture_output=True, text=True, timeout=timeout)
        if done.returncode:
            raise RuntimeError(f"psql: {done.stderr.strip()}")
        return done.stdout

    def sql(self, database, statement):
        """Rows of one statement, each a list of texts."""
        return [line.split("|") for line in self.psql(database, statement).splitlines()]

    def number(self, database, statement):
        return float(self.sql(database, statement)[0][0])

    def timed(self, database, command):
        """Seconds of one command as psql measures them, its commit included."""
        said = self.psql(database, "\\timing on", command)
        return float(re.search(r"^Time: ([0-9.]+) ms", said, re.M).group(1)) / 1000

    def make_wal_files(self, number):
        """As a server has them that has run for a while: a new file is first filled with zeros, which would
        burden whoever writes first. A checkpoint keeps `min_wal_size` of them for use again."""
        self.sql("postgres", f"""
            SELECT count(pg_switch_wal()) FROM
                (SELECT pg_logical_emit_message(false, 'bench', '') FROM generate_series(1, {number}) OFFSET 0) written""")
        self.sql("postgres", "CHECKPOINT")

    def version(self):
        return self.sql("postgres", "SHOW server_version")[0][0]

    def create(self, database):
        self.sql("postgres", f"CREATE DATABASE {database}")

    def drop(self, database):
        self.sql("postgres", f"DROP DATABASE {database} WITH (FORCE)")

    def settle(self, most_seconds=120):
        """Leaves nothing for the next measurement to pay: dirty pages written, Kafka's too, no autovacuum at work."""
        os.sync()
        self.sql("postgres", "CHECKPOINT")
        deadline = time.monotonic() + most_seconds
        while time.monotonic() < deadline:
            if not self.number("postgres", "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'autovacuum worker'"):
                return
            time.sleep(0.2)

    def statements(self, database):
        """Statements that clients of this database have sent so far."""
        return int(self.number("postgres", f"""
            SELECT coalesce(sum(calls), 0) FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid
            WHERE d.datname = '{database}'"""))

    def commits(self, database):
        return int(self.number("postgres", f"SELECT xact_commit FROM pg_stat_database WHERE datname = '{database}'"))

    def rows_read(self, database):
        """Rows of the message table that were read so far, by scans and by indexes."""
        return int(self.number(database, """
            SELECT coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0)
            FROM pg_stat_user_tables WHERE relname LIKE 'metadata_queue_message%'
              AND relname NOT LIKE '%group_lease'"""))


def find_programs():
    """The directory of initdb and the like."""
    found = shutil.which("initdb")
    if found:
        return Path(found).parent
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if not versions:
        raise RuntimeError("PostgreSQL is not installed: scripts/setup.sh bench")
    return versions[-1].parent


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
