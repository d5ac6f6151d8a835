#!/usr/bin/env python3
"""A few ratios of the benchmark within a minute and a half, for CI: fails where one is at less than half its figure.

Never an absolute time: what disturbs the machine disturbs both sides of a ratio. Ends with `N passed, N failed`.
"""

import argparse
import sys
import time
from pathlib import Path

import loads
from load import SMOKE, Found, short
from machine import ROOT
from run import bench_of, measure

#: The figure of each row of these loads, by build. A debug build does without the optimiser in our own crates,
#: so where those have a part in a ratio less is asked of it; Postgres and the clients are as ever. A hundred
#: producers stand for the two hundred of the full load, and can give half of its records a transaction; their
#: processes take more than one of two cores, so what they can reach beside one producer is less than half.
FIGURES = {
    "produce-100": {"release": [0.7], "debug": [0.5]},
    "many-producers": {"release": [8, 15], "debug": [8, 15]},
    "cold-read": {"release": [0.6], "debug": [0.3]},
    "groups-at-tail": {"release": [1.2, 1.2], "debug": [1.2, 1.2]},
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gateway", type=Path, default=ROOT / "target/debug/pgqueue-gateway", help="the binary to measure")
    gateway = parser.parse_args().gateway
    build = "debug" if gateway.resolve().parent.name == "debug" else "release"
    print(f"{build} build; each ratio must reach half of its figure for that build")
    passed = failed = 0
    started = time.monotonic()
    with bench_of(gateway, SMOKE, with_kafka=False) as bench:
        for load in loads.ALL:
            if load.name not in FIGURES:
                continue
            found = Found(measure(bench, load, rounds=1))
            for row, limit in zip(load.rows(found), FIGURES[load.name][build]):
                row.limit = limit
                reached = row.margin >= 0.5
                passed, failed = passed + reached, failed + (not reached)
                print(f"{'ok  ' if reached else 'FAIL'} {row.load}: {short(row.value)} {row.unit} of {limit} ({row.behind})", flush=True)
    print(f"{time.monotonic() - started:.0f} s")
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
