"""kafka-python, the newest."""

from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

from kafka_python_client import consume, group, produce

from pyclient import EVERYTHING, main

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}

main(
    {
        **EVERYTHING,
        # Its producer refuses both of these; its consumer shows them.
        "produce": {"null_key_and_value": False, "null_header_values": False},
        # Its poll returns nothing as long as a rebalance lasts, a cooperative one too.
        "group": {
            "assignors": list(ASSIGNORS), "static": True, "rebalance_events": True, "reads_in_rebalance": False,
        },
    },
    produce, consume, group(ASSIGNORS),
)
