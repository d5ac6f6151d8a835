#!/usr/bin/env python3
"""The same requests to Apache Kafka and to the gateway, the answers field by field; run.sh starts both."""

import argparse
import contextlib
import importlib
import re
import sys
import time
import traceback

import batch
from deliberate import DELIBERATE
from peer import Peer
from runner.gateway import dev_gateway

MODULES = ("cases_admin", "cases_produce", "cases_fetch", "cases_wire")
NO_ANSWER = "no such answer"


def address(text):
    host, _, port = text.rpartition(":")
    return host, int(port)


def cases():
    for module in MODULES:
        for name, case in vars(importlib.import_module(module)).items():
            if name.startswith("case_"):
                yield name[len("case_") :], case


def run(case, peer):
    """What the peer answered, by label."""
    try:
        case(peer)
    except Exception as error:  # the other cases go on
        peer.notes.append(("the case ended", "".join(traceback.format_exception(error)[-3:])))
    finally:
        peer.close()
    return dict(peer.notes)


def differences(left, right, at=""):
    """Paths and both values where two notes differ."""
    if isinstance(left, dict) and isinstance(right, dict):
        if left.get("ErrorCode") != right.get("ErrorCode"):
            # The other fields follow from it.
            yield f"{at}.ErrorCode", left.get("ErrorCode"), right.get("ErrorCode")
            return
        for key in [*left, *(key for key in right if key not in left)]:
            if key not in left or key not in right:
                yield f"{at}.{key}", left.get(key, "absent"), right.get(key, "absent")
            else:
                yield from differences(left[key], right[key], f"{at}.{key}")
    elif isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        for index, (a, b) in enumerate(zip(left, right)):
            yield from differences(a, b, f"{at}[{index}]")
    elif left != right:
        yield at, left, right


def show(value):
    text = str(value)
    return text if len(text) <= 300 else text[:300] + "…"


class Comparison:
    def __init__(self):
        self.passed = self.failed = self.deliberate = 0
        self.unused = set(DELIBERATE)

    def case(self, name, case, peers):
        began = time.monotonic()
        kafka, gateway = (run(case, peer) for peer in peers)
        found = self.unexpected(name, kafka, gateway)
        lines = [
            f"  {label} v{','.join(versions)} {path}: Kafka {left} | gateway {right}"
            for (label, path, left, right), versions in found.items()
        ]
        # The same on both sides is no difference, but a case that does not work.
        lines += [f"  {notes['the case ended']}" for notes in (kafka, gateway) if "the case ended" in notes]
        self.passed, self.failed = self.passed + (not lines), self.failed + bool(lines)
        print(
            f"{'FAIL' if lines else 'ok  '}  {name} ({len(kafka)} answers, {time.monotonic() - began:.1f} s)"
        )
        print("\n".join(lines[:100]), end="\n" if lines else "", flush=True)

    def unexpected(self, name, kafka, gateway):
        """Differences that are not deliberate: the versions that show each of them."""
        found = {}
        for label in dict.fromkeys([*kafka, *gateway]):
            for path, left, right in differences(kafka.get(label, NO_ANSWER), gateway.get(label, NO_ANSWER)):
                rule = next((rule for rule in DELIBERATE if re.search(rule, f"{name}: {label}{path}")), None)
                if rule:
                    self.deliberate += 1
                    self.unused.discard(rule)
                else:
                    what, version = re.fullmatch(r"(.*?)(?: v(\d+))?", label).groups(default="-")
                    found.setdefault((what, path, show(left), show(right)), []).append(version)
        return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "kafka", type=address, metavar="HOST:PORT", help="an Apache Kafka of apache-kafka/server.sh"
    )
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--gateway", metavar="BINARY", help="start `BINARY dev`, with data of its own")
    which.add_argument("--at", type=address, metavar="HOST:PORT", help="the gateway that serves here")
    parser.add_argument("--log", default="gateway.log", help="what the gateway writes (%(default)s)")
    parser.add_argument("cases", nargs="*", help="only those whose names begin so")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        where = options.at
        if where is None:
            gateway, _ = stack.enter_context(dev_gateway(options.gateway, options.log))
            where = address(gateway.kafka)
        return compare(options.kafka, where, tuple(options.cases))


def compare(kafka, gateway, wanted):
    comparison = Comparison()
    for name, case in cases():
        if not wanted or name.startswith(wanted):
            prefix = f"d{batch.START % 100_000_000}-{name.replace('_', '-')}"
            comparison.case(name, case, [Peer(where, prefix, batch.START) for where in (kafka, gateway)])
    if not wanted:
        for rule in sorted(comparison.unused):
            print(f"FAIL  deliberate.py: nothing differs any more at {rule}")
            comparison.failed += 1
    print(f"{comparison.deliberate} deliberate differences")
    print(f"{comparison.passed} passed, {comparison.failed} failed")
    return comparison.failed != 0


if __name__ == "__main__":
    sys.exit(main())
