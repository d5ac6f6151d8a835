"""kcat through its command line.

Produce: runs of records that share partition and headers go through one `kcat -P -l FILE` with two
delimiters that no record holds. Without the key delimiter kcat sends a null key, with -Z it sends
null for every key and value that is empty; it passes over a line without key and value.

Consume: `kcat -C -J`. Its JSON has every byte from 0x20 on as it is and the others escaped, so that
read as Latin-1 each character is one byte.
"""

import json
import subprocess
import tempfile
from itertools import groupby

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


def bytes_of(text):
    return None if text is None else text.encode("latin-1")


main(CAPABILITIES, produce, consume)
