"""A gateway binary: started on free ports, waited for, and stopped again."""

import contextlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

from .client import Failed

START_SECONDS = 60
#: SIGTERM drains: seconds are promised, and `dev` stops its Postgres as well.
STOP_SECONDS = 20


class Gateway:
    """Between `with` and its end the gateway serves `kafka`. Raises Failed when it does not come up, or
    does not end in order."""

    def __init__(self, binary, arguments, log):
        self.kafka, http = free_address(), free_address()
        self.ready_url = f"http://{http}/health/ready"
        self.log = log
        with open(log, "wb") as output:
            self.process = subprocess.Popen(
                [binary, *arguments, "--listen", self.kafka, "--http-listen", http],
                stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                # An interrupt at the terminal is for us: we stop it.
                start_new_session=True,
            )

    def __enter__(self):
        try:
            self._wait_ready()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *_):
        status = self._stop()
        if status is None:
            raise Failed(f"the gateway did not stop within {STOP_SECONDS} s, see {self.log}")
        if status != 0:
            raise Failed(f"the gateway ended with {status}{self._tail()}")

    def _stop(self):
        """The exit status; None when it had to be killed."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return None

    def _wait_ready(self):
        deadline = time.monotonic() + START_SECONDS
        while True:
            if self.process.poll() is not None:
                raise Failed(f"the gateway ended with {self.process.returncode}{self._tail()}")
            answer = self._ask()
            if answer is None:
                return
            if time.monotonic() > deadline:
                raise Failed(f"not ready after {START_SECONDS} s: {answer}{self._tail()}")
            time.sleep(0.1)

    def _ask(self):
        """None when it is ready, else why not."""
        try:
            with urllib.request.urlopen(self.ready_url, timeout=5):
                return None
        except urllib.error.HTTPError as error:
            return error.read().decode(errors="replace")
        except OSError as error:
            return str(error)

    def _tail(self):
        with open(self.log, encoding="utf-8", errors="replace") as log:
            lines = log.read().splitlines()[-20:]
        return f", {self.log}:\n" + "\n".join(lines)


@contextlib.contextmanager
def dev_gateway(binary, log):
    """`BINARY dev` with its own Postgres: the gateway, and the URL of that Postgres."""
    work = Path(tempfile.mkdtemp(prefix="pgqueue-gateway-"))
    try:
        # Where we are root, Postgres runs as a user of its own, who must be able to go there.
        work.chmod(0o755)
        data = work / "data"
        with Gateway(binary, ["dev", "--data-dir", str(data)], log) as gateway:
            yield gateway, (data / "url").read_text(encoding="utf-8").strip()
    finally:
        shutil.rmtree(work, ignore_errors=True)


def free_address():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"
