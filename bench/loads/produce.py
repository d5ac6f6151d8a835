"""Throughput of one producer beside one COPY of the same rows.

rdkafka_performance with linger.ms=5, librdkafka's default, and once as the tool itself sets it (a
second). The floor is one COPY and its commit, of the rows that the gateway wrote for this load.
"""

from floor import copy_in, export_rows
from load import Load, Row, listed, thousands, times
from peers import gateway_on_new_database

PARTITIONS = 4


class Produce(Load):
    size = 0
    limit = 0.0
    #: Kafka's own tool, and the settings of rdkafka_performance itself.
    others = False

    def records(self, bench):
        raise NotImplementedError

    def lanes(self, bench):
        lanes = ["gateway", "floor"]
        if bench.kafka:
            lanes += ["kafka", "kafka-flush"]
            if self.others:
                lanes += ["gateway, linger 1 s", "gateway, Java", "kafka, Java"]
        return lanes

    def measure(self, bench, lane, prepared):
        if lane == "floor":
            return {"records_per_s": copy_in(bench)}
        if not lane.startswith("gateway"):
            return self.send(bench, bench.kafka.flushing() if lane == "kafka-flush" else bench.kafka, lane)
        with gateway_on_new_database(bench, "produce") as gateway:
            measured = self.send(bench, gateway, lane)
            if lane == "gateway":
                export_rows(bench, gateway.database)
            return measured

    def send(self, bench, server, lane):
        topic = server.topic(PARTITIONS)
        if lane.endswith("Java"):
            return bench.clients.java_produce(server.bootstrap, topic, self.size, bench.sizes.java_records)
        settings = {"linger.ms": 1000} if lane.endswith("linger 1 s") else None
        count = self.records(bench)
        measured = bench.clients.produce(server.bootstrap, topic, self.size, count, settings)
        if server.records(topic, PARTITIONS) != count:
            raise RuntimeError(f"{lane} has another number of records than were acknowledged")
        return measured

    def rows(self, found):
        gateway, floor = (found.median(lane, "records_per_s") for lane in ("gateway", "floor"))
        more = [(lane, found.median(lane, "records_per_s")) for lane in
                ("kafka", "kafka-flush", "gateway, linger 1 s", "gateway, Java", "kafka, Java")]
        return [Row(
            load=f"produce, {self.size:,} B, acks=all, 4 partitions, one librdkafka producer",
            figure=f"≥ {self.limit} × the floor (COPY BINARY)", limit=self.limit, at_least=True,
            value=found.ratio("records_per_s", "gateway", "floor"), unit="×",
            behind=f"{thousands(gateway)} records/s, floor {thousands(floor)}",
            peers=listed(*((lane, value, f"{thousands(value)}/s ({times(gateway / value)})")
                           for lane, value in more if value)))]


class Produce100(Produce):
    name, size, limit, others = "produce-100", 100, 0.7, True

    def records(self, bench):
        return bench.sizes.small_records


class Produce1K(Produce):
    name, size, limit = "produce-1k", 1_000, 0.8

    def records(self, bench):
        return bench.sizes.large_records
