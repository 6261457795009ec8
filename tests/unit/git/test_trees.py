"""Test which paths must never be published."""

import pytest

from engine.git.unsafe import is_unsafe


@pytest.mark.parametrize(
    "path",
    [
        b"..", b"a/../b", b"./a", b"a//b", b"/a", b".git", b".git/config", b"a/.GIT/x", b".giT",
        b"git~1", b"GIT~1/x", b".git ", b".git.", b".git. . /x", b".git::$INDEX_ALLOCATION/x",
        b".git:x", b"a\\.git\\x", b"a\\..\\b", ".g\u200cit".encode(), ".git\ufeff".encode(),
    ],
)  # fmt: skip
def test_look_alikes_are_unsafe(path: bytes):
    assert is_unsafe(path)


@pytest.mark.parametrize(
    "path",
    [
        b"a", b".github/x", b".gitignore", b".gitmodules", b"git", b"git~2", b"a/.gitkeep", b"...",
        b"x.git/config", b".git-x", b"a b", b"\xff\xfe", b"-rf", b"a\\b", b"new\nline", b".gitx",
    ],
)  # fmt: skip
def test_ordinary_names_are_safe(path: bytes):
    assert not is_unsafe(path)


def test_a_link_that_git_would_read_as_configuration_is_unsafe():
    assert is_unsafe(b".gitmodules", "120000")
    assert is_unsafe(b"sub/.GITATTRIBUTES", "120000")
    assert not is_unsafe(b".gitmodules", "100644")
    assert not is_unsafe(b"link", "120000")
