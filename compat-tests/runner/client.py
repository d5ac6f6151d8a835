"""One client folder: its run.sh, called as a program, with a time limit on every verb."""

import json
import os
import signal
import subprocess
import threading
from pathlib import Path

from .capability import for_group

BUILD_SECONDS = 1800
VERB_SECONDS = 180
SUITE_SECONDS = 900


class Failed(Exception):
    """A verb that ended with an error, or did not end."""


class Client:
    def __init__(self, folder, work):
        self.name = folder.name
        self.script = folder / "run.sh"
        self.logs = work / "logs"
        self.capabilities = None
        self.group_claim = None

    def fetch(self):
        self._run(["build"], BUILD_SECONDS, "build")

    def build(self):
        self.fetch()
        text = b"".join(self.lines(["capabilities"], "capabilities"))
        try:
            self.capabilities = json.loads(text)
        except ValueError as error:
            raise Failed(f"capabilities are not JSON: {error}") from None
        self.group_claim = for_group(self.capabilities)

    def produce(self, bootstrap, topic, codec, path):
        self._run(["produce", bootstrap, topic, codec, str(path)], VERB_SECONDS, f"produce-{topic}-{codec}")

    def consume(self, bootstrap, topic):
        return self.lines(["consume", bootstrap, topic], f"consume-{topic}")

    def suite(self, verb, bootstrap):
        """The lines that a suite of tests prints, of which the last is 'N passed, N failed'."""
        return self.lines([verb, bootstrap], verb, SUITE_SECONDS)

    def _run(self, arguments, seconds, log):
        for _line in self.lines(arguments, log, seconds, also_stdout=True):
            pass

    def lines(self, arguments, log, seconds=VERB_SECONDS, also_stdout=False):
        """The lines of standard output; standard error goes to a log of its own. Raises Failed at the end."""
        path = self.logs / f"{self.name}-{log}.log"
        with open(path, "wb") as stderr:
            process = subprocess.Popen(
                [str(self.script), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=stderr if also_stdout else subprocess.PIPE,
                stderr=stderr,
                start_new_session=True,
            )
            overdue = threading.Event()
            timer = threading.Timer(seconds, _end, (process, overdue))
            timer.start()
            try:
                if not also_stdout:
                    yield from process.stdout
                process.wait()
            finally:
                timer.cancel()
                if process.poll() is None:
                    _end(process, threading.Event())
                    process.wait()
                if process.stdout:
                    process.stdout.close()
        if overdue.is_set():
            raise Failed(f"{arguments[0]} did not end within {seconds} s{_tail(path)}")
        if process.returncode != 0:
            raise Failed(f"{arguments[0]} ended with {process.returncode}{_tail(path)}")


def _end(process, overdue):
    overdue.set()
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def _tail(path: Path):
    lines = path.read_bytes().decode(errors="replace").strip().splitlines()[-6:]
    return f", {path}:" + "".join(f"\n      {line[:300]}" for line in lines)
