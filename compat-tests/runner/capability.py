"""What a client says that it can do, and which fields of a record that leaves out."""

from collections import Counter

KNOWN = {
    "binary": "keys and values may hold any bytes",
    "headers": "records have headers",
    "null_header_values": "a header value may be null",
    "duplicate_headers": "a header name may come twice; the order is kept",
    "null_key": "null is told from empty",
    "empty_key": "",
    "null_value": "null is told from empty",
    "empty_value": "",
    "timestamps": "the timestamp can be given (produce), is shown (consume)",
    "null_key_and_value": "both may be null in one record",
    "null_key_with_empty_value": "",
    "empty_key_with_null_value": "",
    "key_with_nul": "keys may hold the byte 0",
    "binary_header_values": "header values may hold any bytes, not only letters, digits and spaces",
}
#: The verbs that may have an object of their own among the capabilities.
VERBS = ("produce", "consume", "group")
ASSIGNORS = ("range", "roundrobin", "cooperative-sticky")
# What `group` says, and what holds where it says nothing.
GROUP = {
    "assignors": (),
    "static": False,  # it can be given a group.instance.id
    "rebalance_events": False,  # it tells what it is assigned, and what it loses
    "reads_in_rebalance": True,  # a cooperative rebalance does not keep it from reading
    "mixed": True,  # it can be in one group with every other client
    "commits_after_processing": True,  # it commits no record that it has not printed
}
# The finer ones, and what holds where a client says nothing about them.
FINER = {
    "null_key_and_value": "null_key",
    "null_key_with_empty_value": "null_key",
    "empty_key_with_null_value": "empty_key",
    "key_with_nul": "binary",
    "binary_header_values": "binary",
}
TOGETHER = {
    (None, None): "null_key_and_value",
    (None, b""): "null_key_with_empty_value",
    (b"", None): "empty_key_with_null_value",
}


def for_verb(declared, verb):
    """The capabilities for `produce` or `consume`: an object of that name overrides the rest."""
    capabilities = {name: value for name, value in declared.items() if name not in VERBS}
    capabilities.update(declared.get(verb, {}))
    unknown = set(capabilities) - set(KNOWN) - {"codecs", "max_value_bytes"}
    if unknown:
        raise ValueError(f"unknown capabilities {sorted(unknown)}")
    for finer, coarse in FINER.items():
        capabilities.setdefault(finer, capabilities.get(coarse, False))
    return capabilities


def for_group(declared):
    """What a client says of its members of groups; None where it has no such verb."""
    if "group" not in declared:
        return None
    claim = {**GROUP, **declared["group"]}
    unknown = set(claim) - set(GROUP) | set(claim["assignors"]) - set(ASSIGNORS)
    if unknown:
        raise ValueError(f"unknown in the group of the capabilities: {sorted(unknown)}")
    return claim


def beyond(record, capabilities):
    """{field: capability} for every field of the record that a client with these capabilities cannot do."""
    out = {}

    def need(field, name):
        if not capabilities.get(name, False):
            out.setdefault(field, name)

    for field in ("key", "value"):
        data = record[field]
        if data is None:
            need(field, f"null_{field}")
        elif not data:
            need(field, f"empty_{field}")
        elif _is_binary(data):
            need(field, "binary")
    if record["key"] is not None and b"\0" in record["key"]:
        need("key", "key_with_nul")
    pair = record["key"], record["value"]
    if pair in TOGETHER:
        need("value", TOGETHER[pair])
    if record["value"] is not None and len(record["value"]) > capabilities.get("max_value_bytes", 0):
        out.setdefault("value", "max_value_bytes")
    headers = record["headers"]
    if headers:
        need("headers", "headers")
    if len({name for name, _ in headers}) < len(headers):
        need("headers", "duplicate_headers")
    for _, value in headers:
        if value is None:
            need("headers", "null_header_values")
        elif not _is_plain(value):
            need("headers", "binary_header_values")
    need("timestamp", "timestamps")
    return out


def counted(pairs):
    """`null_key 3, headers 2` of an iterable of capability names; `nothing` when there is none."""
    counts = Counter(pairs)
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items())) or "nothing"


def _is_binary(data):
    try:
        return any(character < " " and character != "\n" for character in data.decode("utf-8"))
    except UnicodeDecodeError:
        return True


def _is_plain(data):
    return all(byte == 0x20 or chr(byte).isalnum() and byte < 0x80 for byte in data)
