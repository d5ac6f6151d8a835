#!/usr/bin/env python3
"""What Kafka's kafka-consumer-groups and kafka-groups print for Apache Kafka and for the gateway, line by line."""

import argparse
import difflib
import itertools
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from deliberate import DELIBERATE
from runner.client import Failed
from runner.gateway import dev_gateway

PATIENCE = 1200
JAVA = ("java", "-Xms32m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
PROPERTIES = ("-Duser.timezone=UTC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off")


def transcript(bootstrap, work, side):
    """(command, what it said) of all commands."""
    directory = work / side
    directory.mkdir(exist_ok=True)
    java = [*JAVA, *PROPERTIES, "-cp", f"{work}/classes:{work}/jars/*", "GroupCommands", bootstrap, "."]
    with open(directory / "transcript", "w+", encoding="utf-8") as said:
        done = subprocess.run(java, cwd=directory, stdout=said, stderr=subprocess.PIPE, timeout=PATIENCE, text=True)
        said.seek(0)
        steps = re.split(r"^\$ (.*)\n", said.read(), flags=re.MULTILINE)[1:]
    if done.returncode:
        raise Failed(f"{side}, after {steps[-2:-1]}: {done.stderr[-3000:]}")
    return [(command, normal(text, bootstrap)) for command, text in zip(steps[::2], steps[1::2])]


def normal(text, bootstrap):
    """Without what two right servers need not agree in: addresses, the widths of columns that hold them, the
    random part of member ids, leader epochs; and without stack traces."""
    text = text.replace(bootstrap, "SERVER")
    text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UUID", text)
    lines = [re.sub(r" +", " ", line).rstrip() for line in text.splitlines() if not re.match(r"\s+(at|\.\.\.) ", line)]
    tables = [list(table) for _, table in itertools.groupby(lines, key=bool)]
    return [line for table in tables for line in (rows(table) if table[0].startswith("GROUP ") else table)]


def rows(table):
    """Sorted: the order of members is that of a hash table."""
    head = table[0].split()
    body = [line.split(" ") for line in table[1:]]
    if "LEADER-EPOCH" in head:
        epoch = head.index("LEADER-EPOCH")
        for row in body:
            row[epoch : epoch + 1] = [re.sub(r"^\d+$", "EPOCH", field) for field in row[epoch : epoch + 1]]
    return [table[0], *sorted(" ".join(row) for row in body)]


def compare(kafka, gateway):
    """Prints every command that differs without being allowed to; counts them all."""
    passed = failed = deliberate = 0
    unused = set(DELIBERATE)
    for (command, left), (_, right) in zip(kafka, gateway, strict=True):
        unexpected = []
        for line in difflib.ndiff(left, right):
            if line[0] not in "-+":
                continue
            rule = next((rule for rule in DELIBERATE if re.search(rule, f"{command}: {line[0]}{line[2:]}")), None)
            if rule:
                deliberate += 1
                unused.discard(rule)
            else:
                unexpected.append(line)
        passed, failed = passed + (not unexpected), failed + bool(unexpected)
        if unexpected:
            print(f"FAIL  {command}")
            print("\n".join(f"      {line}" for line in unexpected), flush=True)
    for rule in sorted(unused):
        print(f"FAIL  deliberate.py: nothing differs any more at {rule}")
        failed += 1
    print(f"{deliberate} deliberate differences")
    return passed, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kafka", metavar="HOST:PORT", help="a new Apache Kafka of apache-kafka/server.sh")
    parser.add_argument("gateway", metavar="BINARY", help="start `BINARY dev`, with data of its own")
    parser.add_argument("work", type=Path, metavar="DIR", help="holds jars and classes")
    options = parser.parse_args()
    # As apache-kafka/server.sh.
    os.environ["PGQUEUE_GATEWAY_GROUP_INITIAL_REBALANCE_DELAY_MS"] = "0"
    work = options.work.resolve()
    try:
        with dev_gateway(options.gateway, work / "gateway.log") as (gateway, _), ThreadPoolExecutor() as pool:
            sides = (options.kafka, "kafka"), (gateway.kafka, "gateway")
            kafka, gateway = pool.map(lambda side: transcript(side[0], work, side[1]), sides)
        passed, failed = compare(kafka, gateway)
    except Failed as error:
        print(f"FAIL  {error}")
        passed, failed = 0, 1
    print(f"{passed} passed, {failed} failed")
    return failed != 0 or not passed


if __name__ == "__main__":
    sys.exit(main())
