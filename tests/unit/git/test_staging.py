"""Test what copying an index must keep."""

import os
from pathlib import Path

from engine.git.staging import copy_index


def test_a_copied_index_is_as_old_as_the_original(tmp_path: Path):
    (tmp_path / "index").write_bytes(b"DIRC")
    os.utime(tmp_path / "index", ns=(5_000_000_007, 5_000_000_007))

    copy_index(tmp_path / "index", tmp_path / "copy")

    assert (tmp_path / "copy").stat().st_mtime_ns == 5_000_000_007
