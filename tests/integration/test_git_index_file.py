"""Test that an index of git's is read as git wrote it, and that nothing else is read."""

import os
from pathlib import Path

import pytest

from engine.beneath import Known
from engine.git.plumbing.index_file import known_files
from tests.support.repositories import RepositoryBuilder

LONG = "long/" + "n" * 200 + "/" + "m" * 200
FILES = {name: name for name in ("a", "src/a.py", "src/b.py", "src/deep/er/c", LONG, "z" * 250)}


def built(path: Path, *words: str) -> RepositoryBuilder:
    made = RepositoryBuilder(path, init=False)
    made.git("init", "-q", "-b", "main", "--template=", *words)
    made.commit({**FILES, **{f"many/{n}": f"{n}" for n in range(300)}}, "files")
    return made


def as_they_are(root: Path) -> Known:
    found: dict[bytes, dict[bytes, tuple[int, int]]] = {}
    for at, _, names in os.walk(os.fsencode(root)):
        folder = os.path.relpath(at, os.fsencode(root))
        if not folder.startswith(b".git"):
            seen = {name: os.lstat(os.path.join(at, name)) for name in names}  # noqa: PTH118 - bytes
            found[b"" if folder == b"." else folder] = {
                name: (one.st_ino & 0xFFFFFFFF, one.st_ctime_ns) for name, one in seen.items()
            }
    return found


@pytest.mark.parametrize("version", [2, 3, 4])
@pytest.mark.parametrize("object_format", ["sha1", "sha256"])
def test_every_version_says_what_git_wrote(tmp_path: Path, version: int, object_format: str):
    made = built(tmp_path / "r", f"--object-format={object_format}")
    (made.path / "link").symlink_to("a")
    made.git("add", "link")
    if version == 3:
        made.git("update-index", "--skip-worktree", "src/a.py")
    else:
        made.git("update-index", "--index-version", str(version))
    index = made.path / ".git/index"
    assert index.read_bytes()[7] == version

    assert known_files(index, object_format) == as_they_are(made.path)


@pytest.mark.parametrize(
    "content",
    [b"", b"DIRC", b"DIRC\0\0\0\2\xff\xff\xff\xff" + b"\0" * 40, b"DIRC\0\0\0\x05\0\0\0\0"],
)
def test_what_is_no_index_lists_nothing(tmp_path: Path, content: bytes):
    (tmp_path / "index").write_bytes(content)

    assert known_files(tmp_path / "index", "sha1") is None
    assert known_files(tmp_path / "missing", "sha1") is None


def test_an_index_with_more_than_files_is_refused(tmp_path: Path):
    made = built(tmp_path / "r")
    made.git("update-index", "--add", "--cacheinfo", f"160000,{made.head},sub")

    assert known_files(made.path / ".git/index", "sha1") is None


def test_two_files_that_an_index_cannot_tell_apart_are_not_known(tmp_path: Path):
    """An index keeps 32 bits of an inode; larger file systems have more."""
    made = built(tmp_path / "r")
    index = made.path / ".git/index"
    content = index.read_bytes()
    first = content[12:]
    size = (62 + len("a") + 8) // 8 * 8
    twice = content[:8] + (2).to_bytes(4, "big") + first[:size]
    twice += first[:size].replace(b"\0\1a\0", b"\0\1b\0")
    index.write_bytes(twice)

    known = known_files(index, "sha1")

    assert known == {b"": {b"a": (-1, -1), b"b": (-1, -1)}}
