#!/usr/bin/env python3
"""Where the gateway spends its time: flame graphs by perf and inferno, and how the processor is shared between
gateway, Postgres and client. While records are produced, read, sent one by one, and not at all to many consumers.

Needs a build of the profile `profiling` with frame pointers (`make profile`). Writes .dev/bench/profile.
"""

import argparse
import os
import subprocess
import time
from pathlib import Path

from load import Sizes
from machine import ROOT, WORK, cpu_seconds_with_children
from peers import gateway_on_new_database
from run import bench_of
from tools import run

INFERNO = "0.12.8"
PARTITIONS = 4
OUT = WORK / "profile"
#: Samples a second; odd, so that they do not keep step with timers.
FREQUENCY = 499


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gateway", type=Path, default=ROOT / "target/profiling/pgqueue-gateway", help="the binary to profile")
    gateway_binary = parser.parse_args().gateway
    install_inferno()
    OUT.mkdir(parents=True, exist_ok=True)
    sizes = Sizes()
    with bench_of(gateway_binary, sizes, with_kafka=False) as bench, \
            gateway_on_new_database(bench, "profile") as gateway:
        topic = gateway.topic(PARTITIONS)
        count = sizes.cold_records
        at = gateway.bootstrap
        profile(bench, gateway, "produce", lambda: records_per_s(bench.clients.produce(at, topic, 100, count)))
        profile(bench, gateway, "consume", lambda: records_per_s(bench.clients.consume(at, topic, PARTITIONS, count)))
        profile(bench, gateway, "one in flight",
                lambda: f"{bench.clients.round_trip(at, topic, 100, sizes.latency_seconds):.2f} ms a record")
        members = sizes.idle_consumers // sizes.idle_groups
        with bench.clients.idle_consumers(at, gateway.topic(members), sizes.idle_consumers, sizes.idle_groups):
            profile(bench, gateway, "idle", lambda: idle(sizes.idle_seconds))


def records_per_s(measured):
    return f"{measured['records_per_s']:,.0f} records/s"


def idle(seconds):
    time.sleep(seconds)
    return f"{seconds} s"


def profile(bench, gateway, name, load):
    data = OUT / f"{name.replace(' ', '-')}.perf"
    recorder = subprocess.Popen(["perf", "record", "-q", "-F", str(FREQUENCY), "-g", "-p", str(gateway.pid), "-o", data],
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    before = shares(bench, gateway)
    measured = load()
    used = {who: after - before[who] for who, after in shares(bench, gateway).items()}
    recorder.terminate()
    said = recorder.communicate(timeout=60)[1]
    if not data.exists():
        raise RuntimeError(f"perf: {said}")
    svg = draw(name, data)
    total = sum(used.values())
    print(f"{name}: {measured}; processor time "
          + ", ".join(f"{who} {seconds:.1f} s ({seconds / total:.0%})" for who, seconds in used.items()) + f"; {svg}")


def shares(bench, gateway):
    """Seconds of processor time so far. Of clients, those that have ended: not the idle ones, which live on."""
    ended = os.times()
    return {"gateway": gateway.cpu_seconds(), "Postgres": cpu_seconds_with_children(bench.postgres.pid),
            "client": ended.children_user + ended.children_system}


def draw(name, data):
    svg = data.with_suffix(".svg")
    bin_ = WORK / "inferno/bin"
    with open(svg, "wb") as out:
        script = subprocess.Popen(["perf", "script", "-i", data], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        folded = subprocess.Popen([bin_ / "inferno-collapse-perf"], stdin=script.stdout, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        drawn = subprocess.run([bin_ / "inferno-flamegraph", "--title", f"pgqueue-gateway, {name}"], stdin=folded.stdout, stdout=out)
        if script.wait() or folded.wait() or drawn.returncode:
            raise RuntimeError(f"no flame graph of {data}")
    return svg


def install_inferno():
    if not (WORK / "inferno/bin/inferno-flamegraph").exists():
        run(["cargo", "install", "inferno", "--version", INFERNO, "--locked", "--root", WORK / "inferno"], ROOT)


if __name__ == "__main__":
    main()
