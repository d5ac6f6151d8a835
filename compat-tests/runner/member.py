"""One member of a group: `run.sh group` of a client, and the signals that it is sent."""

import os
import signal
import subprocess


class Member:
    def __init__(self, client, name, bootstrap, topic, group, assignor, instance_id=None):
        self.client, self.name = client, name
        self.claim = client.group_claim
        self.log = client.logs / f"{name}.log"
        arguments = [bootstrap, topic, group, assignor, *([instance_id] if instance_id else [])]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [str(client.script), "group", *arguments],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                # A process group of its own: a signal is for all of its processes, and for no others.
                start_new_session=True,
            )
        os.set_blocking(self.process.stdout.fileno(), False)
        self._rest = b""

    def lines(self):
        """What it wrote since, and whether it has closed its output."""
        while True:
            try:
                data = os.read(self.process.stdout.fileno(), 1 << 16)
            except BlockingIOError:
                data = None
            if not data:
                *lines, self._rest = self._rest.split(b"\n")
                return lines, data is not None
            self._rest += data

    def end_input(self):
        self.process.stdin.close()

    def signal(self, number):
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            pass

    def reap(self):
        """Its exit status, which is waited for; nothing of it is left."""
        status = self.process.wait()
        self.signal(signal.SIGKILL)
        self.process.stdout.close()
        self.process.stdin.close()
        return status
