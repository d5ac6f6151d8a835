"""Frames, headers, order: what stands around the messages."""

import socket
import struct
import time

import codec
from batch import batch
from peer import Closed, fetch, fetch_partition, list_offsets, produce, versions


def outcome(peer, label, raw, seconds=4, then_close=False):
    """Sends bytes and notes whether the server closes, answers or waits."""
    with peer.connect() as connection:
        try:
            connection.send(raw)
            if then_close:
                connection.socket.shutdown(socket.SHUT_WR)
            connection.socket.settimeout(seconds)
            got = connection.socket.recv(1)
            what = "answers" if got else "closes"
        except TimeoutError:
            what = "waits"
        except ConnectionError:
            what = "closes"
    peer.note(label, what)


def frame(raw):
    return struct.pack(">i", len(raw)) + raw


def case_odd_frames(peer):
    head = codec.request_header
    ask = codec.encode_request
    versions_0 = ask("ApiVersions", 0, 1, {})
    for label, raw in (
        ("length 0", struct.pack(">i", 0)),
        ("length -1", struct.pack(">i", -1)),
        ("length minimal", struct.pack(">i", -(2**31))),
        ("length maximal", struct.pack(">i", 2**31 - 1)),
        ("length over the limit", struct.pack(">i", 104857601)),
        ("length 1", frame(b"\0")),
        ("only a key", frame(struct.pack(">h", 18))),
        ("no correlation id", frame(struct.pack(">hh", 18, 0))),
        ("no client id", frame(struct.pack(">hhi", 18, 0, 1))),
        ("null client id", frame(struct.pack(">hhih", 18, 0, 1, -1))),
        ("client id -2", frame(struct.pack(">hhih", 18, 0, 1, -2))),
        ("client id too long", frame(struct.pack(">hhih", 18, 0, 1, 500) + b"x")),
        ("client id no text", frame(struct.pack(">hhih", 18, 0, 1, 2) + b"\xff\xfe")),
        ("client id long", frame(struct.pack(">hhih", 18, 0, 1, 32767) + b"x" * 32767)),
        ("TLS hello", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(508)),
        ("HTTP", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
        ("half a frame, then the end", versions_0[:9]),
        ("key 94", frame(head(94, 0, 1, True))),
        ("key -1", frame(head(-1, 0, 1, False))),
        ("key 32767", frame(head(32767, 0, 1, False))),
        ("key 4", frame(head(4, 0, 1, False) + bytes(20))),
        ("key 52", frame(head(52, 0, 1, True) + bytes(20))),
        ("ApiVersions -1", frame(head(18, -1, 1, False))),
        ("correlation id -1", ask("ApiVersions", 0, -1, {})),
        ("bytes more", frame(versions_0[4:] + b"more")),
        ("ApiVersions 3 without a body", frame(head(18, 3, 1, True))),
        ("ApiVersions 3 cut", frame(head(18, 3, 1, True) + b"\x05ab")),
        ("Metadata 0 cut", frame(head(3, 0, 1, False) + b"\0\0")),
        ("Metadata 0 array of 2**31", frame(head(3, 0, 1, False) + b"\x7f\xff\xff\xff")),
        ("Metadata 1 array of -2", frame(head(3, 1, 1, False) + b"\xff\xff\xff\xfe")),
        ("Metadata 9 varint without an end", frame(head(3, 9, 1, True) + b"\xff" * 12)),
        ("Metadata 9 array too long", frame(head(3, 9, 1, True) + b"\xff\xff\xff\xff\x0f")),
        ("Metadata 9 tags", frame(head(3, 9, 1, True) + b"\x01\0\0\0" + b"\x01\x63\x02ab")),
        ("Metadata 9 tag too long", frame(head(3, 9, 1, True) + b"\x01\0\0\0" + b"\x01\x63\x7fab")),
        ("Metadata 9 many tags", frame(head(3, 9, 1, True) + b"\x01\0\0\0" + b"\xff\xff\xff\xff\x07")),
        ("Metadata 9 tag twice", frame(head(3, 9, 1, True) + b"\x01\0\0\0" + b"\x02\x63\x00\x63\x00")),
        ("header tags", frame(head(3, 9, 1, True)[:-1] + b"\x01\x63\x01a" + b"\x01\0\0\0\0")),
        ("Metadata 1 name null", frame(head(3, 1, 1, False) + b"\0\0\0\1\xff\xff")),
        ("Metadata 1 name -2", frame(head(3, 1, 1, False) + b"\0\0\0\1\xff\xfe")),
        ("Metadata 1 name no text", frame(head(3, 1, 1, False) + b"\0\0\0\1\0\1\xff")),
        ("Metadata 4 bool 2", frame(head(3, 4, 1, False) + b"\0\0\0\0\2")),
        ("Produce 3 cut", frame(head(0, 3, 1, False) + b"\xff\xff\xff\xff")),
        ("Fetch 4 cut", frame(head(1, 4, 1, False) + b"\xff\xff\xff\xff")),
        ("two frames at once", versions_0 + versions_0),
        ("garbage", bytes(range(256)) * 4),
    ):
        outcome(peer, label, raw, 2, then_close=label.startswith("half"))


def case_versions_out_of_range(peer):
    for api in codec.APIS.values():
        low, high = {"Produce": (0, 13), "Fetch": (4, 18), "ListOffsets": (1, 11), "Metadata": (0, 13)}.get(
            api
        ) or (versions(api)[0], versions(api)[-1])
        for version in {low - 1, high + 1, 32767, -1}:
            raw = codec.request_header(codec.KEYS[api], version, 7, version > 8) + bytes(40)
            if api != "ApiVersions":
                outcome(peer, f"{api} {version}", frame(raw))
    for version in (0, 1, 2):
        outcome(peer, f"Produce {version}", frame(codec.request_header(0, version, 7, False) + bytes(40)))
    for version in (6, 127, 32767, -1, -32768):
        # A server that knows flexible versions takes every one that it does not know for one.
        for flexible in (True,) if version > 0 else (False, True):
            with peer.connect() as connection:
                connection.send(
                    frame(
                        codec.request_header(18, version, 77, flexible) + (b"\xff" * 9 if flexible else b"")
                    )
                )
                try:
                    # Error 35 and one entry; the highest version in it may differ.
                    peer.note(f"ApiVersions {version} {flexible}", connection.frame()[:-2])
                    peer.note(
                        f"ApiVersions {version} {flexible} then",
                        len(connection.call("ApiVersions", 0, {})["ApiKeys"]) > 10,
                    )
                except (Closed, OSError):
                    peer.note(f"ApiVersions {version} {flexible}", "closed")


def case_order(peer):
    name = peer.topic("order", 2)
    with peer.connect() as connection:
        for round_ in range(10):
            connection.request(
                "Fetch", 11, fetch(name, fetch_partition(10**6 if round_ % 2 else 0), wait=300, least=10**6)
            )
            connection.request("Metadata", 9, {"Topics": [{"Name": name}]})
            connection.request("Produce", 9, produce(name, batch(3, base_time=peer.start)))
            connection.request("Produce", 9, produce(name, batch(base_time=peer.start), acks=0))
            connection.request("ListOffsets", 5, list_offsets(name, -1))
            connection.request("InitProducerId", 3, {"TransactionalId": None, "TransactionTimeoutMs": 1000})
            connection.request("ApiVersions", 3, {"ClientSoftwareName": "a", "ClientSoftwareVersion": "1"})
            connection.request("Fetch", 12, fetch(name))
        base = 0
        for round_ in range(10):
            for api, version, place in (
                ("Fetch", 11, 1),
                ("Metadata", 9, 2),
                ("Produce", 9, 3),
                ("ListOffsets", 5, 5),
                ("InitProducerId", 3, 6),
                ("ApiVersions", 3, 7),
                ("Fetch", 12, 8),
            ):
                correlation_id, values = connection.answer(api, version)
                peer.note(
                    f"round {round_} {api} {version} in its place",
                    correlation_id - base == place or (correlation_id, base),
                )
                if api == "Produce":
                    peer.note(f"round {round_} {api}", values)
            base += 8


def case_pieces(peer):
    """A request that comes byte by byte, and one whose pieces come in two."""
    raw = codec.encode_request("Metadata", 9, 5, {"Topics": []})
    with peer.connect() as connection:
        for byte in raw:
            connection.send(bytes([byte]))
            time.sleep(0.01)
        peer.note("byte by byte", connection.answer("Metadata", 9)[0])
        connection.send(raw + raw[:7])
        peer.note("one and a half", connection.answer("Metadata", 9)[0])
        connection.send(raw[7:])
        peer.note("the other half", connection.answer("Metadata", 9)[0])


def case_closed_by_the_client(peer):
    """A client that shuts its side down after a request: whether the answer still comes."""
    name = peer.topic("closed")
    with peer.connect() as connection:
        connection.request("Produce", 9, produce(name, batch(base_time=peer.start)))
        connection.socket.shutdown(socket.SHUT_WR)
        try:
            peer.note("answer after a half close", connection.answer("Produce", 9)[0])
        except Closed:
            peer.note("answer after a half close", "closed")
    for _ in range(100):
        if peer.call("ListOffsets", 5, list_offsets(name, -1))["Topics"][0]["Partitions"][0]["Offset"]:
            break
        time.sleep(0.05)
    peer.ask("stored", "ListOffsets", 5, list_offsets(name, -1))
