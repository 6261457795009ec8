"""Test what copying an index must keep."""

import os
import random
from pathlib import Path

import pytest

from engine.git.staging import _has_flags, copy_index


def test_a_copied_index_is_as_old_as_the_original(tmp_path: Path):
    (tmp_path / "index").write_bytes(b"DIRC")
    os.utime(tmp_path / "index", ns=(5_000_000_007, 5_000_000_007))

    copy_index(tmp_path / "index", tmp_path / "copy")

    assert (tmp_path / "copy").stat().st_mtime_ns == 5_000_000_007


LISTED = [b"H", b"h", b"S", b"s", b"M", b"?"]


@pytest.mark.parametrize("seed", range(20))
def test_a_listing_has_flags_if_any_entry_begins_with_another_letter(seed: int):
    dice = random.Random(seed)
    flags = dice.choices(LISTED, [200, 1, 1, 1, 1, 1], k=dice.randrange(60))
    names = (dice.choice([b"H", b"a\nH b", b"S s", b" 160000 H"]) for _ in flags)
    entries = [b"%b 100644 0 0\t%b\0" % one for one in zip(flags, names, strict=True)]
    assert _has_flags(b"".join(entries)) is any(flag != b"H" for flag in flags)
