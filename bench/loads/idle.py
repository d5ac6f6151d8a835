"""What a thousand connected consumers cost while nothing is produced.

As many partitions as a group has members: every consumer has one, and asks for its records twice
a second (librdkafka's fetch.wait.max.ms). That is the dearer case; members without a partition
only send heartbeats.
"""

import time

from load import Load, Row
from peers import gateway_on_new_database


class Idle(Load):
    name = "idle"
    most_rounds = 1
    cpu_limit_percent = 2
    statements_limit = 10
    resident_limit_mb = 150

    def lanes(self, bench):
        return ["gateway"]

    def measure(self, bench, lane, prepared):
        number, groups = bench.sizes.idle_consumers, bench.sizes.idle_groups
        with gateway_on_new_database(bench, "idle") as gateway:
            topic = gateway.topic(number // groups)
            with bench.clients.idle_consumers(gateway.bootstrap, topic, number, groups):
                return {"consumers": number, "groups": groups, **idle_cost(gateway, bench.sizes.idle_seconds)}

    def rows(self, found):
        consumers, groups = (found.median("gateway", name) for name in ("consumers", "groups"))
        load = f"idle, {consumers:,.0f} consumers in {groups:.0f} groups"
        value = {name: found.median("gateway", name) for name in ("cpu_percent", "statements_per_s", "resident_mb")}
        return [
            Row(load=f"{load}: processor", figure=f"< {self.cpu_limit_percent} % of a core", value=value["cpu_percent"],
                unit="%", limit=self.cpu_limit_percent, at_least=False, behind="each consumer fetches from a partition of its own"),
            Row(load=f"{load}: statements", figure=f"< {self.statements_limit} a second", value=value["statements_per_s"],
                unit="/s", limit=self.statements_limit, at_least=False, behind="by pg_stat_statements"),
            Row(load=f"{load}: memory", figure=f"< {self.resident_limit_mb} MB", value=value["resident_mb"],
                unit="MB", limit=self.resident_limit_mb, at_least=False, behind="resident"),
        ]


#: Statements of a second that is no longer taken up by consumers that look for the ends of their partitions:
#: librdkafka asks for each partition by itself, of 10,000 for some ten seconds.
QUIET = 20
#: For so long: it asks in bursts, the last one some ten seconds after the others.
QUIET_SECONDS = 15


def idle_cost(gateway, seconds):
    """Once all consumers have begun to wait."""
    settle(gateway)
    cpu, statements, started = gateway.cpu_seconds(), gateway.statements(), time.monotonic()
    time.sleep(seconds)
    cpu, statements, seconds = gateway.cpu_seconds() - cpu, gateway.statements() - statements, time.monotonic() - started
    return {"cpu_percent": cpu / seconds * 100, "statements_per_s": statements / seconds,
            "resident_mb": gateway.resident_bytes() / 1e6}


def settle(gateway):
    deadline, before, quiet = time.monotonic() + 90, gateway.statements(), 0
    while quiet < QUIET_SECONDS and time.monotonic() < deadline:
        time.sleep(1)
        statements = gateway.statements()
        quiet = quiet + 1 if statements - before < QUIET else 0
        before = statements
