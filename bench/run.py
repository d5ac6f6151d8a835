#!/usr/bin/env python3
"""Runs the loads against each server in turn, and writes docs/bench. See README.md."""

import argparse
import contextlib
import dataclasses
import json
import os
import signal
import sys
import time
import traceback
from pathlib import Path

import loads
import report
from clients import Clients
from load import QUICK, Sizes
from machine import ROOT, WORK, facts
from peers import Kafka
from postgres import SETTINGS, Postgres
from tools import Tools, python, run

OUT = ROOT / "docs/bench"


class Bench:
    """What every load is given."""

    def __init__(self, gateway, sizes, tools, postgres, kafka):
        self.gateway, self.sizes, self.postgres, self.kafka = gateway, sizes, postgres, kafka
        self.clients = Clients(tools)
        #: The highest resident memory of each gateway of the present load, in bytes.
        self.resident = []
        self.extras = {}

    def extra(self, load, name, value):
        """Something for a plot that no lane measures."""
        self.extras.setdefault(load, {})[name] = value


def main():
    asked = arguments()
    chosen = [load for load in loads.ALL if not asked.loads or load.name in asked.loads.split(",")]
    unknown = set(asked.loads.split(",") if asked.loads else ()) - {load.name for load in chosen}
    if unknown:
        sys.exit(f"no such load: {', '.join(sorted(unknown))}; there are: {', '.join(load.name for load in loads.ALL)}")
    sizes = QUICK if asked.quick else Sizes()
    if asked.rows:
        sizes = dataclasses.replace(sizes, table_rows=asked.rows)
    results, failed = stored(asked.out), []
    with bench_of(asked.gateway, sizes, with_kafka=asked.without != "kafka") as bench:
        about = {**facts(bench.gateway), "postgres": bench.postgres.version(), "settings": SETTINGS, "rounds": asked.rounds,
                 "sizes": "quick" if asked.quick else "full"}
        for load in chosen:
            started = time.monotonic()
            bench.resident.clear()
            try:
                lanes = measure(bench, load, asked.rounds)
            except Exception:  # An hour of the other loads is not lost for it.
                traceback.print_exc()
                failed.append(load.name)
                continue
            results[load.name] = {**about, "lanes": lanes, "extra": bench.extras.get(load.name, {}),
                                  "resident_mb": max(bench.resident) / 1e6, "seconds": round(time.monotonic() - started)}
            write(asked.out, results)
    if not results:
        sys.exit("nothing was measured")
    run([python(), ROOT / "bench/plots.py", asked.out], ROOT)
    report.write(asked.out, results)
    print(report.table(results))
    print(f"written: {asked.out}")
    if failed:
        sys.exit(f"failed, and not in there or as they were before: {', '.join(failed)}")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gateway", type=Path, default=ROOT / "target/release/pgqueue-gateway", help="the binary to measure")
    parser.add_argument("--loads", help="only these, with commas between; the others keep what was measured before")
    parser.add_argument("--rounds", type=int, default=3, help="how often each load meets each server (default 3)")
    parser.add_argument("--rows", type=int, help="rows of the large table (default 50 million)")
    parser.add_argument("--quick", action="store_true", help="a tenth of everything: to see that it works")
    parser.add_argument("--without", choices=["kafka"], help="no Apache Kafka and none of its tools")
    parser.add_argument("--out", type=Path, default=OUT, help="where results, tables and plots go (default docs/bench)")
    return parser.parse_args()


@contextlib.contextmanager
def bench_of(gateway, sizes, with_kafka):
    """Everything started, and stopped again, also when we are."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    WORK.mkdir(parents=True, exist_ok=True)
    tools = Tools(with_java=with_kafka)
    with contextlib.ExitStack() as stack:
        postgres = stack.enter_context(Postgres(WORK / "postgres"))
        postgres.make_wal_files(sizes.wal_files)
        kafka = stack.enter_context(Kafka(tools)) if with_kafka else None
        bench = Bench(os.path.abspath(gateway), sizes, tools, postgres, kafka)
        if kafka:
            warm_up(bench)
        yield bench


def warm_up(bench):
    """Java compiles what runs often; the first round would measure that."""
    topic = bench.kafka.topic(4)
    bench.clients.produce(bench.kafka.bootstrap, topic, 100, bench.sizes.growth_records)
    bench.clients.consume(bench.kafka.bootstrap, topic, 4, bench.sizes.growth_records)


def measure(bench, load, rounds):
    """Lane → what each round measured. The lanes take turns."""
    found = {}
    with load.prepared(bench) as prepared:
        for number in range(min(rounds, load.most_rounds)):
            for lane in load.lanes(bench):
                bench.postgres.settle()
                measured = load.measure(bench, lane, prepared)
                found.setdefault(lane, []).append(measured)
                shown = ", ".join(f"{name} {value:,.6g}" for name, value in measured.items() if isinstance(value, (int, float)))
                print(f"{load.name}, round {number + 1}, {lane}: {shown}", flush=True)
    return found


def stored(out):
    path = out / "results.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def write(out, results):
    out.mkdir(parents=True, exist_ok=True)
    (out / "results.json").write_text(json.dumps(results, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
