"""Holds consumers of many groups until its standard input ends: librdkafka, in one process.

    consumers.py BOOTSTRAP TOPIC FIRST END GROUPS

Consumer number N is of group N % GROUPS; these are the numbers from FIRST up to END.

Run by the environment of requirements.txt. Prints a line once every consumer has been told its
assignment, empty or not, and for five seconds none was told another.
"""

import select
import sys
import time

from confluent_kafka import Consumer

QUIET_SECONDS = 5


def main():
    bootstrap, topic = sys.argv[1:3]
    first, end, groups = map(int, sys.argv[3:6])
    assigned, changed = set(), time.monotonic()

    def on_assign(consumer, partitions):
        nonlocal changed
        assigned.add(id(consumer))
        changed = time.monotonic()

    consumers = []
    for index in range(first, end):
        consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": f"{topic}-{index % groups}"})
        consumer.subscribe([topic], on_assign=on_assign)
        consumers.append(consumer)
    ready = False
    while not select.select([sys.stdin], [], [], 0.2)[0]:
        for consumer in consumers:
            consumer.poll(0)
        if not ready and len(assigned) == len(consumers) and time.monotonic() - changed > QUIET_SECONDS:
            ready = True
            print("ready", flush=True)


if __name__ == "__main__":
    main()
