"""What one client sent through the proxy of record.py, and the files made of it."""

import json
import threading
from collections import Counter

from .expected import to_hex

#: Most bytes of a frame that is kept.
LARGEST_FRAME = 4096

PRODUCE = 0
APIS = {
    0: "Produce", 1: "Fetch", 2: "ListOffsets", 3: "Metadata", 8: "OffsetCommit", 9: "OffsetFetch",
    10: "FindCoordinator", 11: "JoinGroup", 12: "Heartbeat", 13: "LeaveGroup", 14: "SyncGroup",
    15: "DescribeGroups", 16: "ListGroups", 18: "ApiVersions", 19: "CreateTopics", 20: "DeleteTopics",
    22: "InitProducerId", 23: "OffsetForLeaderEpoch", 32: "DescribeConfigs", 47: "OffsetDelete",
    60: "DescribeCluster",
}  # fmt: skip

# Within a record batch.
COUNT_AT, RECORDS_AT = 57, 61


class Recording:
    def __init__(self, client):
        self.client = client
        #: What the client is given to send, and the codec that it is told to use now; None: keep no batches.
        self.records = []
        self.codec = None
        self._first, self._longest = {}, {}
        self._batches = {}
        self._lock = threading.Lock()

    def __str__(self):
        return f"{len(self._files())} requests, batches of {', '.join(self._batches) or 'no codec'}"

    def add(self, frame):
        """One request with its size field, as it came."""
        api = int.from_bytes(frame[4:6], "big", signed=True), int.from_bytes(frame[6:8], "big", signed=True)
        with self._lock:
            if len(frame) <= LARGEST_FRAME:
                self._first.setdefault(api, frame)
                if len(frame) > len(self._longest.get(api, b"")):
                    self._longest[api] = frame
            if api[0] == PRODUCE and self.codec:
                self._batches.setdefault(self.codec, []).extend(batches_of(frame))

    def save(self, testdata, forbidden):
        """Writes the files; ValueError, and none is touched, when something is missing or tells a path."""
        files = self._files()
        if not files:
            raise ValueError("no request was seen")
        for codec, batches in self._batches.items():
            count = sum(int.from_bytes(batch[COUNT_AT:RECORDS_AT], "big") for batch in batches)
            if count != len(self.records):
                raise ValueError(f"batches of {count} records seen, {len(self.records)} sent with {codec}")
        for name, frame in files.items():
            for text in forbidden:
                if text.encode() in frame:
                    raise ValueError(f"{name} holds {text}")
        replace(testdata / "requests" / self.client, files)
        if self._batches:
            batches = {codec: b"".join(batches) for codec, batches in self._batches.items()}
            replace(testdata / "batches" / self.client, batches)
            path = testdata / "expected" / f"{self.client}.jsonl"
            path.parent.mkdir(exist_ok=True)
            path.write_text("".join(map(golden_line, self.records)), encoding="utf-8")

    def _files(self):
        files = {}
        for (key, version), frame in self._first.items():
            name = f"{APIS.get(key, f'Api{key}')}_v{version}"
            files[name] = frame
            longest = self._longest[key, version]
            if key != PRODUCE and len(longest) > len(frame):
                files[f"{name}_longest"] = longest
        return files


def replace(folder, files):
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.bin"):
        old.unlink()
    for name, data in files.items():
        (folder / f"{name}.bin").write_bytes(data)


def golden_line(record):
    fields = {
        "key": to_hex(record["key"]),
        "value": to_hex(record["value"]),
        "headers": [[name, to_hex(value)] for name, value in record["headers"]],
        "timestamp": record["timestamp"],
    }
    return json.dumps(fields) + "\n"


def batches_of(frame):
    """The `records` fields of a Produce request (ProduceRequest.json in Kafka's source)."""
    version = int.from_bytes(frame[6:8], "big")
    request = Reader(frame, 12, version >= 9)
    request.skip(max(0, request.integer(2)))  # client id, never in compact form
    request.tagged_fields()
    request.string()  # transactional id
    request.skip(2 + 4)  # acks, timeout
    batches = []
    for _ in range(request.length()):
        if version >= 13:
            request.skip(16)  # topic id
        else:
            request.string()
        for _ in range(request.length()):
            request.skip(4)  # partition
            batches.append(request.take(request.length()))
            request.tagged_fields()
        request.tagged_fields()
    return batches


class Reader:
    def __init__(self, data, at, flexible):
        self.data, self.at, self.flexible = data, at, flexible

    def take(self, size):
        taken = self.data[self.at : self.at + size]
        if len(taken) != size:
            raise ValueError("a Produce request ends early")
        self.at += size
        return taken

    def skip(self, size):
        self.take(size)

    def integer(self, size):
        return int.from_bytes(self.take(size), "big", signed=True)

    def varint(self):
        value = shift = 0
        while True:
            byte = self.integer(1) & 0xFF
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def length(self):
        return self.varint() - 1 if self.flexible else self.integer(4)

    def string(self):
        self.skip(max(0, self.varint() - 1 if self.flexible else self.integer(2)))

    def tagged_fields(self):
        if self.flexible:
            for _ in range(self.varint()):
                self.varint()
                self.skip(self.varint())
