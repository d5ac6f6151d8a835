"""Citations that lead nowhere are told, and those that lead somewhere are not."""

import unittest

from citations import faults, headings, missing_names

PAGES = {
    "storage": "# Storage\n## 1. Tables\n### D8 Groups\n### D12 Gateways\n### Invariant 1 Kept\n### Invariant 2 Whole\n",
    "api": "### 3.3 Produce\n",
    "faults": "## B012 A member\n",
}
FILES = ["README.md", "docs/design/storage.md", "docs/design/api.md", "docs/design/faults.md"]


def told(text, path="crates/x/src/lib.rs"):
    return [fault.removeprefix(f"{path}:") for fault in faults(path, text, headings(PAGES), FILES)]


class Citations(unittest.TestCase):
    def test_what_is_there_may_be_cited_in_every_form(self):
        for text in [
            "//! Slots (storage.md D8, D12).",
            "//! Slots (storage.md\n//! D12), and section 1 (storage.md section 1).",
            "-- storage.md, D8: what survives (D12).",
            "//! storage.md Invariants 1 and 2; api.md 3.3 and faults.md B012, B012 too.",
            "// KIP-320, `ProduceRequest.java`, apache/kafka PR 18726, apache/kafka\n// issue 7, README.md, D99 without the page",
        ]:
            self.assertEqual(told(text), [], text)

    def test_headings_that_are_not_there(self):
        self.assertEqual(told("// storage.md D9"), ["1: docs/design/storage.md has no heading D9"])
        self.assertEqual(told("x\n// storage.md D8, D9"), ["2: docs/design/storage.md has no heading D9"])
        self.assertEqual(told("// api.md 3.4"), ["1: docs/design/api.md has no heading 3.4"])
        self.assertEqual(told("// storage.md section 7"), ["1: docs/design/storage.md has no heading 7"])
        self.assertEqual(told("// storage.md Invariants 1 and\n// 3"), ["1: docs/design/storage.md has no heading Invariant 3"])
        self.assertEqual(told("\n// (B013)"), ["2: docs/design/faults.md has no heading B013"])

    def test_pages_and_files_that_are_not_there(self):
        self.assertIn("1: layout.md is no page of docs/design", told("// layout.md"))
        self.assertEqual(told("// its issue 12"), ["1: issue 12 of which repository? (owner/name issue 1)"])
        self.assertEqual(told("// see PLAN.md"), ["1: there is no PLAN.md"])
        self.assertEqual(told("[a](nowhere.txt)", "README.md"), ["1: the link leads nowhere: nowhere.txt"])

    def test_names_that_a_page_quotes(self):
        text = "`a_test_of_it`, `crates/x`, `D8`\n`a_test_of_nothing` and `crates/y`"
        found = missing_names("p.md", text, {"a_test_of_it"}, lambda path: path == "crates/x")
        self.assertEqual(found, ["p.md:2: nothing is called a_test_of_nothing", "p.md:2: nothing is called crates/y"])


if __name__ == "__main__":
    unittest.main()
