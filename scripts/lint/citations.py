#!/usr/bin/env python3
"""What code and pages cite is there: headings of docs/design, Markdown files, threads with their repository's name.

Cited are `storage.md D8`, `storage.md section 1`, `storage.md Invariants 1 and 2`, `api.md 3.3`, `faults.md B012` or
`B012` alone, and `D8` alone in a file that cites storage.md. KIPs and Kafka's files and classes are taken as they are.
What docs/design in its turn names of the code, tests above all, is there too.
"""

import re
import sys
from pathlib import Path

import rust

DESIGN = Path("docs/design")
CITING = (".rs", ".sql", ".py", ".sh", ".toml", ".md")

_HEADING = re.compile(r"^#+ (Invariant \d+|[DB]\d+|\d+(?:\.\d+)*)\b", re.MULTILINE)
# A comment may go on in the next line.
_GAP = r"(?:[ ,]|\n\s*(?://[/!]?|--|#)?)*"
_PAGE = re.compile(
    rf"\b(storage|api|faults|layout|house)\.md\b"
    rf"(?:{_GAP}(?:(?P<invariants>Invariants?{_GAP}\d+(?:(?:,| and|{_GAP})*{_GAP}\d+)*)"
    rf"|section{_GAP}(?P<section>\d+)|(?P<rule>\d+\.\d+)))?"
)
_FAULT = re.compile(r"\bB\d{3}\b")
_DECISION = re.compile(r"\bD\d{1,2}\b")
_THREAD = re.compile(rf"(?P<repository>[\w.-]+/[\w.-]+{_GAP})?\b(?:[Ii]ssue|PR){_GAP}#?\d+")
_FILE = re.compile(r"(?<![\w/.*{}-])[\w./-]*\w\.md\b")
_LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")
_QUOTED = re.compile(r"`([^`\n]+)`")
_NAME = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+){2,}")
_PATH = re.compile(r"(?:crates|migrations|compat-tests|bench|scripts|docs)/[\w./-]*")


def headings(pages):
    """The numbered headings of each page; `pages`: name without `.md` to text."""
    return {name: set(_HEADING.findall(text)) for name, text in pages.items()}


def cited(text):
    """Each citation of docs/design: where it stands, the page, and the heading or nothing."""
    for match in _PAGE.finditer(text):
        if match["invariants"]:
            for number in re.findall(r"\d+", match["invariants"]):
                yield match.start(), match[1], f"Invariant {number}"
        else:
            yield match.start(), match[1], match["section"] or match["rule"]
    for match in _FAULT.finditer(text):
        yield match.start(), "faults", match.group()
    if "storage.md" in text:
        for match in _DECISION.finditer(text):
            yield match.start(), "storage", match.group()


def faults(path, text, known, files):
    """A line for each citation of `text` that leads nowhere; `known`: headings; `files`: all paths of the repository."""
    found = {}
    for at, page, heading in cited(text):
        if page not in known:
            found[at, page] = f"{page}.md is no page of {DESIGN}"
        elif heading and heading not in known[page]:
            found[at, heading] = f"{DESIGN}/{page}.md has no heading {heading}"
    for match in _THREAD.finditer(text):
        if not match["repository"]:
            found[match.start(), match.group()] = f"{match.group()} of which repository? (owner/name issue 1)"
    names = {Path(name).name for name in files}
    for match in _FILE.finditer(text):
        if Path(match.group()).name not in names:
            found[match.start(), match.group()] = f"there is no {match.group()}"
    if path.endswith(".md"):
        for match in _LINK.finditer(text):
            if not (rust.ROOT / Path(path).parent / match[1]).exists():
                found[match.start(), match[1]] = f"the link leads nowhere: {match[1]}"
    return [f"{path}:{rust.line(text, at)}: {fault}" for (at, _), fault in sorted(found.items())]


def missing_names(path, text, code, exists):
    """A line for each name or path in back ticks that is not in the code; `exists`: whether a path is there."""
    found = []
    for match in _QUOTED.finditer(text):
        quoted = match[1]
        is_missing = (_NAME.fullmatch(quoted) and quoted not in code) or (_PATH.fullmatch(quoted) and not exists(quoted))
        if is_missing:
            found.append(f"{path}:{rust.line(text, match.start())}: nothing is called {quoted}")
    return found


def main():
    pages = {path.stem: path.read_text() for path in (rust.ROOT / DESIGN).glob("*.md")}
    known = headings(pages)
    files = [str(path) for path in rust.tracked("")]
    words, found = set(), []
    for path in rust.tracked(*CITING):
        text = (rust.ROOT / path).read_text()
        if path.parent != DESIGN:
            words.update(re.findall(r"\w+", text))
            # The tests of the checks cite what is not there.
            if not re.match(r"scripts/lint/test_", str(path)):
                found += faults(str(path), text, known, files)
    for name, text in sorted(pages.items()):
        path = f"{DESIGN}/{name}.md"
        found += faults(path, text, known, files)
        found += missing_names(path, text, words, lambda quoted: (rust.ROOT / quoted).exists())
    print("\n".join(found) if found else f"citations: {sum(map(len, known.values()))} headings, nothing cited that is not there")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
