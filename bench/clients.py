"""The load generators, run and read: librdkafka's rdkafka_performance and Kafka's own tools."""

import contextlib
import json
import re
import signal
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from machine import ROOT
from tools import python

#: Seconds after which a load that should have ended is a failure.
PATIENCE = 900

#: rdkafka_performance waits a second for a batch to fill (linger.ms=1000) where librdkafka itself
#: waits 5 ms. These are librdkafka's own defaults, as an application has them.
LIBRDKAFKA_DEFAULTS = {"linger.ms": 5}

#: One record a request, and the next one only after the answer. A queue of ten: the tool produces
#: as fast as it can and would otherwise hold 100,000 waiting records.
ONE_BY_ONE = {"linger.ms": 0, "batch.num.messages": 1, "max.in.flight": 1, "queue.buffering.max.messages": 10}


class Clients:
    def __init__(self, tools):
        self.tools = tools

    def _performance(self, bootstrap, topic, *arguments, settings=None):
        options = [part for name, value in (settings or {}).items() for part in ("-X", f"{name}={value}")]
        return [str(self.tools.rdkafka_performance), "-b", bootstrap, "-t", topic, *map(str, arguments), *options]

    def produce(self, bootstrap, topic, size, count, settings=None):
        """Records per second of one producer with acks=all, and its course: seconds and records per second."""
        command = self._performance(bootstrap, topic, "-P", "-a", -1, "-s", size, "-c", count, "-u", "-q", "-i", 500,
                                    settings=settings if settings is not None else LIBRDKAFKA_DEFAULTS)
        return _rate(_table(_finish(command, (0, 1))), "dr", count)

    def consume(self, bootstrap, topic, partitions, count, first="beginning"):
        """Records per second of one consumer without a group, from its first record to its last."""
        chosen = [part for partition in range(partitions) for part in ("-p", partition)]
        command = self._performance(bootstrap, topic, "-C", *chosen, "-o", first, "-c", count, "-u", "-q")
        return _rate(_table(_finish(command)), "msgs", count)

    def there_and_back(self, bootstrap, topic, partitions, count, first="beginning"):
        """Records of 100 bytes per second, produced and then read back."""
        produced = self.produce(bootstrap, topic, 100, count)
        consumed = self.consume(bootstrap, topic, partitions, count, first)
        return {"produced_per_s": produced["records_per_s"], "consumed_per_s": consumed["records_per_s"]}

    @contextlib.contextmanager
    def endless_producers(self, number, bootstrap, topic, size, settings, rate=None):
        """So many producers at work, each a process."""
        paced = ["-r", rate] if rate else []
        # A long display interval: each display costs a producer its statistics, too.
        command = self._performance(bootstrap, topic, "-P", "-a", -1, "-s", size, "-q", "-i", 600_000, *paced,
                                    settings=settings)
        with contextlib.ExitStack() as stack:
            yield [stack.enter_context(running(command)) for _ in range(number)]

    @contextlib.contextmanager
    def group_consumer(self, bootstrap, topic, group, *arguments):
        """A member of a group, after it got its partitions."""
        command = self._performance(bootstrap, topic, "-G", group, "-u", "-q", *arguments)
        # Files, not pipes: it prints a line a second, which in ten minutes is more than a pipe holds.
        with tempfile.TemporaryFile("w+") as printed, tempfile.TemporaryFile("w+") as said, \
                running(command, stdout=printed, stderr=said) as process:
            deadline = time.monotonic() + 60
            while True:
                said.seek(0)
                if "partition(s) assigned" in said.read():
                    break
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"no assignment for a consumer of group {group}")
                time.sleep(0.1)
            yield GroupConsumer(process, printed)

    @contextlib.contextmanager
    def flow(self, bootstrap, topic, settings, *consumer_arguments):
        """A producer and a member of a group, at work until the end."""
        with self.endless_producers(1, bootstrap, topic, 100, settings), \
                self.group_consumer(bootstrap, topic, "flow", *consumer_arguments):
            yield

    @contextlib.contextmanager
    def idle_consumers(self, bootstrap, topic, number, groups):
        """So many consumers with librdkafka's defaults, spread over groups, all with their assignment."""
        per_process = 250
        with contextlib.ExitStack() as stack:
            holders = []
            for first in range(0, number, per_process):
                command = [python(), ROOT / "bench/consumers.py", bootstrap, topic, first, min(first + per_process, number), groups]
                holders.append(stack.enter_context(running(list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE)))
            for holder in holders:
                if holder.stdout.readline() != "ready\n":
                    raise RuntimeError("a process of idle consumers has ended")
            yield

    def round_trip(self, bootstrap, topic, size, seconds):
        """Median milliseconds from a request with one record to its answer, by librdkafka's own statistics."""
        command = self._performance(bootstrap, topic, "-P", "-a", -1, "-s", size, "-q", "-T", 1000,
                                    settings={**ONE_BY_ONE, "queue.buffering.max.messages": 1})
        with tempfile.TemporaryFile("w+") as said:
            with running(command, stdout=said):
                time.sleep(seconds)
            said.seek(0)
            reports = [json.loads(line) for line in said if line.startswith("{") and line.endswith("}\n")]
        # The first two hold the connecting; a broker without an id is the bootstrap address.
        medians = [broker["rtt"]["p50"] for report in reports[2:] for broker in report["brokers"].values()
                   if broker["nodeid"] >= 0 and broker["rtt"]["cnt"]]
        if not medians:
            raise RuntimeError("no round trips")
        return statistics.median(medians) / 1000

    def end_to_end(self, bootstrap, topic, size, rate, warm_up_seconds, seconds):
        """Milliseconds from the call to produce to a group's consumer having the record, of each record.

        The tool writes its clock into the record. It paces by a busy wait of a whole core, for each
        server alike. No linger: it would be the greater part of what is measured.
        """
        warm_up, count = rate * warm_up_seconds, rate * (warm_up_seconds + seconds)
        with tempfile.TemporaryDirectory() as directory:
            latencies = Path(directory, "latencies")
            arguments = ["-l", "-A", latencies, "-c", count]
            with self.group_consumer(bootstrap, topic, "end-to-end", *arguments) as consumer:
                produced = _table(_finish(self._performance(
                    bootstrap, topic, "-P", "-a", -1, "-l", "-s", size, "-r", rate, "-c", count, "-u", "-q",
                    settings={"linger.ms": 0}), (0, 1)))
                consumer.process.wait(60)
            microseconds = [int(line) for line in latencies.read_text().splitlines()]
        if len(microseconds) != count:
            raise RuntimeError(f"{len(microseconds)} of {count} records came through")
        milliseconds = [value / 1000 for value in microseconds[warm_up:]]
        return milliseconds, _rate(produced, "dr", count)["records_per_s"]

    def java_produce(self, bootstrap, topic, size, count):
        """kafka-producer-perf-test with Java's own defaults (acks=all, idempotent)."""
        said = _finish(self.tools.java_tool(
            "ProducerPerformance", "--bootstrap-server", bootstrap, "--topic", topic, "--record-size", size,
            "--num-records", count, "--throughput", -1))
        final = said.strip().splitlines()[-1]
        found = re.match(r"(\d+) records sent, ([0-9.]+) records/sec", final)
        if not found or int(found.group(1)) != count:
            raise RuntimeError(f"kafka-producer-perf-test said: {final}")
        return {"records_per_s": float(found.group(2))}

    def java_consume(self, bootstrap, topic, count):
        """kafka-consumer-perf-test: records per second once it has its partitions."""
        said = _finish(self.tools.java_tool(
            "ConsumerPerformance", "--bootstrap-server", bootstrap, "--topic", topic, "--num-records", count,
            "--timeout", 60_000))
        names, values = [[cell.strip() for cell in line.split(",")] for line in said.strip().splitlines()[-2:]]
        row = dict(zip(names, values))
        if int(row["data.consumed.in.nMsg"]) < count:
            raise RuntimeError(f"kafka-consumer-perf-test said: {said}")
        return {"records_per_s": float(row["fetch.nMsg.sec"])}

    def java_end_to_end(self, bootstrap, topic, count, size):
        """Kafka's end-to-end latency tool: one record at a time; p50 and p99 in milliseconds."""
        said = _finish(self.tools.java_tool("EndToEndLatency", bootstrap, topic, count, "all", size))
        found = re.search(r"50th = (\d+), 99th = (\d+)", said)
        if not found:
            raise RuntimeError(f"EndToEndLatency said: {said[-500:]}")
        return {"java_p50_ms": float(found.group(1)), "java_p99_ms": float(found.group(2))}


class GroupConsumer:
    def __init__(self, process, printed):
        self.process, self.printed = process, printed

    def stop(self):
        """Ends it in order; how many records it has received."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(60)
        self.printed.seek(0)
        rows = _table(self.printed.read())
        return rows[-1]["msgs"] if rows else 0


@contextlib.contextmanager
def running(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
    """Killed at the end: a load has no work left that is worth waiting for."""
    process = subprocess.Popen(command, stdin=stdin, stdout=stdout, stderr=stderr, text=True)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()


def _finish(command, good=(0,)):
    """What it printed. A producer of rdkafka_performance ends with 1 also where all was delivered but an event
    of another kind waited at its end; `_rate` counts what was delivered."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE)
    if done.returncode not in good:
        raise RuntimeError(f"{' '.join(command)}: exit {done.returncode}\n{(done.stdout + done.stderr)[-2000:]}")
    return done.stdout


def _table(said):
    """The rows that rdkafka_performance prints with -u, each a dict of numbers."""
    names, rows = [], []
    for line in said.splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:]]
        if not cells:
            continue
        if cells[0] == "elapsed":
            names = cells
        else:
            rows.append(dict(zip(names, map(float, cells))))
    return rows


def _rate(rows, counted, count):
    """Records per second of the last row, which must have them all; and from each row to the next."""
    last = rows[-1] if rows else {counted: 0}
    if last[counted] < count:
        raise RuntimeError(f"{last[counted]:.0f} of {count} records")
    course = [
        (after["elapsed"] / 1000, (after[counted] - before[counted]) / (after["elapsed"] - before["elapsed"]) * 1000)
        for before, after in zip([{"elapsed": 0, counted: 0}, *rows], rows)
        if after["elapsed"] - before["elapsed"] >= 250
    ]
    return {"records_per_s": last[counted] / last["elapsed"] * 1000, "course": course}
