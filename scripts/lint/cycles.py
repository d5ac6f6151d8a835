#!/usr/bin/env python3
"""No cycle among the files of a crate: a module uses its children or is used by them, not both.

    cycles.py [CRATE…]      all crates without names
"""

import sys
from collections import deque

import modules
import rust


def cycle(arrows):
    """The shortest cycle, as files in order; `None` if there is none."""
    best = None
    for start in sorted(arrows):
        before, queue = {}, deque([start])
        while queue and start not in before:
            at = queue.popleft()
            for to in sorted(arrows.get(at, ())):
                if to not in before:
                    before[to] = at
                    queue.append(to)
        if start in before:
            way = [start]
            while before[way[-1]] != start:
                way.append(before[way[-1]])
            if best is None or len(way) < len(best):
                best = way[:1] + way[:0:-1]
    return best


def cycles(arrows):
    """Cycles one after the other, each without the arrows of those before."""
    left = {file: set(to) for file, to in arrows.items()}
    while way := cycle(left):
        yield way
        left[way[-1]].discard(way[0])


def describe(crate, arrows, way):
    lines = [f"crates/{crate}: a cycle of {len(way)} files"]
    for file, to in zip(way, way[1:] + way[:1]):
        lines.append(f"    {file} uses {', '.join(sorted(arrows[file][to]))} of {to}")
    return "\n".join(lines)


def sources(crate):
    root = rust.ROOT / "crates" / crate / "src"
    return {str(path.relative_to(root)): path.read_text() for path in sorted(root.rglob("*.rs"))}


def main(wanted):
    crates = sorted(path.parent.name for path in (rust.ROOT / "crates").glob("*/Cargo.toml"))
    found = []
    for crate in wanted or crates:
        arrows = modules.Crate(sources(crate)).arrows()
        found += [describe(crate, arrows, way) for way in cycles(arrows)]
    print("\n".join(found) if found else f"cycles: none in {', '.join(wanted or crates)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
