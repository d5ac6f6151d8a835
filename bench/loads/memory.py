"""The course of the gateway's resident memory while a producer and a reader run as fast as they can.

The highest of every load is sampled as well; report.py tells it."""

import statistics
import time

from clients import LIBRDKAFKA_DEFAULTS
from load import Load, Row
from peers import gateway_on_new_database

PARTITIONS = 4


class Memory(Load):
    name = "memory"
    most_rounds = 1
    #: Of the last third of the time over the middle one: growth by no more than this is flat.
    flat = 1.1

    def lanes(self, bench):
        return ["gateway"]

    def measure(self, bench, lane, prepared):
        with gateway_on_new_database(bench, "memory") as gateway:
            topic = gateway.topic(PARTITIONS)
            with bench.clients.flow(gateway.bootstrap, topic, LIBRDKAFKA_DEFAULTS):
                before = len(gateway.memory.samples)
                time.sleep(bench.sizes.memory_seconds)
                course = gateway.memory.samples[before:]
        third = len(course) // 3
        return {"course_mb": [sample / 1e6 for sample in course],
                "growth": statistics.mean(course[2 * third:]) / statistics.mean(course[third:2 * third])}

    def rows(self, found):
        seconds = len(found.lanes["gateway"][0]["course_mb"])
        return [Row(
            load=f"memory, producing and reading for {seconds} s: last third over the middle third", figure=f"flat (≤ {self.flat} ×)",
            limit=self.flat, at_least=False, value=found.median("gateway", "growth"), unit="×", behind="resident, sampled each second")]
