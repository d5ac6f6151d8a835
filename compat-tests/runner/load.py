"""A producer that goes on in a thread of its own: records with unique values, and where each of them stands."""

import threading

from .server import Server

#: Each partition in turn gets so many records, and so many seconds lie between two of them.
BURST = 3
PAUSE = 0.02


class Load:
    """In `with`. `sent` is {partition: [value in hexadecimal, by offset]} of what is acknowledged."""

    def __init__(self, bootstrap, topic, partitions):
        self.topic, self.sent = topic, {partition: [] for partition in range(partitions)}
        self.error = None
        self._server = Server(bootstrap)
        self._sending = threading.Lock()
        self._stop, self._thread = threading.Event(), None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        self._server.__exit__()

    def start(self):
        self._stop.clear()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self):
        """What was sent is acknowledged when this returns."""
        self._stop.set()
        if self._thread:
            self._thread.join()
            self._thread = None

    def running(self):
        return self._thread is not None

    def send_to_all(self):
        for partition in self.sent:
            self._send(partition)

    def ends(self):
        with self._sending:
            return {partition: len(values) for partition, values in self.sent.items()}

    def _run(self):
        try:
            while True:
                for partition in self.sent:
                    self._send(partition)
                    if self._stop.wait(PAUSE):
                        return
        except Exception as error:  # noqa: BLE001 -- whatever ends the load is told to the scenario
            self.error = error

    def _send(self, partition):
        values = self.sent[partition]
        new = [b"%s %d %d" % (self.topic.encode(), partition, len(values) + i) for i in range(BURST)]
        with self._sending:
            offset = self._server.produce(self.topic, partition, new)
            if offset != len(values):
                raise AssertionError(f"partition {partition}: acknowledged at {offset}, {len(values)} were sent before")
            values.extend(value.hex() for value in new)
