"""kcat through its command line.

Produce: runs of records that share partition and headers go through one `kcat -P -l FILE` with two
delimiters that no record holds. Without the key delimiter kcat sends a null key, with -Z it sends
null for every key and value that is empty; it passes over a line without key and value.

Consume: `kcat -C -J`. Its JSON has every byte from 0x20 on as it is and the others escaped, so that
read as Latin-1 each character is one byte.

Group: `kcat -G`, which tells rebalances on standard error. Both of its outputs go into one pipe, which keeps
their order. It commits by itself and does not tell what.
"""

import json
import re
import signal
import subprocess
import tempfile
from itertools import groupby

from group_member import HEARTBEAT_INTERVAL, REBALANCE_TIMEOUT, SESSION_TIMEOUT, Input, tell
from pyclient import EVERYTHING, PATIENCE, Read, main

CAPABILITIES = {
    **EVERYTHING,
    "produce": {
        "timestamps": False,
        # Headers are arguments of the command.
        "binary_header_values": False,
        "null_key_with_empty_value": False,
        "empty_key_with_null_value": False,
    },
    "group": {
        "assignors": ["range", "roundrobin", "cooperative-sticky"],
        "static": True,
        "rebalance_events": True,
        # It commits what librdkafka gave it, printed or not: it drops the record that arrives while it is
        # told to end (consume_cb in kcat.c).
        "commits_after_processing": False,
    },
}
KEY_DELIMITER = b"<kcat:key/value>"
RECORD_DELIMITER = b"<kcat:end>"


def produce(bootstrap, topic, codec, records):
    def invocation(record):
        # With -Z nothing can be empty, without it nothing can be null (but the key).
        return record.partition, record.headers, record.value is None

    for (partition, headers, nulls), group in groupby(records, key=invocation):
        command = [
            "kcat", "-P", "-b", bootstrap, "-t", topic, "-p", str(partition),
            "-X", f"compression.codec={codec}", "-X", f"message.timeout.ms={PATIENCE * 1000}",
            "-m", str(PATIENCE), "-D", RECORD_DELIMITER.decode(), "-K", KEY_DELIMITER.decode(),
        ]
        if nulls:
            command.append("-Z")
        for name, value in headers:
            command += ["-H", name if value is None else f"{name}={value.decode()}"]
        with tempfile.NamedTemporaryFile() as lines:
            for record in group:
                lines.write(line_of(record))
            lines.flush()
            subprocess.run([*command, "-l", lines.name], stdin=subprocess.DEVNULL, check=True)


def line_of(record):
    data = record.value or b""
    if record.key is not None or not data:
        data = (record.key or b"") + KEY_DELIMITER + data
    if data.count(KEY_DELIMITER) > 1 or RECORD_DELIMITER in data:
        raise ValueError("a record holds a delimiter")
    return data + RECORD_DELIMITER


def consume(bootstrap, topic):
    command = [
        "kcat", "-C", "-q", "-b", bootstrap, "-t", topic, "-o", "beginning", "-e", "-J",
        "-m", str(PATIENCE),
    ]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    for line in process.stdout:
        fields = json.loads(line.decode("latin-1"))
        headers = fields.get("headers", [])
        yield Read(
            fields["partition"],
            fields["offset"],
            bytes_of(fields["key"]),
            bytes_of(fields["payload"]),
            [(bytes_of(name).decode(), bytes_of(value)) for name, value in zip(headers[::2], headers[1::2])],
            fields["ts"],
        )
    if process.wait() != 0:
        raise SystemExit(f"kcat ended with {process.returncode}")


REBALANCED = re.compile(r"% Group \S+ rebalanced(?:: incremental)? .*?(assigned|revoked|assignment|revoke)\b")


def group(bootstrap, topic, name, assignor, instance_id):
    settings = {
        "partition.assignment.strategy": assignor,
        "auto.offset.reset": "earliest",
        "auto.commit.interval.ms": 100,
        "isolation.level": "read_uncommitted",
        "session.timeout.ms": SESSION_TIMEOUT,
        "heartbeat.interval.ms": HEARTBEAT_INTERVAL,
        "max.poll.interval.ms": REBALANCE_TIMEOUT,
        # The threads of librdkafka must not write into the middle of a line.
        "log_level": 0,
    }
    if instance_id is not None:
        settings["group.instance.id"] = instance_id
    options = [word for pair in settings.items() for word in ("-X", "=".join(map(str, pair)))]
    process = subprocess.Popen(
        # A line at a time: -u would write each field by itself.
        ["stdbuf", "-oL", "kcat", "-b", bootstrap, "-J", *options, "-G", name, topic],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )
    ends = Input(lambda: process.send_signal(signal.SIGTERM))
    last = ""
    for line in process.stdout:
        last = line.decode("latin-1").rstrip()
        if last.startswith("{"):
            fields = json.loads(last)
            value = bytes_of(fields["payload"]).hex()
            tell("record", partition=fields["partition"], offset=fields["offset"], value=value)
        elif rebalanced := REBALANCED.match(last):
            event = "assigned" if rebalanced[1].startswith("assign") else "revoked"
            tell("lost" if "assignment lost" in last else event, partitions=partitions_of(last))
    if process.wait() != 0 or not ends.ended():
        raise SystemExit(f"kcat ended with {process.returncode}: {last}")
    tell("closed")


def partitions_of(line):
    return sorted(map(int, re.findall(r"\[(\d+)\]", line)))


def bytes_of(text):
    return None if text is None else text.encode("latin-1")


main(CAPABILITIES, produce, consume, group)
