#!/usr/bin/env python3
"""Writes the table of request fields of crates/wire from the message definitions in Kafka's kafka-clients jar.

    generate_shapes.py JAR            writes the table
    generate_shapes.py JAR --check    fails if the table is not what would be written; ends with "N passed, N failed"

In the table are the requests that the crate kafka-protocol decodes, in the versions that both it and the jar know.
How a definition is read: Kafka's clients/src/main/resources/common/message/README.md.
"""

import argparse
import difflib
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "crates/wire/src/shape/generated.rs"

NEWEST = 32767
# The function of schema.rs that makes a field, and what the message crate makes of an array's element.
SIMPLE = {
    "bool": ("boolean", "bool"),
    "int8": ("int8", "i8"),
    "int16": ("int16", "i16"),
    "uint16": ("uint16", "u16"),
    "int32": ("int32", "i32"),
    "int64": ("int64", "i64"),
    "float64": ("float64", "f64"),
    "uuid": ("uuid", "Uuid"),
    "string": ("string", "StrBytes"),
    "bytes": ("bytes", "Bytes"),
    "records": ("bytes", "Bytes"),
}


class Unforeseen(Exception):
    """A definition that schema.rs has no words for."""


def without_comments(text):
    return re.sub(r'("(?:\\.|[^"\\])*")|//[^\n]*', lambda match: match[1] or "", text)


def read_jar(path):
    """Kafka's version, and the definitions of requests by their names."""
    with zipfile.ZipFile(path) as jar:
        properties = jar.read("kafka/kafka-version.properties").decode()
        files = [name for name in jar.namelist() if re.fullmatch(r"common/message/\w+Request\.json", name)]
        definitions = [json.loads(without_comments(jar.read(name).decode())) for name in files]
    version = re.search(r"^version=(\S+)", properties, re.MULTILINE)[1]
    return version, {definition["name"]: definition for definition in definitions}


def crate_root():
    metadata = json.loads(
        subprocess.check_output(["cargo", "metadata", "--locked", "--format-version", "1"], cwd=ROOT)
    )
    found = [package["manifest_path"] for package in metadata["packages"] if package["name"] == "kafka-protocol"]
    return Path(found[0]).parent


class Crate:
    """The message crate, as far as its source tells what it knows."""

    def __init__(self, root):
        source = (root / "src/messages.rs").read_text()
        # Of each request by name.
        self.modules = {name: module for module, name in re.findall(r"pub use (\w+_request)::(\w+Request);", source)}
        self.versions = {name: self._versions(root, module) for name, module in self.modules.items()}
        # Types for texts and numbers with a meaning, like BrokerId.
        self.entities = set(re.findall(r"^pub struct (\w+)\(pub \w+\);", source, re.MULTILINE))

    @staticmethod
    def _versions(root, module):
        source = (root / f"src/messages/{module}.rs").read_text()
        match = re.search(r"const VERSIONS: VersionRange = VersionRange \{ min: (\d+), max: (\d+) \};", source)
        return int(match[1]), int(match[2])


def parse_range(text):
    """First and last of "3", "0-12", "3+" or "none", which is empty."""
    if text == "none":
        return 1, 0
    match = re.fullmatch(r"(\d+)(?:-(\d+)|(\+))?", text)
    if not match:
        raise Unforeseen(f"versions {text!r}")
    first = int(match[1])
    return first, NEWEST if match[3] else int(match[2] or first)


def common(a, b):
    return max(a[0], b[0]), min(a[1], b[1])


def snake(name):
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


class Request:
    """Writes one request of the table."""

    def __init__(self, definition, module, versions, entities):
        self.definition = definition
        self.module = module
        self.versions = versions
        self.entities = entities
        self.structures = {each["name"]: each["fields"] for each in definition.get("commonStructs", [])}

    def rust(self):
        first, last = self.versions
        text = f"request::<{self.definition['name']}>({first}, {last})"
        flexible = common(parse_range(self.definition["flexibleVersions"]), self.versions)
        if flexible[0] <= flexible[1]:
            text += f".flexible_from({flexible[0]})"
        return text + f".fields({self.fields(self.definition['fields'], self.versions)})"

    def fields(self, definitions, within):
        """Those that some version has, of a request or structure that is there in the versions `within`."""
        texts = []
        for field in definitions:
            versions = common(parse_range(field["versions"]), within)
            if versions[0] <= versions[1]:
                texts.append(self.field(field, versions, within))
        return f"&[{', '.join(texts)}]"

    def field(self, field, versions, within):
        element = field["type"].removeprefix("[]")
        is_array = element != field["type"]
        text = self.value(field, element, is_array, versions) + self.presence(field, versions, within)
        if element not in SIMPLE:
            text += f".of({self.fields(field.get('fields') or self.structures[element], versions)})"
        return text

    def value(self, field, element, is_array, versions):
        name = f'"{snake(field["name"])}"'
        if element in SIMPLE:
            function, memory = SIMPLE[element]
            entity = field.get("entityType", "")
            entity = entity[:1].upper() + entity[1:]
            memory = entity if entity in self.entities else memory
            return f"array::<{memory}>({function}({name}))" if is_array else f"{function}({name})"
        if is_array:
            return f"structures::<{self.module}::{element}>({name})"
        null = common(parse_range(field.get("nullableVersions", "none")), versions)
        if null[0] > null[1]:
            return f"structure({name})"
        if null != versions:
            raise Unforeseen(f"{field['name']} may be null in some of its versions only")
        return f"nullable_structure({name})"

    def presence(self, field, versions, within):
        """The versions of a field, where they are not all, and its tag."""
        if "flexibleVersions" in field:
            raise Unforeseen(f"{field['name']} has flexible versions of its own")
        text = f".from({versions[0]})" if versions[0] > within[0] else ""
        if versions[1] < within[1]:
            text += f".until({versions[1]})"
        if "tag" in field:
            if common(parse_range(field["taggedVersions"]), within) != versions:
                raise Unforeseen(f"{field['name']} is tagged in some of its versions only")
            text += f".tagged({field['tag']})"
        return text


def requests(definitions, crate):
    """Each request of the table, by key; the requests of the crate that the jar lacks are an error."""
    for name, module in crate.modules.items():
        definition = definitions.get(name)
        if definition is None:
            raise Unforeseen(f"{name} is not in the jar")
        versions = common(parse_range(definition["validVersions"]), crate.versions[name])
        if versions[0] <= versions[1]:
            yield definition["apiKey"], Request(definition, module, versions, crate.entities).rust()


def table(jar):
    kafka, definitions = read_jar(jar)
    lines = [text for _, text in sorted(requests(definitions, Crate(crate_root())))]
    source = "\n".join([
        "//! The fields of every request that the message crate decodes, by key.",
        "//!",
        f"//! @generated by `make generate` (scripts/generate_shapes.py) from kafka-clients {kafka}; not to be edited.",
        "",
        "use kafka_protocol::messages::*;",
        "use kafka_protocol::protocol::StrBytes;",
        "use uuid::Uuid;",
        "",
        "use super::schema::*;",
        "",
        "pub(super) const REQUESTS: &[RequestShape] = &[",
        *(f"{line}," for line in lines),
        "];",
        "",
    ])
    rustfmt = ["rustfmt", "--edition", "2024", "--config-path", str(ROOT)]
    return subprocess.run(rustfmt, input=source, stdout=subprocess.PIPE, text=True, check=True).stdout


def check(wanted):
    """Prints how the table differs from what it should be; returns whether it does not."""
    present = TABLE.read_text()
    names = (f"{TABLE.relative_to(ROOT)}", "make generate")
    sys.stdout.writelines(difflib.unified_diff(present.splitlines(True), wanted.splitlines(True), *names))
    return present == wanted


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("jar", type=Path)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    wanted = table(arguments.jar)
    if not arguments.check:
        TABLE.write_text(wanted)
        return 0
    current = check(wanted)
    print(f"{current:d} passed, {not current:d} failed")
    return not current


if __name__ == "__main__":
    sys.exit(main())
