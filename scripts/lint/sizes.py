#!/usr/bin/env python3
"""Files and functions that are read in one sitting: no Rust file and no function over its limit, and a median below its own.

A generated file says so in its first lines (`@generated`) and is not counted.
"""

import re
import statistics
import sys

import rust

MAX_FILE = 450
MAX_FUNCTION = 60
MAX_MEDIAN = 110

_FUNCTION = re.compile(r"\bfn\s+(\w+)")


def is_generated(source):
    return "@generated" in "".join(source.splitlines(keepends=True)[:5])


def functions(source):
    """Name, first line and number of lines of each function with a body."""
    code = rust.blank(source)
    for match in _FUNCTION.finditer(code):
        end = rust.item_end(code, match.end())
        if code[end - 1] == "}":
            first = rust.line(code, match.start())
            yield match[1], first, rust.line(code, end - 1) - first + 1


def faults(sources):
    """A line for each file or function that is too long, by path; `sources`: path to text."""
    found = []
    for path, source in sources.items():
        if is_generated(source):
            continue
        length = source.count("\n")
        if length > MAX_FILE:
            found.append(f"{path}: {length} lines; at most {MAX_FILE}")
        for name, first, lines in functions(source):
            if lines > MAX_FUNCTION:
                found.append(f"{path}:{first}: fn {name} has {lines} lines; at most {MAX_FUNCTION}")
    return found


def median(sources):
    """Lines of the file in the middle."""
    return statistics.median(source.count("\n") for source in sources.values() if not is_generated(source))


def main():
    sources = {str(path): (rust.ROOT / path).read_text() for path in rust.tracked(".rs")}
    found = faults(sources)
    middle = median({path: source for path, source in sources.items() if re.match(r"crates/[^/]+/src/", path)})
    if middle > MAX_MEDIAN:
        found.append(f"crates/*/src: the median file has {middle:g} lines; at most {MAX_MEDIAN}")
    print("\n".join(found) if found else f"sizes: {len(sources)} files, median {middle:g} lines")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
