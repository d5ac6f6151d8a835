"""The few requests of the Kafka protocol that set up and count: topics, ends of logs, single fetches."""

import socket
import struct
import time


class Client:
    """One connection. No flexible versions: older ones say the same in fewer bytes."""

    def __init__(self, bootstrap, timeout=60):
        host, port = bootstrap.split(":")
        self.socket = socket.create_connection((host, int(port)), timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.correlation_id = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def call(self, api, version, body):
        """One request, and its answer after the correlation id: nothing else is on its way."""
        self.correlation_id += 1
        header = struct.pack(">hhi", api, version, self.correlation_id) + _string("bench")
        self.socket.sendall(struct.pack(">i", len(header) + len(body)) + header + body)
        answer = self._take(struct.unpack(">i", self._take(4))[0])
        return Reader(answer, 4)

    def _take(self, size):
        out = bytearray(size)
        view = memoryview(out)
        while view:
            count = self.socket.recv_into(view)
            if not count:
                raise ConnectionError("the server closed the connection")
            view = view[count:]
        return bytes(out)

    def create_topic(self, name, partitions, config):
        """Makes a topic and waits until every partition has a leader."""
        body = struct.pack(">i", 1) + _string(name) + struct.pack(">ihi", partitions, 1, 0)
        body += struct.pack(">i", len(config))
        for key, value in config.items():
            body += _string(key) + _string(value)
        answer = self.call(19, 2, body + struct.pack(">i?", 60_000, False))
        answer.int32(), answer.int32(), answer.string()
        error, message = answer.int16(), answer.string()
        if error:
            raise RuntimeError(f"CreateTopics {name}: error {error}, {message}")
        deadline = time.monotonic() + 120
        while self._offsets(name, partitions) is None:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{name} has no leaders after two minutes")
            time.sleep(0.05)

    def ends(self, topic, partitions):
        """The high watermark of each partition."""
        offsets = self._offsets(topic, partitions)
        if offsets is None:
            raise RuntimeError(f"no offsets of {topic}")
        return offsets

    def records(self, topic, partitions):
        """Records in a topic of which nothing was deleted."""
        return sum(self.ends(topic, partitions))

    def _offsets(self, topic, partitions):
        """None while a partition has no leader."""
        body = struct.pack(">ibi", -1, 0, 1) + _string(topic) + struct.pack(">i", partitions)
        body += b"".join(struct.pack(">iq", partition, -1) for partition in range(partitions))
        answer = self.call(2, 2, body)
        answer.int32(), answer.int32(), answer.string()
        offsets = {}
        for _ in range(answer.int32()):
            partition, error, _, offset = answer.int32(), answer.int16(), answer.int64(), answer.int64()
            if error:
                return None
            offsets[partition] = offset
        return [offsets[partition] for partition in range(partitions)]

    def fetch(self, topic, partition, offset, max_bytes):
        """Bytes of records from `offset` on, without waiting for any."""
        body = struct.pack(">iiiibi", -1, 0, 0, max_bytes, 0, 1) + _string(topic)
        body += struct.pack(">iiqi", 1, partition, offset, max_bytes)
        answer = self.call(1, 4, body)
        answer.int32(), answer.int32(), answer.string(), answer.int32(), answer.int32()
        error = answer.int16()
        if error:
            raise RuntimeError(f"Fetch {topic}-{partition} at {offset}: error {error}")
        answer.int64(), answer.int64()
        for _ in range(answer.int32()):
            answer.int64(), answer.int64()
        return answer.bytes()


class Reader:
    def __init__(self, data, at):
        self.data, self.at = data, at

    def _unpack(self, form, size):
        value = struct.unpack_from(form, self.data, self.at)[0]
        self.at += size
        return value

    def int16(self):
        return self._unpack(">h", 2)

    def int32(self):
        return self._unpack(">i", 4)

    def int64(self):
        return self._unpack(">q", 8)

    def string(self):
        size = self.int16()
        return None if size < 0 else self._slice(size).decode()

    def bytes(self):
        size = self.int32()
        return b"" if size < 0 else self._slice(size)

    def _slice(self, size):
        self.at += size
        return self.data[self.at - size:self.at]


def _string(text):
    data = text.encode()
    return struct.pack(">h", len(data)) + data
