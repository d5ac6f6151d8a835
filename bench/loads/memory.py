"""The gateway's resident memory: the highest of all loads of this run, and its course while a
producer and a reader run as fast as they can."""

import statistics
import time

from clients import LIBRDKAFKA_DEFAULTS
from load import Load, Row
from peers import gateway_on_new_database

PARTITIONS = 4


class Memory(Load):
    name = "memory"
    most_rounds = 1
    limit_mb = 400
    #: Of the last third of the time over the middle one: growth by no more than this is flat.
    flat = 1.1

    def lanes(self, bench):
        return ["gateway"]

    def measure(self, bench, lane, prepared):
        with gateway_on_new_database(bench, "memory") as gateway:
            topic = gateway.topic(PARTITIONS)
            with bench.clients.endless_producers(1, gateway.bootstrap, topic, 100, LIBRDKAFKA_DEFAULTS), \
                    bench.clients.group_consumer(gateway.bootstrap, topic, "reader"):
                before = len(gateway.memory.samples)
                time.sleep(bench.sizes.memory_seconds)
                course = gateway.memory.samples[before:]
        third = len(course) // 3
        return {"course_mb": [sample / 1e6 for sample in course],
                "growth": statistics.mean(course[2 * third:]) / statistics.mean(course[third:2 * third]),
                "highest_mb": max(sample for samples in bench.resident for sample in samples) / 1e6}

    def rows(self, found):
        return [
            Row(load="memory, the highest of all loads of the run", figure=f"< {self.limit_mb} MB resident", limit=self.limit_mb,
                at_least=False, value=found.median("gateway", "highest_mb"), unit="MB", behind="sampled each second"),
            Row(load="memory, last third of two minutes of producing and reading over the middle third", figure=f"flat (≤ {self.flat} ×)",
                limit=self.flat, at_least=False, value=found.median("gateway", "growth"), unit="×", behind=""),
        ]
