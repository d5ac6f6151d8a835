#!/usr/bin/env python3
"""Records what real clients send, for the tests of crates/wire (crates/wire/testdata/README.md).

A proxy stands between the clients and a server that advertises the proxy's address. It changes no byte.
Of each client it keeps two requests of every API and version: the first, and the longest where that is
another one (not of Produce); and per codec the record batches that it sent. The gateway, for example:

    pgqueue-gateway dev --data-dir DIR --listen 127.0.0.1:19092 --advertise 127.0.0.1:19093
    compat-tests/record.py --server 127.0.0.1:19092 --listen 127.0.0.1:19093

A client's files are replaced only when everything it was to do succeeded. Afterwards
`UPDATE_GOLDEN=1 cargo test -p wire --test it recorded` writes the expected texts anew.
"""

import argparse
import os
import socket
import socketserver
import sys
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE))

from runner.capability import beyond, for_verb  # noqa: E402
from runner.client import Client, Failed  # noqa: E402
from runner.expected import line_of  # noqa: E402
from runner.recording import Recording  # noqa: E402

TESTDATA = HERE.parent / "crates" / "wire" / "testdata"

#: Some clients tell the server the host's name (kafka-go in its client id).
HOST_NAME = "localhost"

#: Few, as they are kept; in one partition, so that one batch can hold them. The first gets smaller with
#: every codec: librdkafka sends a batch uncompressed that does not.
RECORDS = [
    (None, b"".join(b"line %d of a text that compresses well\n" % i for i in range(12)), []),
    (b"key", bytes(range(256)), []),
    (b"", b"", []),
    (b"deleted", None, []),
    (None, None, []),
    (b"headers", b"plain", [("one", b"1"), ("two", b"2")]),
    (b"headers", b"twice", [("h", b"first"), ("other", b"x"), ("h", b"second")]),
    (b"headers", b"odd", [("null", None), ("empty", b""), ("bytes", b"\x00\xff")]),
]
#: ms; each record's own, backwards too.
TIMESTAMPS = [1_700_000_000_000 + step for step in (0, 1, 1, -86_400_000, 5, 2**33, 3, 4)]

#: Arguments: BOOTSTRAP TOPIC CODEC FILE.
IDEMPOTENT_LIBRDKAFKA = """
import sys
from confluent_kafka import Producer
from pyclient import record_of

def acknowledged(error, _message):
    if error is not None:
        sys.exit(str(error))

bootstrap, topic, codec, path = sys.argv[1:]
producer = Producer({"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": 50,
                     "enable.idempotence": True})
# Without topics a request for metadata is another one.
producer.list_topics(timeout=60)
for record in map(record_of, open(path, encoding="ascii")):
    producer.produce(topic, partition=record.partition, key=record.key, value=record.value,
                     headers=record.headers, timestamp=record.timestamp, on_delivery=acknowledged)
if producer.flush(60):
    sys.exit("not acknowledged")
"""


def main():
    options = parse_options()
    hide_host_name()
    work = Path(os.environ.get("COMPAT_WORK") or HERE.parent / ".dev" / "compat").resolve() / "record"
    (work / "logs").mkdir(parents=True, exist_ok=True)
    failed = 0
    with Proxy(options.listen, options.server) as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        for name in options.clients:
            proxy.recording = recording = Recording(name)
            try:
                CLIENTS[name](name, ":".join(map(str, options.listen)), work, recording)
                recording.save(TESTDATA, [str(HERE.parent), str(Path.home())])
                print(f"{name}: {recording}", flush=True)
            except (Failed, ValueError) as error:
                failed += 1
                print(f"FAILED {name}: {error}", flush=True)
        proxy.shutdown()
    print(f"{len(options.clients) - failed} passed, {failed} failed")
    return 1 if failed else 0


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", type=address, required=True, help="HOST:PORT where the server listens")
    parser.add_argument("--listen", type=address, required=True, help="HOST:PORT that it advertises: the proxy's")
    parser.add_argument("--clients", type=names, default=list(CLIENTS), help="only these, with commas between")
    return parser.parse_args()


def address(text):
    host, _, port = text.rpartition(":")
    return host, int(port)


def names(text):
    chosen = text.split(",")
    unknown = [name for name in chosen if name not in CLIENTS]
    if unknown:
        raise argparse.ArgumentTypeError(f"no such client: {', '.join(unknown)}; there are {', '.join(CLIENTS)}")
    return chosen


def hide_host_name():
    """Starts this program again where the host is called localhost (Linux)."""
    if socket.gethostname() == HOST_NAME:
        return
    user = [] if os.geteuid() == 0 else ["--map-root-user"]
    rename = f'hostname {HOST_NAME} && exec "$@"'
    os.execvp("unshare", ["unshare", *user, "--uts", "sh", "-ec", rename, "sh", sys.executable, *sys.argv])


class Proxy(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, listen, server):
        super().__init__(listen, Connection)
        self.upstream = server
        self.recording = None


class Connection(socketserver.BaseRequestHandler):
    def handle(self):
        recording = self.server.recording
        try:
            with socket.create_connection(self.server.upstream) as server:
                threading.Thread(target=copy_bytes, args=(server, self.request), daemon=True).start()
                with self.request.makefile("rb") as requests:
                    while frame := read_frame(requests):
                        recording.add(frame)
                        server.sendall(frame)
                server.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # one of the two is gone; the other sees it


def read_frame(stream):
    size = stream.read(4)
    return size + stream.read(int.from_bytes(size, "big"))


def copy_bytes(source, target):
    try:
        while chunk := source.recv(1 << 16):
            target.sendall(chunk)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def matrix_client(name, bootstrap, work, recording):
    """What run.py has a client do, with few records."""
    client = Client(HERE / name, work)
    client.build()
    capabilities = for_verb(client.capabilities, "produce")
    path = write_records(client.name, capabilities, work, recording)
    for number, codec in enumerate(capabilities["codecs"]):
        # Names of one length: a longer one would make a longest request of each.
        topic = f"recorded-{name}-{number}"
        recording.codec = codec
        client.produce(bootstrap, topic, codec, path)
        read = sum(1 for _line in client.consume(bootstrap, topic))
        if read != len(recording.records):
            raise ValueError(f"{read} records read, {len(recording.records)} sent with {codec}")


def idempotent_librdkafka(name, bootstrap, work, recording):
    client = Client(HERE / "confluent-kafka", work)
    client.build()
    path = write_records(name, for_verb(client.capabilities, "produce"), work, recording)
    client.script = work.parent / "confluent-kafka" / "venv" / "bin" / "python"
    os.environ["PYTHONPATH"] = str(HERE / "common")
    for number, codec in enumerate(("none", "lz4")):
        recording.codec = codec
        arguments = ["-c", IDEMPOTENT_LIBRDKAFKA, bootstrap, f"recorded-{name}-{number}", codec, str(path)]
        for _line in client.lines(arguments, codec):
            pass
    del os.environ["PYTHONPATH"]


def kafka_tools(name, bootstrap, work, _recording):
    """Topics, configurations, offsets and the console clients: the tools' own test calls them all."""
    client = Client(HERE / name, work)
    for verb in ["build"], ["smoke", bootstrap]:
        for _line in client.lines(verb, verb[0], 900):
            pass


def write_records(name, capabilities, work, recording):
    """The file for the verb produce: the records that the client can send."""
    path = work / f"{name}.jsonl"
    with open(path, "w", encoding="ascii") as lines:
        for (key, value, headers), timestamp in zip(RECORDS, TIMESTAMPS):
            record = {"partition": 0, "key": key, "value": value, "headers": headers, "timestamp": timestamp}
            lacking = set(beyond(record, capabilities))
            if lacking - {"timestamp"}:
                continue
            lines.write(line_of(record) + "\n")
            if lacking:
                record["timestamp"] = None
            recording.records.append(record)
    return path


CLIENTS = {
    "rust-rdkafka": matrix_client,
    "confluent-kafka": matrix_client,
    "confluent-kafka-idempotent": idempotent_librdkafka,
    "kafka-python": matrix_client,
    "kafka-python-2.0.2": matrix_client,
    "aiokafka": matrix_client,
    "kcat": matrix_client,
    "java-3.9": matrix_client,
    "java-newest": matrix_client,
    "franz-go": matrix_client,
    "sarama": matrix_client,
    "kafka-go": matrix_client,
    "kafkajs": matrix_client,
    "kafka-tools": kafka_tools,
}

if __name__ == "__main__":
    sys.exit(main())
