"""One consumer reads a topic from its beginning through a gateway that has just started, beside
COPY TO of the same rows. Postgres has read the rows before, for both alike."""

import contextlib

from floor import copy_out
from load import Load, Row, listed, thousands, times
from peers import Gateway, new_database

PARTITIONS = 4


class ColdRead(Load):
    name = "cold-read"
    limit = 0.6

    def lanes(self, bench):
        return ["gateway", "floor"] + (["kafka", "gateway, Java", "kafka, Java"] if bench.kafka else [])

    @contextlib.contextmanager
    def prepared(self, bench):
        with new_database(bench, "cold_read"):
            with Gateway(bench, "cold_read") as gateway:
                topics = {"gateway": self.fill(bench, gateway)}
            if bench.kafka:
                topics["kafka"] = self.fill(bench, bench.kafka)
            bench.postgres.psql("cold_read", "VACUUM ANALYZE")
            copy_out(bench, "cold_read", topics["gateway"])
            yield topics

    @staticmethod
    def fill(bench, server):
        topic = server.topic(PARTITIONS)
        bench.clients.produce(server.bootstrap, topic, 100, bench.sizes.cold_records)
        return topic

    def measure(self, bench, lane, topics):
        if lane == "floor":
            bench.postgres.settle()
            return {"records_per_s": copy_out(bench, "cold_read", topics["gateway"]), "records": bench.sizes.cold_records}
        if lane.startswith("kafka"):
            return self.read(bench, bench.kafka, topics["kafka"], lane)
        with Gateway(bench, "cold_read") as gateway:
            bench.postgres.settle()
            return self.read(bench, gateway, topics["gateway"], lane)

    @staticmethod
    def read(bench, server, topic, lane):
        count = bench.sizes.cold_records
        if lane.endswith("Java"):
            return bench.clients.java_consume(server.bootstrap, topic, count)
        return bench.clients.consume(server.bootstrap, topic, PARTITIONS, count)

    def rows(self, found):
        gateway, floor = (found.median(lane, "records_per_s") for lane in ("gateway", "floor"))
        more = [(lane, found.median(lane, "records_per_s")) for lane in ("kafka", "gateway, Java", "kafka, Java")]
        return [Row(
            load=f"cold read of {thousands(found.median('floor', 'records'))} rows of 100 B by one consumer", figure=f"≥ {self.limit} × COPY TO of the same rows",
            limit=self.limit, at_least=True, value=found.ratio("records_per_s", "gateway", "floor"), unit="×",
            behind=f"{thousands(gateway)} records/s, COPY TO {thousands(floor)}",
            peers=listed(*((lane, value, f"{thousands(value)}/s ({times(gateway / value)})")
                           for lane, value in more if value)))]
