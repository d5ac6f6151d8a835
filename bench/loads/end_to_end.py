"""From a producer's call to a group consumer having the record, at 1,000 records a second.

rdkafka_performance on both sides (-l): the record carries the producer's clock. And Kafka's own
end-to-end latency tool, which sends the next record only after it has received the last.

Kafka with flush.messages=1 takes a connection's requests one by one, each with its flushes: where
that is less than the rate, records queue ever longer, and the latency tells how long the load was.
It has a shorter one, and the report says how many went through.
"""

from load import Load, Row, listed, milliseconds, thousands
from peers import gateway_on_new_database

RATE = 1_000
#: Of each distribution, so many points are kept for the plot.
PERCENTILES = [0, 1, 5, 10, 25, 50, 75, 90, 95, 98, 99, 99.5, 99.9, 100]


class EndToEnd(Load):
    name = "end-to-end"
    most_rounds = 2
    p50_limit_ms = 3
    p99_limit_ms = 20

    def lanes(self, bench):
        return ["gateway"] + (["kafka", "kafka-flush"] if bench.kafka else [])

    def measure(self, bench, lane, prepared):
        if lane == "gateway":
            with gateway_on_new_database(bench, "end_to_end") as gateway:
                return self.travel(bench, gateway)
        if lane == "kafka-flush":
            return self.travel(bench, bench.kafka.flushing(), bench.sizes.end_to_end_flush_seconds)
        return self.travel(bench, bench.kafka)

    @staticmethod
    def travel(bench, server, seconds=None):
        sizes = bench.sizes
        latencies, rate = bench.clients.end_to_end(
            server.bootstrap, server.topic(4), 100, RATE, sizes.end_to_end_warm_up_seconds, seconds or sizes.end_to_end_seconds)
        latencies.sort()
        measured = {
            "p50_ms": percentile(latencies, 50), "p99_ms": percentile(latencies, 99), "sent_per_s": rate,
            "percentiles": PERCENTILES, "at_percentile_ms": [percentile(latencies, share) for share in PERCENTILES],
        }
        if bench.kafka:
            measured.update(bench.clients.java_end_to_end(
                server.bootstrap, server.topic(1), sizes.java_end_to_end_records, 100))
        return measured

    def rows(self, found):
        rows = []
        for name, limit in (("p50_ms", self.p50_limit_ms), ("p99_ms", self.p99_limit_ms)):
            share = name[:3]
            java, kafka, flush = (found.median(lane, key) for lane, key in
                                  (("gateway", f"java_{name}"), ("kafka", name), ("kafka-flush", name)))
            behind = f"{found.median('gateway', 'sent_per_s'):,.0f} records/s sent"
            if java is not None:
                behind += f"; by Kafka's own tool, one at a time, {java:.0f} ms (Kafka {found.median('kafka', 'java_' + name):.0f} ms)"
            rows.append(Row(
                load=f"end to end at 1,000 records/s, producer to group consumer, {share}",
                figure=f"≤ {limit} ms", limit=limit, at_least=False, value=found.median("gateway", name), unit="ms",
                behind=behind,
                peers=listed(("kafka", kafka, milliseconds(kafka)),
                             ("kafka-flush", flush, f"{milliseconds(flush)} at {thousands(found.median('kafka-flush', 'sent_per_s'))} records/s"))))
        return rows


def percentile(ordered, share):
    return ordered[min(len(ordered) - 1, int(len(ordered) * share / 100))]
