"""Growth with partitions: all of them read by one group, which waits at their ends.

Measured beside them: a producer and a reader of one topic of four partitions; a producer that
spreads its records over as many partitions as a topic may have here; and doing nothing.
"""

from clients import LIBRDKAFKA_DEFAULTS
from load import Load
from peers import gateway_on_new_database

from .idle import idle_cost

#: More are several topics: pgQueue allows 4,096 in one.
A_TOPIC = 1_000


class ManyPartitions(Load):
    name = "many-partitions"
    most_rounds = 1

    def lanes(self, bench):
        return [str(number) for number in bench.sizes.partitions]

    def measure(self, bench, lane, prepared):
        number, count = int(lane), bench.sizes.growth_records
        with gateway_on_new_database(bench, "many_partitions") as gateway:
            topics = [gateway.topic(min(number, A_TOPIC)) for _ in range(0, number, A_TOPIC)]
            busy = gateway.topic(4)
            more = [part for topic in topics[1:] for part in ("-t", topic)]
            with bench.clients.group_consumer(gateway.bootstrap, topics[0], "all", *more):
                cost = idle_cost(gateway, bench.sizes.growth_idle_seconds)
                produced = bench.clients.produce(gateway.bootstrap, busy, 100, count)
                consumed = bench.clients.consume(gateway.bootstrap, busy, 4, count)
            spread = bench.clients.produce(gateway.bootstrap, topics[0], 100, count, LIBRDKAFKA_DEFAULTS)
        return {"produced_per_s": produced["records_per_s"], "consumed_per_s": consumed["records_per_s"],
                "spread_per_s": spread["records_per_s"], **cost}

    def rows(self, found):
        return []
