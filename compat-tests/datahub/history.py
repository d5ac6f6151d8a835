"""What stands in a database of DataHub's before the gateway comes, and what must be there afterwards."""

import threading
import time
from collections import Counter

from pgqueue_alone import HEADERS, KEYS
from sides import MIME, Queue, kafka_read

TOPIC = "written-before-the-gateway"
#: Seconds that the worker which dies holds its leases.
LEASE_SECONDS = 1.0


class History:
    """Rows and half-finished groups of pgQueue, and a writer that goes on during the migration."""

    def __init__(self, context):
        self.context = context
        self.written = []  # (handle, key, payload, headers)
        self.writer_error = None
        self.acknowledged = []
        self.stop = threading.Event()
        self.thread = None

    def write(self):
        with Queue(self.context) as queue:
            for i, key in enumerate(KEYS * 5):
                self._enqueue(queue, key, b"%d" % i, HEADERS[: i % 5], snappy=i % 2 == 0)
            # Of one group some are acknowledged, with a gap, and the rest is leased to a worker that died.
            received = queue.receive(TOPIC, "halfway", visible_after=LEASE_SECONDS)
            self.acknowledged = [message for i, message in enumerate(received) if i % 3 != 2]
            queue.commit("halfway", self.acknowledged)

    def start_writer(self):
        self.thread = threading.Thread(target=self._write_on, daemon=True)
        self.thread.start()

    def stop_writer(self):
        self.stop.set()
        self.thread.join(60)
        assert not self.thread.is_alive(), "a pgQueue writer hangs since the migration"
        assert self.writer_error is None, f"a pgQueue writer failed during the migration: {self.writer_error!r}"

    def _write_on(self):
        try:
            with Queue(self.context) as queue:
                i = 0
                while not self.stop.is_set():
                    self._enqueue(queue, KEYS[i % len(KEYS)], b"during the migration %d" % i, (), snappy=False)
                    i += 1
                    time.sleep(0.01)
        except Exception as error:
            self.writer_error = error

    def _enqueue(self, queue, key, payload, headers, snappy):
        handle = queue.enqueue(TOPIC, key, payload, headers, snappy=snappy, content_type=MIME)
        self.written.append((handle, key, payload, headers))

    def every_row_is_read_through_kafka(self):
        read = kafka_read(self.context, TOPIC)
        assert sum(map(len, read.values())) == len(self.written)
        for handle, key, payload, headers in self.written:
            record = read[handle.partition_id][handle.enqueue_seq - 1]
            assert (record.key, record.value) == (key.encode(), payload), (record, handle)
            assert tuple(record.headers) == headers, (record, handle)
            assert record.timestamp == int(handle.enqueued_at.timestamp() * 1000), (record, handle)

    def the_group_goes_on_where_it_was(self):
        time.sleep(LEASE_SECONDS)
        acknowledged = {message.handle for message in self.acknowledged}
        with Queue(self.context) as queue:
            rest = {message.handle for message in queue.drain(TOPIC, "halfway")}
            expected = {handle for handle, *_ in self.written} - acknowledged
            assert rest == expected, (len(rest), len(expected), len(rest ^ expected))
            written = Counter(handle.partition_id for handle, *_ in self.written)
            for partition, count in written.items():
                assert queue.offset(TOPIC, "halfway", partition) == count, (partition, count)
