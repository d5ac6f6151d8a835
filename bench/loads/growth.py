"""Growth with partitions, and with groups; nothing is produced to either.

All partitions are read by one group, which waits at their ends. Each of the groups has one
consumer, which waits at the end of a topic.

Measured beside them: doing nothing; a producer and a reader of another topic of four partitions;
and a producer that spreads its records over as many of the partitions as one topic has.
"""

import contextlib

from load import Load
from peers import gateway_on_new_database

from .idle import idle_cost

#: More partitions are several topics: pgQueue allows 4,096 in one.
A_TOPIC = 1_000


class Growth(Load):
    """Each lane is a number of them."""

    most_rounds = 1

    def sizes(self, bench):
        raise NotImplementedError

    def beside(self, bench, gateway, number):
        """Brings so many to wait; yields a topic to spread records over, or None."""
        raise NotImplementedError

    def lanes(self, bench):
        return [str(number) for number in self.sizes(bench)]

    def measure(self, bench, lane, prepared):
        count = bench.sizes.growth_records
        with gateway_on_new_database(bench, "growth") as gateway:
            address, busy = gateway.bootstrap, gateway.topic(4)
            with self.beside(bench, gateway, int(lane)) as spread:
                measured = idle_cost(gateway, bench.sizes.growth_idle_seconds)
                measured.update(bench.clients.there_and_back(address, busy, 4, count))
                if spread:
                    measured["spread_per_s"] = bench.clients.produce(address, spread, 100, count)["records_per_s"]
        return measured

    def rows(self, found):
        return []


class ManyPartitions(Growth):
    name = "many-partitions"

    def sizes(self, bench):
        return bench.sizes.partitions

    @contextlib.contextmanager
    def beside(self, bench, gateway, number):
        topics = [gateway.topic(min(number, A_TOPIC)) for _ in range(0, number, A_TOPIC)]
        more = [part for topic in topics[1:] for part in ("-t", topic)]
        with bench.clients.group_consumer(gateway.bootstrap, topics[0], "all", *more):
            yield topics[0]


class ManyGroups(Growth):
    name = "many-groups"

    def sizes(self, bench):
        return bench.sizes.groups

    @contextlib.contextmanager
    def beside(self, bench, gateway, number):
        with bench.clients.idle_consumers(gateway.bootstrap, gateway.topic(4), number, number):
            yield None
