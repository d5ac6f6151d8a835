"""Growth with groups: each has one consumer, which waits at the end of a quiet topic.

Measured beside them: a producer and a reader of another topic, and doing nothing.
"""

from load import Load
from peers import gateway_on_new_database

from .idle import idle_cost


class ManyGroups(Load):
    name = "many-groups"
    most_rounds = 1

    def lanes(self, bench):
        return [str(number) for number in bench.sizes.groups]

    def measure(self, bench, lane, prepared):
        number, count = int(lane), bench.sizes.growth_records
        with gateway_on_new_database(bench, "many_groups") as gateway:
            quiet, busy = gateway.topic(4), gateway.topic(4)
            with bench.clients.idle_consumers(gateway.bootstrap, quiet, number, number):
                cost = idle_cost(gateway, bench.sizes.growth_idle_seconds)
                produced = bench.clients.produce(gateway.bootstrap, busy, 100, count)
                consumed = bench.clients.consume(gateway.bootstrap, busy, 4, count)
        return {"produced_per_s": produced["records_per_s"], "consumed_per_s": consumed["records_per_s"], **cost}

    def rows(self, found):
        return []
