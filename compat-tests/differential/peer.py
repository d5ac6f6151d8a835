"""One server under test: connections to it, answers in a form that two servers can be compared in."""

import socket
import struct
import time
import uuid

import batch
import codec

VERSIONS = {
    "Produce": (3, 11),
    "Fetch": (4, 12),
    "ListOffsets": (1, 8),
    "Metadata": (0, 12),
    "FindCoordinator": (0, 6),
    "ApiVersions": (0, 4),
    "CreateTopics": (2, 7),
    "DeleteTopics": (1, 6),
    "InitProducerId": (0, 5),
    "OffsetForLeaderEpoch": (2, 4),
    "DescribeConfigs": (1, 4),
    "DescribeCluster": (0, 2),
}
PATIENCE = 20


def versions(api):
    low, high = VERSIONS[api]
    return range(low, high + 1)


class Closed(Exception):
    """The server closed the connection instead of an answer."""


class Connection:
    def __init__(self, address, timeout=PATIENCE):
        self.socket = socket.create_connection(address, timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.correlation_id = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, raw):
        self.socket.sendall(raw)

    def take(self, size):
        out = bytearray()
        while len(out) < size:
            try:
                piece = self.socket.recv(min(size - len(out), 1 << 20))
            except ConnectionError as error:
                raise Closed from error
            if not piece:
                raise Closed
            out += piece
        return bytes(out)

    def frame(self):
        return self.take(struct.unpack(">i", self.take(4))[0])

    def request(self, api, version, body):
        self.correlation_id += 1
        self.send(codec.encode_request(api, version, self.correlation_id, body))

    def answer(self, api, version):
        correlation_id, values = codec.decode_response(api, version, self.frame())
        return correlation_id, values

    def call(self, api, version, body):
        self.request(api, version, body)
        correlation_id, values = self.answer(api, version)
        if correlation_id != self.correlation_id:
            raise codec.Malformed(f"correlation id {correlation_id}, not {self.correlation_id}")
        return values

    def is_closed(self, seconds=5):
        """Whether the server closes within the time, and sends nothing before."""
        self.socket.settimeout(seconds)
        try:
            got = self.socket.recv(1)
            return not got
        except socket.timeout:
            return False
        except ConnectionError:
            return True


class Peer:
    """`notes` collects (label, what was answered); cases of two peers are compared note by note."""

    def __init__(self, address, prefix, start):
        self.address, self.prefix, self.start = address, prefix, start
        self.notes = []
        self.connection = None

    def connect(self, timeout=PATIENCE):
        return Connection(self.address, timeout)

    def call(self, api, version, body):
        if self.connection is None:
            self.connection = self.connect()
        try:
            return self.connection.call(api, version, body)
        except (Closed, OSError, codec.Malformed):
            self.connection.__exit__()
            self.connection = None
            raise

    def close(self):
        if self.connection:
            self.connection.__exit__()
            self.connection = None

    def note(self, label, value):
        self.notes.append((label, normal(value)))

    def ask(self, label, api, version, body):
        """Calls and notes the answer, or that there was none."""
        try:
            values = self.call(api, version, body)
        except Closed:
            self.notes.append((f"{label} v{version}", "closed"))
            return None
        except codec.Malformed as error:
            self.notes.append((f"{label} v{version}", f"malformed: {error}"))
            return None
        if api == "Metadata":
            values["Topics"].sort(key=lambda topic: str(topic["Name"]))
        self.note(f"{label} v{version}", values)
        return values

    def name_of(self, suffix):
        return f"{self.prefix}-{suffix}"

    def topic(self, suffix, partitions=1, **configs):
        """Makes a topic and waits until it can be used."""
        name = self.name_of(suffix)
        made = self.call(
            "CreateTopics",
            5,
            {
                "Topics": [
                    {
                        "Name": name,
                        "NumPartitions": partitions,
                        "ReplicationFactor": 1,
                        "Configs": [
                            {"Name": key.replace("_", "."), "Value": value} for key, value in configs.items()
                        ],
                    }
                ],
                "timeoutMs": 15000,
            },
        )
        assert made["Topics"][0]["ErrorCode"] == 0, made
        self.wait_for(name, partitions)
        return name

    def wait_for(self, name, partitions):
        for _ in range(200):
            found = self.call("Metadata", 4, {"Topics": [{"Name": name}], "AllowAutoTopicCreation": False})
            topic = found["Topics"][0]
            if len(topic["Partitions"]) == partitions and all(
                p["ErrorCode"] == 0 and p["LeaderId"] >= 0 for p in topic["Partitions"]
            ):
                break
            time.sleep(0.02)
        # Metadata may know a partition before its leader takes requests.
        for partition in range(partitions):
            for _ in range(200):
                found = self.call("ListOffsets", 4, list_offsets(name, -1, partition=partition))
                if found["Topics"][0]["Partitions"][0]["ErrorCode"] == 0:
                    break
                time.sleep(0.02)

    def topic_id(self, name):
        """From Metadata."""
        return self.call("Metadata", 12, {"Topics": [{"Name": name}]})["Topics"][0]["TopicId"]

    def produce(self, name, records, partition=0, acks=-1, version=9):
        return self.call("Produce", version, produce(name, records, partition, acks))

    def producer_id(self):
        for _ in range(300):
            body = {"TransactionalId": None, "TransactionTimeoutMs": 60000}
            made = self.call("InitProducerId", 4, body)
            # COORDINATOR_LOAD_IN_PROGRESS: a Kafka that has just started.
            if made["ErrorCode"] != 14:
                break
            time.sleep(0.1)
        assert made["ErrorCode"] == 0, made
        return made["ProducerId"], made["ProducerEpoch"]


def produce(name, records, partition=0, acks=-1, transactional_id=None):
    return {
        "TransactionalId": transactional_id,
        "Acks": acks,
        "TimeoutMs": 15000,
        "TopicData": [{"Name": name, "PartitionData": [{"Index": partition, "Records": records}]}],
    }


def fetch_partition(offset=0, partition=0, most=1 << 20, epoch=-1, last_epoch=-1):
    return {
        "Partition": partition,
        "CurrentLeaderEpoch": epoch,
        "FetchOffset": offset,
        "LastFetchedEpoch": last_epoch,
        "LogStartOffset": -1,
        "PartitionMaxBytes": most,
    }


def fetch(name, *partitions, wait=0, least=0, most=50 << 20, isolation=0, session=0, session_epoch=-1):
    return {
        "ReplicaId": -1,
        "MaxWaitMs": wait,
        "MinBytes": least,
        "MaxBytes": most,
        "IsolationLevel": isolation,
        "SessionId": session,
        "SessionEpoch": session_epoch,
        "Topics": [{"Topic": name, "Partitions": list(partitions) or [fetch_partition()]}],
    }


def list_offsets(name, timestamp, partition=0, epoch=-1, isolation=0):
    return {
        "ReplicaId": -1,
        "IsolationLevel": isolation,
        "TimeoutMs": 15000,
        "Topics": [
            {
                "Name": name,
                "Partitions": [
                    {"PartitionIndex": partition, "CurrentLeaderEpoch": epoch, "Timestamp": timestamp}
                ],
            }
        ],
    }


# What two right servers need not agree in.
DROPPED = {"ThrottleTimeMs", "Host", "Port", "ErrorMessage", "BatchIndexErrorMessage"}

SORTED_BY = ("Index", "PartitionIndex", "Partition", "Name", "Topic")


def normal(value, key=None):
    if isinstance(value, dict):
        return {name: normal(inner, name) for name, inner in value.items() if name not in DROPPED}
    if isinstance(value, list):
        values = [normal(inner, key) for inner in value]
        for name in SORTED_BY:
            if values and isinstance(values[0], dict) and name in values[0]:
                # Answers come in any order; the sort keeps what is there twice in its order.
                values.sort(key=lambda row: [] if row[name] is None else [row[name]])
        return values
    if isinstance(value, uuid.UUID):
        return "an id" if value.int else "no id"
    if key in ("ProducerId", "LeaderEpoch", "LogAppendTimeMs") and isinstance(value, int):
        return value if value < 0 else "some"
    if key == "ClusterId":
        return value if value is None else "some"
    if key == "Records":
        return (
            value if value is None else [record for part in batch.parse(value) for record in part["records"]]
        )
    return value
