"""Suites of tests that a folder brings besides the verbs of a client: `run.sh VERB BOOTSTRAP`."""

import re
import time

from .client import Client, Failed

COUNTS = re.compile(r"(\d+) passed, (\d+) failed")


def run(folder, verb, bootstrap, work, tally):
    """Prints what the suite prints, indented, and adds what it counted."""
    name = f"{folder.name} {verb}"
    suite = Client(folder, work)
    started = time.monotonic()
    print(f"{name}:", flush=True)
    last, error = "", None
    try:
        suite.fetch()
        for line in suite.suite(verb, bootstrap):
            last = line.decode(errors="replace").rstrip()
            print(f"    {last}", flush=True)
    except Failed as failed:
        error = failed
    print(f"    in {time.monotonic() - started:.0f} s", flush=True)
    add_counts(name, last, error, tally)


def add_counts(name, last, error, tally):
    counts = COUNTS.fullmatch(last)
    passed, failed = map(int, counts.groups()) if counts else (0, 0)
    tally.passed += passed
    tally.failures.extend([f"one of {name}"] * failed)
    if not counts:
        tally.fails(name, f"no counts at its end{f': {error}' if error else ''}")
    elif error and not failed:
        tally.fails(name, error)
    elif failed and not error:
        tally.fails(name, "it counts failures and ends with 0")
