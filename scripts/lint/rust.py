"""Rust source as far as the checks need it: comments and literals blanked out, tests cut away, braces matched."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Comments nest and raw strings count their hashes, so both are finished by hand in `blank`.
_START = re.compile(r"""//[^\n]*|/\*|\bb?c?r(?P<hashes>#*)"|b?c?"|b?'(?:\\.[^']*|[^\\'])'""", re.DOTALL)
_COMMENT = re.compile(r"/\*|\*/")
_STRING_END = re.compile(r'(?:[^"\\]|\\.)*"', re.DOTALL)
_TEST_ITEM = re.compile(r"#\[cfg\(test\)\]")


def tracked(*suffixes):
    """The files of the repository with these suffixes, as paths from its root."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    paths = (Path(name) for name in listed.split("\0") if name.endswith(suffixes))
    return sorted(path for path in paths if (ROOT / path).is_file())


def blank(source):
    """The source with comments and the contents of literals as blanks; every other character keeps its place."""
    out, at = [], 0
    while match := _START.search(source, at):
        end = _end(source, match)
        out += source[at : match.start()], re.sub(r"[^\n]", " ", source[match.start() : end])
        at = end
    return "".join(out) + source[at:]


def _end(source, match):
    if match.group() == "/*":
        depth, at = 1, match.end()
        while depth and (mark := _COMMENT.search(source, at)):
            depth, at = depth + (1 if mark.group() == "/*" else -1), mark.end()
        return len(source) if depth else at
    if match["hashes"] is not None:
        close = '"' + match["hashes"]
        found = source.find(close, match.end())
        return len(source) if found < 0 else found + len(close)
    if match.group().endswith('"') and not match.group().startswith(("'", "b'", "/")):
        string = _STRING_END.match(source, match.end())
        return string.end() if string else len(source)
    return match.end()


def without_tests(code):
    """Blanked code with its items under `#[cfg(test)]` blank as well."""
    at = 0
    while match := _TEST_ITEM.search(code, at):
        end = item_end(code, match.end())
        code = code[: match.start()] + re.sub(r"[^\n]", " ", code[match.start() : end]) + code[end:]
        at = end
    return code


def item_end(code, at):
    """Where the item that begins at `at` ends: after its `;` or its braces, whichever comes first."""
    depth = 0
    for index in range(at, len(code)):
        char = code[index]
        if char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
            if depth == 0 and char == "}":
                return index + 1
        elif char == ";" and depth == 0:
            return index + 1
    return len(code)


def line(text, at):
    """The number of the line, from 1."""
    return text.count("\n", 0, at) + 1
