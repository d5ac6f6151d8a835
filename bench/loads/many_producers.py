"""Many producers that each send one record a request, and wait for it, beside one such producer.

Each is a process of rdkafka_performance with linger.ms=0, batch.num.messages=1, max.in.flight=1.
What counts is the growth of the log in a window in which all of them are connected, not what a
process says of itself.
"""

import time

from clients import ONE_BY_ONE
from load import Load, Row, listed, thousands
from peers import Gateway, gateway_on_new_database

PARTITIONS = 4
WARM_UP_SECONDS = 3


class ManyProducers(Load):
    name = "many-producers"
    limit = 25
    records_a_transaction = 30

    def lanes(self, bench):
        servers = ["gateway"] + (["kafka", "kafka-flush"] if bench.kafka else [])
        return [f"{server}, {number}" for server in servers for number in ("one", "many")]

    def measure(self, bench, lane, prepared):
        server, number = lane.split(", ")
        number = bench.sizes.producers if number == "many" else 1
        if server == "gateway":
            with gateway_on_new_database(bench, "many_producers") as gateway:
                return self.window(bench, gateway, number)
        return self.window(bench, bench.kafka.flushing() if server == "kafka-flush" else bench.kafka, number)

    def window(self, bench, server, number):
        topic = server.topic(PARTITIONS)
        counted = isinstance(server, Gateway)
        idle = self.idle_commits_per_s(bench, server) if counted else 0
        with bench.clients.endless_producers(number, server.bootstrap, topic, 100, ONE_BY_ONE) as producers:
            self.wait_connected(server, topic, producers)
            commits, records, started = self.look(bench, server, topic, counted)
            time.sleep(bench.sizes.window_seconds)
            commits_after, records_after, ended = self.look(bench, server, topic, counted)
            if any(producer.poll() is not None for producer in producers):
                raise RuntimeError("a producer has ended")
        seconds = ended - started
        measured = {"records_per_s": (records_after - records) / seconds, "producers": number}
        if counted:
            written = commits_after - commits - idle * seconds
            measured["records_a_transaction"] = (records_after - records) / written
        return measured

    @staticmethod
    def look(bench, server, topic, counted):
        commits = bench.postgres.commits(server.database) if counted else 0
        return commits, server.records(topic, PARTITIONS), time.monotonic()

    @staticmethod
    def idle_commits_per_s(bench, gateway):
        """What the gateway commits in any case. Postgres' own counters are up to a second behind."""
        before, started = bench.postgres.commits(gateway.database), time.monotonic()
        time.sleep(5)
        return (bench.postgres.commits(gateway.database) - before) / (time.monotonic() - started)

    @staticmethod
    def wait_connected(server, topic, producers):
        """Every producer has its connection (it keeps the one that it began with), and records arrive."""
        deadline = time.monotonic() + 120
        while established(server.bootstrap) < len(producers) or server.records(topic, PARTITIONS) < len(producers):
            if time.monotonic() > deadline:
                raise RuntimeError("the producers did not connect within two minutes")
            time.sleep(0.2)
        time.sleep(WARM_UP_SECONDS)

    def rows(self, found):
        many, one = (found.median(f"gateway, {number}", "records_per_s") for number in ("many", "one"))
        number = found.median("gateway, many", "producers")
        together = found.median("gateway, many", "records_a_transaction")
        peers = [(server, found.median(f"{server}, many", "records_per_s"), found.median(f"{server}, one", "records_per_s"))
                 for server in ("kafka", "kafka-flush")]
        return [
            Row(load=f"{number:.0f} producers, one record a request, linger 0",
                figure=f"≥ {self.limit} × one such producer", limit=self.limit, at_least=True,
                value=found.ratio("records_per_s", "gateway, many", "gateway, one"), unit="×",
                behind=f"{thousands(many)} records/s, one {thousands(one)}",
                peers=listed(*((server, all_, f"{thousands(all_)}/s, one {thousands(single)}")
                               for server, all_, single in peers))),
            Row(load=f"{number:.0f} such producers: records a transaction",
                figure=f"mean ≥ {self.records_a_transaction}", limit=self.records_a_transaction, at_least=True,
                value=together, unit="records", behind="commits of Postgres less those of an idle gateway"),
        ]


def established(bootstrap):
    """Connections of clients to a server, counted by the kernel."""
    port = f":{int(bootstrap.rsplit(':', 1)[1]):04X}"
    count = 0
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(table, encoding="ascii") as sockets:
            fields = [line.split() for line in sockets]
        # The server's end: its port is the local one, 01 is ESTABLISHED.
        count += sum(field[1].endswith(port) and field[3] == "01" for field in fields)
    return count
