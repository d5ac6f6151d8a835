"""One producer with one record in flight beside pgbench doing lock, insert, commit.

Of the producer, the time from request to answer that librdkafka's statistics tell (rtt); of
pgbench, the time of each transaction from its log. Both go back to back over loopback TCP.
"""

import statistics

from floor import lock_insert_commit
from load import Load, Row, listed, milliseconds
from peers import gateway_on_new_database


class RoundTrip(Load):
    name = "round-trip"
    limit = 1.5

    def lanes(self, bench):
        return ["gateway", "floor"] + (["kafka", "kafka-flush"] if bench.kafka else [])

    def measure(self, bench, lane, prepared):
        if lane == "floor":
            return {"p50_ms": statistics.median(lock_insert_commit(bench, bench.sizes.latency_seconds))}
        if lane == "gateway":
            with gateway_on_new_database(bench, "round_trip") as gateway:
                return self.ask(bench, gateway)
        return self.ask(bench, bench.kafka.flushing() if lane == "kafka-flush" else bench.kafka)

    @staticmethod
    def ask(bench, server):
        topic = server.topic(4)
        return {"p50_ms": bench.clients.round_trip(server.bootstrap, topic, 100, bench.sizes.latency_seconds)}

    def rows(self, found):
        gateway, floor, kafka, flush = (found.median(lane, "p50_ms") for lane in ("gateway", "floor", "kafka", "kafka-flush"))
        return [Row(
            load="one producer, one record in flight, linger 0",
            figure=f"median ≤ {self.limit} × pgbench's lock + insert + commit", limit=self.limit, at_least=False,
            value=found.ratio("p50_ms", "gateway", "floor"), unit="×",
            behind=f"{milliseconds(gateway)}, pgbench {milliseconds(floor)}",
            peers=listed(("kafka", kafka, milliseconds(kafka)), ("kafka-flush", flush, milliseconds(flush))))]
