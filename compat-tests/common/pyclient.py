"""The verbs of the contract (README.md) for clients that are driven from Python.

A client gives its capabilities and three functions:
    produce(bootstrap, topic, codec, records)   returns when every record is acknowledged, or raises
    consume(bootstrap, topic)                   yields a Read per record, per partition in offset order
    group(bootstrap, topic, name, assignor, instance_id)   one member, with the help of group_member.py
"""

import json
import sys
from typing import List, NamedTuple, Optional, Tuple

Headers = List[Tuple[str, Optional[bytes]]]

#: Seconds in which a broker on this machine must have answered whatever was asked.
PATIENCE = 60

#: All that Kafka's record format can hold; a client takes away what it cannot do.
EVERYTHING = {
    "codecs": ["none", "gzip", "snappy", "lz4", "zstd"],
    "binary": True,
    "headers": True,
    "null_header_values": True,
    "duplicate_headers": True,
    "null_key": True,
    "empty_key": True,
    "null_value": True,
    "empty_value": True,
    "timestamps": True,
    "max_value_bytes": 921600,
}


class Record(NamedTuple):
    partition: int
    key: Optional[bytes]
    value: Optional[bytes]
    headers: Headers
    timestamp: int


class Read(NamedTuple):
    partition: int
    offset: int
    key: Optional[bytes]
    value: Optional[bytes]
    headers: Headers
    timestamp: int


def main(capabilities, produce, consume, group):
    arguments = sys.argv[1:]
    if arguments == ["capabilities"]:
        print(json.dumps(capabilities))
    elif len(arguments) == 5 and arguments[0] == "produce":
        bootstrap, topic, codec, path = arguments[1:]
        with open(path, encoding="ascii") as lines:
            produce(bootstrap, topic, codec, (record_of(line) for line in lines))
    elif len(arguments) == 3 and arguments[0] == "consume":
        for read in consume(*arguments[1:]):
            sys.stdout.write(line_of(read))
        sys.stdout.flush()
    elif len(arguments) in (5, 6) and arguments[0] == "group":
        group(*arguments[1:5], arguments[5] if len(arguments) == 6 else None)
    else:
        sys.exit(
            "usage: run.sh build | capabilities | produce BOOTSTRAP TOPIC CODEC FILE | consume BOOTSTRAP TOPIC"
            " | group BOOTSTRAP TOPIC GROUP ASSIGNOR [INSTANCE_ID]"
        )


def record_of(line):
    fields = json.loads(line)
    return Record(
        fields["partition"],
        from_hex(fields["key"]),
        from_hex(fields["value"]),
        [(name, from_hex(value)) for name, value in fields["headers"]],
        fields["timestamp"],
    )


def line_of(read):
    fields = read._asdict()
    fields["key"] = to_hex(read.key)
    fields["value"] = to_hex(read.value)
    fields["headers"] = [[name, to_hex(value)] for name, value in read.headers]
    return json.dumps(fields) + "\n"


def from_hex(text):
    return None if text is None else bytes.fromhex(text)


def to_hex(data):
    return None if data is None else bytes(data).hex()
