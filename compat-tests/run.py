#!/usr/bin/env python3
"""Runs every Kafka client of this directory against one server. README.md says what a client folder holds."""

import argparse
import contextlib
import os
import signal
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE))

from runner import groups, matrix, suites  # noqa: E402
from runner.client import Failed  # noqa: E402
from runner.gateway import dev_gateway  # noqa: E402

#: The folders that take part. A client that is missing here, or here and not there, fails the run.
CLIENTS = (
    "rust-rdkafka",
    "confluent-kafka",
    "kafka-python",
    "kafka-python-2.0.2",
    "aiokafka",
    "kcat",
    "java-3.9",
    "java-newest",
    "franz-go",
    "sarama",
    "kafka-go",
    "kafkajs",
)
#: What `--suites` runs after the matrix: folders and their verbs.
SUITES = {
    "kafka-tools": "smoke",
    "franz-go": "suite",
}
KINDS = {
    "client": "produces and consumes in the matrix",
    "reference": "a server to compare with",
    "tools": "command-line tools of a broker",
    "docs": "what the README tells its readers to do",
    "library": "code that several clients share",
    "interop": "another program on the same tables",
}


def main():
    options = parse_options()
    complaints = check_folders()
    if complaints:
        for complaint in complaints:
            print(complaint, file=sys.stderr)
        print(f"0 passed, {len(complaints)} failed")
        return 1
    # As Ctrl-C does: a gateway that was started must not stay behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    work = Path(os.environ.get("COMPAT_WORK") or HERE.parent / ".dev" / "compat").resolve() / "matrix"
    (work / "logs").mkdir(parents=True, exist_ok=True)
    tally = matrix.Tally()
    try:
        with server(options, work) as bootstrap:
            clients = matrix.build_all([HERE / name for name in options.clients], work, tally)
            if options.records:
                matrix.run(clients, bootstrap, work, options.quick, options.jobs, tally)
            if options.groups:
                groups.run(clients, bootstrap, options.quick, tally)
            if options.suites:
                for name, verb in SUITES.items():
                    suites.run(HERE / name, verb, bootstrap, work, tally)
    except Failed as error:
        tally.fails("the gateway", error)
    for failure in tally.failures:
        print(f"failed: {failure}")
    print(f"{tally.passed} passed, {len(tally.failures)} failed")
    return 1 if tally.failures or not tally.passed else 0


@contextlib.contextmanager
def server(options, work):
    """Where the server is."""
    if options.gateway:
        with dev_gateway(options.gateway, work / "logs" / "gateway.log") as (gateway, _url):
            yield gateway.kafka
    else:
        yield options.bootstrap


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--bootstrap", default="127.0.0.1:9092", help="HOST:PORT of the server (%(default)s)")
    which.add_argument("--gateway", metavar="BINARY", help="start `BINARY dev` for the run, with data of its own")
    parser.add_argument("--clients", type=names, default=CLIENTS, help="only these, with commas between")
    parser.add_argument("--quick", action="store_true", help="fewer and smaller records, fewer groups")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--groups-only", dest="records", action="store_false", help="only consumer groups")
    only.add_argument("--no-groups", dest="groups", action="store_false", help="no consumer groups")
    parser.add_argument("--suites", action="store_true", help=f"then {', '.join(map(' '.join, SUITES.items()))}")
    parser.add_argument("--jobs", type=int, default=2, help="clients at work at the same time (%(default)s)")
    return parser.parse_args()


def names(text):
    chosen = tuple(text.split(","))
    unknown = [name for name in chosen if name not in CLIENTS]
    if unknown:
        raise argparse.ArgumentTypeError(f"no such client: {', '.join(unknown)}; there are {', '.join(CLIENTS)}")
    return chosen


def check_folders():
    """What is wrong with the folders: one line each."""
    complaints = []
    found = set()
    for script in sorted(HERE.glob("*/run.sh")):
        folder = script.parent
        kind = folder / "kind"
        word = kind.read_text().strip() if kind.exists() else ""
        if word not in KINDS:
            complaints.append(f"{folder.name}/kind must hold one of {', '.join(KINDS)}, not {word!r}")
        elif word == "client":
            found.add(folder.name)
            if folder.name not in CLIENTS:
                complaints.append(f"{folder.name} is a client, but not listed in run.py")
    for name in CLIENTS:
        if name not in found:
            complaints.append(f"{name} is listed in run.py, but {name}/run.sh of kind client is not there")
    return complaints


if __name__ == "__main__":
    sys.exit(main())
