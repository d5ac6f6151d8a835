"""confluent-kafka, the newest."""

from confluent_client import consume, produce

from pyclient import EVERYTHING, main

main(EVERYTHING, produce, consume)
