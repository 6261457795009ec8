"""A path in a log or a call names exactly one file of a change, or none."""

import pytest

from tui.words.named import named_file

PATHS = ["a.py", "lib/abz.py", "src/a.py", "z.py", "odd:9"]


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("a.py", "a.py"),
        ("src/a.py", "src/a.py"),
        ("/abroad/work/src/a.py", "src/a.py"),
        ("/abroad/work/a.py", "a.py"),
        ("z.py", "z.py"),
        ("abz.py", "lib/abz.py"),
        ("bz.py", None),
        ("odd:9", "odd:9"),
        ("", None),
    ],
)
def test_a_file_is_named_whole_by_a_longer_path_or_by_its_last_parts(said: str, found: str | None):
    number = named_file(PATHS, said)
    assert (None if number is None else PATHS[number]) == found
