import unittest

import tally


class TallyTest(unittest.TestCase):
    def test_plain_fields_are_split(self):
        self.assertEqual(tally.read_rows("a,b\n1,2"), [["a", "b"], ["1", "2"]])

    def test_a_column_is_added_up(self):
        self.assertEqual(tally.column_sum([["1"], ["x"], ["2"]], 0), 3.0)


if __name__ == "__main__":
    unittest.main()
