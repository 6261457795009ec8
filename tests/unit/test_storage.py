"""A git that could not write is recognized by its own line, or by its silence on a full disk."""

import errno
import os
from pathlib import Path

import pytest

from engine import storage
from engine.storage import Disk, is_out_of_room

SPACE = os.strerror(errno.ENOSPC)


@pytest.mark.parametrize(
    ("said", "is_so"),
    [
        (f"fatal: write error: {SPACE}\nfatal: index-pack failed", True),
        (f"error: unable to write file .git/objects/aa: {SPACE}", True),
        (f"fatal: unable to create x: {os.strerror(errno.EDQUOT)}", True),
        ("fatal: bad object", False),
        # Names that an agent made up prove nothing.
        (f'error: open("x: {SPACE}"): Permission denied', False),
        (f'error: open("x: {SPACE}\nfatal: y"): Permission denied', False),
        (f"warning: {SPACE}", False),
    ],
)
def test_only_a_line_of_gits_own_says_that_there_is_no_room(said: str, *, is_so: bool):
    assert is_out_of_room(said, ()) is is_so


def test_silence_says_so_where_hardly_anything_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    found = Disk.of(tmp_path)
    assert found is not None
    monkeypatch.setattr(storage, "LITTLE_FOR_GIT", found.free * 2)
    assert is_out_of_room(" \n", [tmp_path])
    assert not is_out_of_room("fatal: bad object", [tmp_path])
    monkeypatch.setattr(storage, "LITTLE_FOR_GIT", -1)
    assert not is_out_of_room("", [tmp_path])
    assert not is_out_of_room("", [Path("/nowhere/at/all")])
