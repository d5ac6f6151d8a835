"""What the runner itself asks the server under test, at the lowest versions that Kafka 4 serves."""

import itertools
import socket
import struct
import time
from collections import namedtuple

#: Seconds in which an answer must be there, retries included.
PATIENCE = 60

PRODUCE, FIND_COORDINATOR, OFFSET_FETCH, DESCRIBE_GROUPS, CREATE_TOPICS = 0, 10, 9, 15, 19
#: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, and of a topic that was just
#: made UNKNOWN_TOPIC_OR_PARTITION and NOT_LEADER_OR_FOLLOWER: asking again is the answer.
RETRIABLE = {14, 15, 16, 3, 6}

Group = namedtuple("Group", "state members")


class Refused(Exception):
    """An error code that is not answered by asking again."""

    def __init__(self, what, code):
        super().__init__(f"{what}: error {code}")
        self.code = code


class Server:
    """One connection, for one thread at a time. The server must be the only broker of its cluster."""

    def __init__(self, bootstrap):
        host, port = bootstrap.rsplit(":", 1)
        self._socket = socket.create_connection((host, int(port)), PATIENCE)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._correlation_ids = itertools.count(1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()

    def create_topic(self, topic, partitions):
        body = struct.pack(">i", 1) + string(topic) + struct.pack(">ihii", partitions, 1, 0, 0)
        answer = self._call(CREATE_TOPICS, 2, body + struct.pack(">i?", PATIENCE * 1000, False))
        answer.take(">i")  # throttle time
        for _ in range(answer.take(">i")):
            answer.string()
            code = answer.take(">h")
            answer.string()
            if code:
                raise Refused(f"CreateTopics {topic}", code)

    def produce(self, topic, partition, values):
        """Returns the offset of the first one when all of them are acknowledged."""
        data = batch(values)
        body = struct.pack(">hhi", -1, -1, PATIENCE * 1000)  # transactional id, acks, time-out
        body += struct.pack(">i", 1) + string(topic) + struct.pack(">iii", 1, partition, len(data)) + data

        def once():
            answer = self._call(PRODUCE, 3, body)
            answer.take(">i")
            answer.string()
            _count, _partition, code, offset, _time = answer.take(">iihqq")
            return code, offset

        # A batch that was refused was not written, so this writes none twice.
        return self._until_done(f"Produce to {topic}", once)

    def committed(self, group, topic, partitions):
        """{partition: offset} of what is committed."""
        body = string(group) + struct.pack(">i", 1) + string(topic)
        body += struct.pack(f">i{partitions}i", partitions, *range(partitions))

        def once():
            answer, offsets, worst = self._call(OFFSET_FETCH, 1, body), {}, 0
            for _ in range(answer.take(">i")):
                answer.string()
                for _ in range(answer.take(">i")):
                    partition, offset = answer.take(">iq")
                    answer.string()
                    worst = answer.take(">h") or worst
                    if offset >= 0:
                        offsets[partition] = offset
            return worst, offsets

        return self._with_coordinator(group, "OffsetFetch", once)

    def group(self, group):
        """Its state, and how many members it has."""

        def once():
            answer = self._call(DESCRIBE_GROUPS, 0, struct.pack(">i", 1) + string(group))
            _count, code = answer.take(">ih")
            answer.string()
            state = answer.string()
            answer.string()
            answer.string()
            return code, Group(state, answer.take(">i"))

        return self._with_coordinator(group, "DescribeGroups", once)

    def _with_coordinator(self, group, what, once):
        def found():
            # The reference makes its offsets topic when it is first asked.
            code = self._call(FIND_COORDINATOR, 0, string(group)).take(">h")
            return (code, None) if code else once()

        return self._until_done(f"{what} {group}", found)

    def _until_done(self, what, once):
        deadline = time.monotonic() + PATIENCE
        while True:
            code, result = once()
            if not code:
                return result
            if code not in RETRIABLE or time.monotonic() > deadline:
                raise Refused(what, code)
            time.sleep(0.1)

    def _call(self, key, version, body):
        correlation_id = next(self._correlation_ids)
        frame = struct.pack(">hhi", key, version, correlation_id) + string("compat-runner") + body
        self._socket.sendall(struct.pack(">i", len(frame)) + frame)
        answer = Answer(self._take(struct.unpack(">i", self._take(4))[0]))
        assert answer.take(">i") == correlation_id, "an answer to another request"
        return answer

    def _take(self, size):
        data = bytearray()
        while len(data) < size:
            piece = self._socket.recv(size - len(data))
            if not piece:
                raise ConnectionError("the server closed the runner's connection")
            data += piece
        return bytes(data)


class Answer:
    def __init__(self, data):
        self._data, self._at = data, 0

    def take(self, form):
        values = struct.unpack_from(form, self._data, self._at)
        self._at += struct.calcsize(form)
        return values[0] if len(values) == 1 else values

    def string(self):
        size = max(self.take(">h"), 0)
        self._at += size
        return self._data[self._at - size : self._at].decode()


def string(text):
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def batch(values):
    """A record batch of magic 2, uncompressed, with null keys."""
    now = time.time_ns() // 1_000_000
    records = b"".join(record(delta, value) for delta, value in enumerate(values))
    # Attributes, last offset delta, first and last timestamp, no producer (id, epoch, sequence), count.
    body = struct.pack(">hiqqqhii", 0, len(values) - 1, now, now, -1, -1, -1, len(values)) + records
    rest = struct.pack(">ibI", -1, 2, crc32c(body)) + body
    return struct.pack(">qi", 0, len(rest)) + rest


def record(delta, value):
    # Attributes, timestamp delta, offset delta, null key, value, no headers.
    body = b"\0\0" + zigzag(delta) + zigzag(-1) + zigzag(len(value)) + value + b"\0"
    return zigzag(len(body)) + body


def zigzag(number):
    number = (number << 1) ^ (number >> 63)
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def crc_table():
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        yield byte


CRC_TABLE = tuple(crc_table())


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = CRC_TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF
