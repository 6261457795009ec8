"""A hunk is named by the place that it changes, not by the one before it."""

import pytest

from engine.messages.diffs import DiffLine, Sign
from engine.review.diffs import heading_of


def _lines(text: str) -> list[DiffLine]:
    return [DiffLine(Sign(line[0]), line[1:]) for line in text.strip("\n").split("\n")]


@pytest.mark.parametrize(
    ("text", "heading"),
    [
        (" \n def first():\n-    a = 1\n+    a = 2\n def second():", "def first():"),
        (" x\n-def old():\n+def new():\n     pass", "def new():"),
        (" return\n+\n+@cached\n+def new():\n+    pass", "def new():"),
        (" return\n-\n-def old():\n-    pass", "def old():"),
        (" def above():\n     pass\n+x = 1\n+def below():", "def above():"),
        (" impl Reader {\n+    pub fn size(&self) -> u64 {", "pub fn size(&self) -> u64 {"),
        (" text\n+## Usage\n+words", "## Usage"),
        (" class A:\n     def inner(self):\n+        b()", "def inner(self):"),
        (" a = 1\n+b = 2", ""),
        ("+definitely = 1", ""),
    ],
)
def test_a_hunk_is_named_by_the_heading_nearest_to_its_change(text: str, heading: str):
    assert heading_of(_lines(text)) == heading
