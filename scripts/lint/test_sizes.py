"""Files and functions over their limits are told."""

import unittest

from sizes import MAX_FILE, MAX_FUNCTION, faults, functions, median


def function(lines, name="long"):
    return f"fn {name}() {{\n" + "    x();\n" * (lines - 2) + "}\n"


class Sizes(unittest.TestCase):
    def test_a_function_is_counted_from_its_first_line_to_its_brace(self):
        source = 'trait T { fn none(&self) -> [u8; 2]; }\n' + function(5) + 'fn text() { "}"; /* } */ }\n'
        self.assertEqual(list(functions(source)), [("long", 2, 5), ("text", 7, 1)])

    def test_limits_at_their_edges(self):
        self.assertEqual(faults({"a.rs": function(MAX_FUNCTION)}), [])
        told = faults({"a.rs": "\n" + function(MAX_FUNCTION + 1)})
        self.assertEqual(told, [f"a.rs:2: fn long has {MAX_FUNCTION + 1} lines; at most {MAX_FUNCTION}"])
        self.assertEqual(faults({"a.rs": "\n" * MAX_FILE}), [])
        self.assertEqual(faults({"a.rs": "\n" * (MAX_FILE + 1)}), [f"a.rs: {MAX_FILE + 1} lines; at most {MAX_FILE}"])

    def test_generated_files_do_not_count(self):
        generated = "//! @generated\n" + "\n" * 1000
        self.assertEqual(faults({"a.rs": generated}), [])
        self.assertEqual(median({"a.rs": generated, "b.rs": "\n" * 10, "c.rs": "\n" * 20}), 15)


if __name__ == "__main__":
    unittest.main()
