"""The modules of one crate as files, and which file uses what of which: read from `use` and from paths in the code.

A name leads to the file that defines it, through whatever re-exports it. A `mod` declaration and a `pub use` are no use.
What a file does with values (their methods, their fields) is not seen: a name must stand in it.
"""

import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import rust

_ITEM = re.compile(r"(?<!')\b(?:fn|struct|enum|union|trait|type|const|static|macro_rules!)\s+(?:mut\s+)?(\w+)")
_INLINE = re.compile(r"\bmod\s+(\w+)\s*\{")
_TEST_MOD = re.compile(r"#\[cfg\(test\)\]\s*(?:#\[[^\]]*\]\s*)*(?:pub\S*\s+)?mod\s+(\w+)\s*;")
_USE = re.compile(r"\b(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);")
_PATH = re.compile(r"(?<![\w:.])(?:\$?[A-Za-z_]\w*)(?:\s*::\s*[A-Za-z_]\w*)+")
_CALLED = re.compile(r"\b(\w+)!\s*[({\[]")


@dataclass
class Module:
    """A file, or a module inside of one."""

    path: tuple
    file: str
    code: str = ""
    items: set = field(default_factory=set)
    # Name to the path that it stands for; of a glob only the path.
    names: dict = field(default_factory=dict)
    globs: list = field(default_factory=list)
    exported: set = field(default_factory=set)


class Crate:
    def __init__(self, sources):
        """`sources`: path from the crate's `src` to text."""
        self.modules = {}
        hidden = {name for name, text in sources.items() for name in _tests_of(name, text)}
        for name, text in sorted(sources.items()):
            path = module_path(name)
            if not any(path[: len(test)] == test for test in hidden):
                self._add(Module(path, name), rust.without_tests(rust.blank(text)))

    def _add(self, module, code):
        """Modules inside of the file are modules of their own, of the same file."""
        self.modules[module.path] = module
        while match := _INLINE.search(code):
            end = rust.item_end(code, match.end() - 1)
            self._add(Module((*module.path, match[1]), module.file), code[match.end() : end - 1])
            code = code[: match.start()] + re.sub(r"[^\n]", " ", code[match.start() : end]) + code[end:]
        module.code = _USE.sub(lambda use: re.sub(r"[^\n]", " ", use.group()), code)
        module.items = set(_ITEM.findall(code))
        for visibility, tree in _USE.findall(code):
            for leaf, name in _leaves(tree):
                if name == "*":
                    module.globs.append(leaf)
                else:
                    module.names[name] = leaf
                    if visibility:
                        module.exported.add(name)

    def arrows(self):
        """File to file to the names that tie them."""
        found = defaultdict(lambda: defaultdict(set))
        for module in self.modules.values():
            for path in self._uses(module):
                target = self._resolve(module, path)
                if target and target[0].file != module.file:
                    found[module.file][target[0].file].add(target[1])
        return found

    def _uses(self, module):
        for name, path in module.names.items():
            # What is re-exported counts when the file uses it itself.
            if name not in module.exported or re.search(rf"(?<![\w.:]){name}\b", module.code):
                yield path
        for glob in module.globs:
            yield from self._from_glob(module, glob)
        for match in _PATH.findall(module.code):
            yield tuple(re.split(r"\s*::\s*", match.lstrip("$")))
        yield from self._macro_arguments(module)

    def _from_glob(self, module, glob):
        """The names of a `use x::*` that the file speaks of."""
        found = self._resolve(module, glob)
        for name in (found[0].items | found[0].exported) if found else ():
            if re.search(rf"(?<![\w.:]){name}\b", module.code):
                yield (*glob[:-1], name)

    def _macro_arguments(self, module):
        """A list that a macro of this file turns into paths: a child that is named there is used."""
        own = set(re.findall(r"macro_rules!\s+(\w+)", module.code))
        for match in _CALLED.finditer(module.code):
            if match[1] in own:
                body = module.code[match.end() : rust.item_end(module.code, match.end() - 1)]
                for word in set(re.findall(r"\b[a-z_]\w*\b", body)):
                    if (*module.path, word) in self.modules:
                        yield (word, "*")

    def _resolve(self, module, path, seen=()):
        """The module that defines what the path names, and its name there. `None`: it is outside of the crate, or a
        module by itself, and what is used of that stands elsewhere."""
        if (module.path, path) in seen:
            return None
        seen = (*seen, (module.path, path))
        head, rest = path[0], path[1:]
        if head == "crate":
            return self._walk(self.modules[()], rest, seen)
        if head == "self":
            return self._walk(module, rest, seen)
        if head == "super":
            return self._walk(self.modules[module.path[:-1]], rest, seen) if module.path else None
        return self._step(module, head, rest, seen)

    def _walk(self, module, rest, seen):
        if not rest:
            return None
        if rest[0] == "super":
            return self._walk(self.modules[module.path[:-1]], rest[1:], seen)
        found = self._step(module, rest[0], rest[1:], seen)
        # What is made by a macro, or asked for with `*`.
        is_here = not found and rest[0] not in module.names and (*module.path, rest[0]) not in self.modules
        return (module, rest[0]) if is_here else found

    def _step(self, module, name, rest, seen):
        if child := self.modules.get((*module.path, name)):
            return self._walk(child, rest, seen)
        if name in module.items:
            return module, name
        if name in module.names:
            return self._resolve(module, (*module.names[name], *rest), seen)
        for glob in module.globs:
            found = self._resolve(module, (*glob[:-1], name), seen)
            if found and name in found[0].items:
                return found
        return None


def module_path(name):
    """`a/b.rs` and `a/b/mod.rs` are module a::b; `lib.rs` and `main.rs` are the root."""
    parts = Path(name).with_suffix("").parts
    if parts[-1] in ("mod", "lib", "main"):
        parts = parts[:-1]
    return tuple(parts)


def _tests_of(name, text):
    """Files that only tests have: `#[cfg(test)] mod x;`."""
    return [(*module_path(name), child) for child in _TEST_MOD.findall(rust.blank(text))]


def _leaves(tree):
    """The paths of a use tree, each with the name that it is known by."""
    tree = tree.strip()
    if "{" not in tree:
        path, _, alias = re.sub(r"\s*::\s*", "::", tree).partition(" as ")
        parts = tuple(part for part in path.strip().split("::") if part)
        if parts and parts[-1] == "self":
            parts = parts[:-1]
        if parts:
            yield parts, alias.strip() or parts[-1]
        return
    prefix, _, inner = tree.partition("{")
    for part in _split(inner.rpartition("}")[0]):
        yield from _leaves(prefix + part.strip())


def _split(text):
    depth, start = 0, 0
    for index, char in enumerate(text):
        depth += (char == "{") - (char == "}")
        if char == "," and depth == 0:
            yield text[start:index]
            start = index + 1
    if text[start:].strip():
        yield text[start:]
