"""A small test runner: functions marked with `@test`, plain asserts, 'N passed, N failed' at the end."""

import time
import traceback

TESTS = []


def test(kafka):
    """Marks a test; `kafka` says whether it needs the gateway or pgQueue alone on its tables."""

    def register(function):
        TESTS.append((function, kafka))
        return function

    return register


class Tally:
    def __init__(self):
        self.passed = 0
        self.failed = []

    def run(self, name, function, *arguments):
        started = time.monotonic()
        try:
            function(*arguments)
        except Exception:
            self.failed.append(name)
            print(f"FAILED {name}\n{traceback.format_exc()}", flush=True)
        else:
            self.passed += 1
            print(f"ok {name} ({time.monotonic() - started:.1f} s)", flush=True)

    def run_all(self, context, label=""):
        for function, kafka in TESTS:
            if context.bootstrap or not kafka:
                self.run(f"{label}{function.__module__}.{function.__name__}", function, context)

    def finish(self):
        """Prints the totals; the exit status."""
        for name in self.failed:
            print(f"failed: {name}")
        print(f"{self.passed} passed, {len(self.failed)} failed")
        return 1 if self.failed or not self.passed else 0
