"""`dev` with a real file, then the gateway against each kind of schema: `run.sh all BINARY [SERVER_URL]`."""

import os
import sys
import time
from urllib.parse import urlsplit, urlunsplit

import psycopg2

import suite  # noqa: F401 - registers every test
from harness import Tally
from history import History
from real_file import RealFile
from runner.gateway import Gateway, dev_gateway
from schema_again import run_datahub_setup
from sides import Context


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit("usage: run.sh all BINARY [SERVER_URL]")
    work, binary, *server_url = sys.argv[1:]
    os.makedirs(work, exist_ok=True)
    tally = Tally()
    tally.run("dev: from start to stop", dev, tally, binary, work, *server_url)
    return tally.finish()


def dev(tally, binary, work, server_url=None):
    with dev_gateway(binary, f"{work}/dev.log") as (gateway, url):
        file = RealFile(Context(url, "queue", "metadata_queue", gateway.kafka), work)
        for test in file.tests():
            tally.run(f"dev: a real file {test.__name__}", test)
        every_schema(tally, binary, work, server_url or url)


def every_schema(tally, binary, work, server_url):
    """Each kind in a database of its own, that no other has been in."""
    for kind, function, schema, prefix in (
        ("lean", made_by_the_gateway, "queue", "metadata_queue"),
        ("datahub", made_by_the_gateway, "other_schema", "other_prefix"),
        ("migrated", made_by_datahub, "queue", "metadata_queue"),
    ):
        database = f"compat_{kind}_{time.time_ns():x}"
        administer(server_url, f"create database {database}")
        try:
            context = Context(with_database(server_url, database), schema, prefix, None)
            tally.run(f"{kind}: from start to stop", function, tally, binary, context, kind, f"{work}/{kind}.log")
        finally:
            administer(server_url, f"drop database {database} with (force)")


def serve(binary, context, profile, log):
    return Gateway(
        binary,
        ["serve", "--database-url", context.database_url, "--schema", context.schema,
         "--table-prefix", context.prefix, "--schema-profile", profile,
         # Groups have no other members to wait for.
         "--group-initial-rebalance-delay-ms", "0"],
        log,
    )


def made_by_the_gateway(tally, binary, context, profile, log):
    with serve(binary, context, profile, log) as gateway:
        context.bootstrap = gateway.kafka
        tally.run_all(context, f"{profile}: ")


def made_by_datahub(tally, binary, context, kind, log):
    """pgQueue alone first; then the gateway migrates while a pgQueue writer writes on."""
    run_datahub_setup(context)
    tally.run_all(context, f"before {kind}: ")
    history = History(context)
    history.write()
    history.start_writer()
    try:
        with serve(binary, context, "lean", log) as gateway:
            context.bootstrap = gateway.kafka
            tally.run(f"{kind}: pgQueue writers go on", history.stop_writer)
            tally.run(f"{kind}: every row is read through Kafka", history.every_row_is_read_through_kafka)
            tally.run(f"{kind}: a group goes on where it was", history.the_group_goes_on_where_it_was)
            tally.run_all(context, f"{kind}: ")
    finally:
        history.stop.set()


def with_database(url, database):
    return urlunsplit(urlsplit(url)._replace(path=f"/{database}"))


def administer(server_url, statement):
    connection = psycopg2.connect(server_url)
    try:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(statement)
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(main())
