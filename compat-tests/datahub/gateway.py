"""A gateway binary, started for a database and stopped again."""

import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request

START_SECONDS = 60
#: SIGTERM drains: seconds are promised.
STOP_SECONDS = 30


class Gateway:
    def __init__(self, binary, database_url, schema, prefix, profile, log):
        self.kafka, http = free_address(), free_address()
        self.ready_url = f"http://{http}/health/ready"
        self.log = log
        with open(log, "wb") as output:
            self.process = subprocess.Popen(
                [
                    binary, "serve", "--database-url", database_url, "--listen", self.kafka,
                    "--http-listen", http, "--schema", schema, "--table-prefix", prefix,
                    "--schema-profile", profile,
                ],
                stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            )

    def __enter__(self):
        try:
            self._wait_ready()
        except BaseException:
            self.process.kill()
            self.process.wait()
            raise
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"the gateway did not stop within {STOP_SECONDS} s, see {self.log}") from None
        assert status == 0, f"the gateway ended with {status}{self._tail()}"

    def _wait_ready(self):
        deadline = time.monotonic() + START_SECONDS
        while True:
            if self.process.poll() is not None:
                raise AssertionError(f"the gateway ended with {self.process.returncode}{self._tail()}")
            answer = self._ask()
            if answer is None:
                return
            if time.monotonic() > deadline:
                raise AssertionError(f"not ready after {START_SECONDS} s: {answer}{self._tail()}")
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


def free_address():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"
