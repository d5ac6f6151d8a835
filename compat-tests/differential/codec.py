"""Kafka messages to bytes and back, from the message definitions that kafka-python brings along.

A request is a dict of the definitions' own field names; what is left out takes its default. Strict
in reading: bytes that are left over are an error.
"""

import struct
import uuid

from kafka.protocol.schemas.load_json import load_json

APIS = {
    0: "Produce",
    1: "Fetch",
    2: "ListOffsets",
    3: "Metadata",
    10: "FindCoordinator",
    18: "ApiVersions",
    19: "CreateTopics",
    20: "DeleteTopics",
    22: "InitProducerId",
    23: "OffsetForLeaderEpoch",
    32: "DescribeConfigs",
    60: "DescribeCluster",
}
KEYS = {name: key for key, name in APIS.items()}

FIXED = {
    "int8": ">b",
    "int16": ">h",
    "uint16": ">H",
    "int32": ">i",
    "uint32": ">I",
    "int64": ">q",
    "float64": ">d",
    "bool": ">?",
}

_definitions = {}


class Malformed(Exception):
    """The bytes are no message of this version."""


def definition(api, kind):
    name = api + kind
    if name not in _definitions:
        _definitions[name] = load_json(name)
    return _definitions[name]


def within(versions, version):
    if versions is None or versions == "none":
        return False
    if versions.endswith("+"):
        return version >= int(versions[:-1])
    low, _, high = versions.partition("-")
    return int(low) <= version <= int(high or low)


def is_flexible(api, version):
    return within(definition(api, "Request").get("flexibleVersions"), version)


def varint(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


class Writer:
    def __init__(self, version, flexible):
        self.version, self.flexible, self.out = version, flexible, bytearray()

    def length(self, size, fixed):
        """Of a string, bytes or array; size is None for null."""
        if self.flexible:
            self.out += varint(0 if size is None else size + 1)
        else:
            self.out += struct.pack(fixed, -1 if size is None else size)

    def value(self, field, kind, value):
        if kind.startswith("[]"):
            self.length(None if value is None else len(value), ">i")
            for item in value or ():
                self.value(field, kind[2:], item)
        elif kind in FIXED:
            self.out += struct.pack(FIXED[kind], value)
        elif kind == "string":
            raw = None if value is None else value if isinstance(value, bytes) else value.encode()
            self.length(None if raw is None else len(raw), ">h")
            self.out += raw or b""
        elif kind in ("bytes", "records"):
            self.length(None if value is None else len(value), ">i")
            self.out += value or b""
        elif kind == "uuid":
            self.out += (value or uuid.UUID(int=0)).bytes
        else:
            self.fields(field["fields"], value)

    def fields(self, fields, values):
        unknown = set(values) - {field["name"] for field in fields}
        assert not unknown, f"no such fields: {unknown}"
        tagged = []
        for field in fields:
            if not within(field["versions"], self.version):
                continue
            if "tag" in field and within(field.get("taggedVersions"), self.version):
                if field["name"] in values:
                    tagged.append(field)
                continue
            self.value(field, field["type"], values.get(field["name"], default(field)))
        if self.flexible:
            self.out += varint(len(tagged))
            for field in sorted(tagged, key=lambda field: field["tag"]):
                inner = Writer(self.version, True)
                inner.value(field, field["type"], values[field["name"]])
                self.out += varint(field["tag"]) + varint(len(inner.out)) + inner.out


def default(field):
    kind, given = field["type"], field.get("default")
    if given == "null":
        return None
    if kind.startswith("[]"):
        return []
    if kind == "bool":
        return str(given).lower() == "true"
    if kind in FIXED:
        return int(str(given), 0) if given not in (None, "") else 0
    if kind == "string":
        return given or ""
    if kind in ("bytes", "records"):
        return b""
    if kind == "uuid":
        return uuid.UUID(int=0)
    return {}


class Reader:
    def __init__(self, data, version, flexible):
        self.data, self.at, self.version, self.flexible = data, 0, version, flexible

    def take(self, size):
        if size < 0 or self.at + size > len(self.data):
            raise Malformed(f"{size} bytes wanted at {self.at} of {len(self.data)}")
        self.at += size
        return self.data[self.at - size : self.at]

    def fixed(self, form):
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def varint(self):
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def length(self, form):
        size = self.varint() - 1 if self.flexible else self.fixed(form)
        return None if size < 0 else size

    def value(self, field, kind):
        if kind.startswith("[]"):
            count = self.length(">i")
            return None if count is None else [self.value(field, kind[2:]) for _ in range(count)]
        if kind in FIXED:
            return self.fixed(FIXED[kind])
        if kind == "string":
            size = self.length(">h")
            return None if size is None else self.take(size).decode("utf-8", "backslashreplace")
        if kind in ("bytes", "records"):
            size = self.length(">i")
            return None if size is None else bytes(self.take(size))
        if kind == "uuid":
            return uuid.UUID(bytes=bytes(self.take(16)))
        return self.fields(field["fields"])

    def fields(self, fields):
        values, by_tag = {}, {}
        for field in fields:
            if not within(field["versions"], self.version):
                continue
            if "tag" in field and within(field.get("taggedVersions"), self.version):
                by_tag[field["tag"]] = field
            else:
                values[field["name"]] = self.value(field, field["type"])
        if self.flexible:
            for _ in range(self.varint()):
                tag, size = self.varint(), self.varint()
                end = self.at + size
                field = by_tag.get(tag)
                if field:
                    values[field["name"]] = self.value(field, field["type"])
                else:
                    values[f"tag {tag}"] = bytes(self.take(size))
                if self.at != end:
                    raise Malformed(f"tag {tag} is {size} bytes long by its own word")
        return values


def request_header(api_key, version, correlation_id, flexible, client_id="differential"):
    raw = client_id.encode()
    head = struct.pack(">hhih", api_key, version, correlation_id, len(raw)) + raw
    return head + (b"\0" if flexible else b"")


def encode_request(api, version, correlation_id, body):
    flexible = is_flexible(api, version)
    writer = Writer(version, flexible)
    writer.fields(definition(api, "Request")["fields"], body)
    frame = request_header(KEYS[api], version, correlation_id, flexible) + bytes(writer.out)
    return struct.pack(">i", len(frame)) + frame


def decode_response(api, version, frame):
    """The correlation id and the fields of a response frame."""
    flexible = is_flexible(api, version)
    reader = Reader(frame, version, flexible)
    correlation_id = reader.fixed(">i")
    if flexible and api != "ApiVersions" and reader.varint():
        raise Malformed("tags in a response header")
    values = reader.fields(definition(api, "Response")["fields"])
    if reader.at != len(frame):
        raise Malformed(f"{len(frame) - reader.at} bytes after the message")
    return correlation_id, values
