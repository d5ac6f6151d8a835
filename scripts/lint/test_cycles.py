"""Files that use each other are told, with the names that tie them; what only declares or re-exports is no use."""

import unittest

import rust
from cycles import cycles, describe
from modules import Crate


def told(sources):
    arrows = Crate(sources).arrows()
    return [describe("x", arrows, way) for way in cycles(arrows)]


class Cycles(unittest.TestCase):
    def assert_cycle(self, sources, *parts):
        found = told(sources)
        self.assertEqual(len(found), 1, found)
        for part in parts:
            self.assertIn(part, found[0])

    def test_a_parent_that_uses_what_uses_it(self):
        self.assert_cycle(
            {"lib.rs": "mod a;\npub struct S;\nfn f() { a::g(); }", "a.rs": "use crate::S;\npub fn g() -> S { S }"},
            "crates/x: a cycle of 2 files",
            "a.rs uses S of lib.rs",
            "lib.rs uses g of a.rs",
        )

    def test_a_parent_that_declares_and_re_exports(self):
        sources = {"lib.rs": "mod a;\nmod b;\npub use a::S;", "a.rs": "pub struct S;", "b.rs": "use crate::S;\nuse super::a;"}
        self.assertEqual(told(sources), [])
        sources["lib.rs"] += "\nfn f() -> &'static S { b::g() }"
        self.assertEqual(told(sources), [])
        sources["b.rs"] += "\nuse super::f;"
        self.assert_cycle(sources, "lib.rs uses g of b.rs", "b.rs uses f of lib.rs")

    def test_a_name_leads_to_the_file_that_defines_it(self):
        # Through a re-export, a glob, an alias, an imported module and a path in the code.
        for use in ["use crate::a::T;", "use crate::a::*;\nfn f(_: T) {}", "use crate::a::{T as U};",
                    "use crate::a;\nfn f(_: a::T) {}", "fn f(_: super::a::T) {}", "fn f(_: crate::a::inner::T) {}"]:
            self.assert_cycle(
                {"lib.rs": "mod a;\nmod b;", "a/mod.rs": "mod inner;\npub use inner::T;",
                 "a/inner.rs": "use crate::b::S;\npub struct T;", "b.rs": f"{use}\npub struct S;"},
                "b.rs uses T of a/inner.rs", "a/inner.rs uses S of b.rs",
            )

    def test_three_in_a_ring(self):
        self.assert_cycle(
            {"lib.rs": "mod a;\nmod b;\nmod c;", "a.rs": "use crate::b::B;\npub struct A;",
             "b.rs": "use crate::c::C;\npub struct B;", "c.rs": "use crate::a::A;\npub struct C;"},
            "a cycle of 3 files",
        )

    def test_a_list_that_a_macro_turns_into_paths(self):
        self.assert_cycle(
            {"lib.rs": "mod a;\npub struct S;\nmacro_rules! all { ($m:ident) => { $m::f() }; }\nall! { a }",
             "a.rs": "use super::S;\npub fn f() {}"},
            "lib.rs uses * of a.rs",
        )

    def test_tests_comments_and_texts_use_nothing(self):
        sources = {
            "lib.rs": "mod a;\n#[cfg(test)]\nmod tests;\npub struct S;\n// a::g()\nconst T: &str = r#\"a::g()\"#;",
            "a.rs": "use crate::S;\npub fn g() {}\n#[cfg(test)]\nmod tests { use super::*; }",
            "tests.rs": "use crate::a::g;",
        }
        sources["lib.rs"] += "\n#[cfg(test)]\nfn f() { a::g(); }"
        self.assertEqual(told(sources), [])

    def test_blank_keeps_every_character_in_its_place(self):
        source = "a /* b /* c */ d */ 'e' b'\\'' \"f\\\"{\" r#\"g\"{\"# '\\u{7d}' <'h> // i\nj"
        code = rust.blank(source)
        self.assertEqual(len(code), len(source))
        self.assertEqual(code.split(), ["a", "<'h>", "j"])


if __name__ == "__main__":
    unittest.main()
