"""confluent-kafka, the newest."""

from confluent_client import consume, group, produce

from pyclient import EVERYTHING, main

GROUP = {"assignors": ["range", "roundrobin", "cooperative-sticky"], "static": True, "rebalance_events": True}

main({**EVERYTHING, "group": GROUP}, produce, consume, group)
