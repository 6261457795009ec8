"""git's own words for conflicts, asked of git, and the kinds they are read as."""

from pathlib import Path

import pytest

from engine.merge import ConflictKind, FileConflict, FileSide, kind_named
from tests.support.merge_oracle import Trees

File = tuple[str, bytes]
Tree = dict[bytes, File]
TEXT = b"".join(b"line %d\n" % number for number in range(12))


def file(content: bytes, mode: str = "100644") -> File:
    return (mode, content)


STORIES: list[tuple[str, Tree, Tree, Tree, set[ConflictKind]]] = [
    (
        "contents",
        {b"f": file(TEXT)},
        {b"f": file(TEXT + b"t\n")},
        {b"f": file(TEXT + b"i\n")},
        {ConflictKind.CONTENTS},
    ),
    (
        "add/add",
        {b"x": file(b"x\n")},
        {b"x": file(b"x\n"), b"f": file(b"t\n")},
        {b"x": file(b"x\n"), b"f": file(b"i\n")},
        {ConflictKind.ADD_ADD},
    ),
    (
        "binary",
        {b"f": file(b"\0")},
        {b"f": file(b"\0t")},
        {b"f": file(b"\0i")},
        {ConflictKind.BINARY},
    ),
    (
        "modify/delete",
        {b"f": file(TEXT), b"x": file(b"x\n")},
        {b"x": file(b"x\n")},
        {b"f": file(TEXT + b"i\n"), b"x": file(b"x\n")},
        {ConflictKind.MODIFY_DELETE},
    ),
    (
        "rename/rename",
        {b"f": file(TEXT)},
        {b"g": file(TEXT)},
        {b"h": file(TEXT)},
        {ConflictKind.RENAME_RENAME},
    ),
    (
        "rename/delete",
        {b"f": file(TEXT), b"x": file(b"x\n")},
        {b"g": file(TEXT), b"x": file(b"x\n")},
        {b"x": file(b"x\n")},
        {ConflictKind.RENAME_DELETE},
    ),
    (
        "rename/add",
        {b"f": file(TEXT), b"x": file(b"x\n")},
        {b"g": file(TEXT + b"t\n"), b"x": file(b"x\n")},
        {b"f": file(TEXT + b"i\n"), b"x": file(b"x\n"), b"g": file(b"other\n")},
        {ConflictKind.RENAME_ADD, ConflictKind.ADD_ADD},
    ),
    (
        "directory rename",
        {b"d/a": file(TEXT), b"d/b": file(TEXT + b"b\n"), b"d/c": file(TEXT + b"c\n")},
        {b"e/a": file(TEXT), b"e/b": file(TEXT + b"b\n"), b"e/c": file(TEXT + b"c\n")},
        {
            b"d/a": file(TEXT),
            b"d/b": file(TEXT + b"b\n"),
            b"d/c": file(TEXT + b"c\n"),
            b"d/new": file(b"new\n"),
        },
        {ConflictKind.DIRECTORY_RENAME},
    ),
    (
        "file against directory",
        {b"x": file(b"x\n")},
        {b"x": file(b"x\n"), b"d": file(b"t\n")},
        {b"x": file(b"x\n"), b"d/f": file(b"i\n")},
        {ConflictKind.DIRECTORY_FILE},
    ),
    (
        "link against file",
        {b"x": file(b"x\n")},
        {b"x": file(b"x\n"), b"f": file(b"x", "120000")},
        {b"x": file(b"x\n"), b"f": file(b"i\n")},
        {ConflictKind.DISTINCT_TYPES},
    ),
    (
        "submodule",
        {b"s": file(b"a" * 40, "160000")},
        {b"s": file(b"b" * 40, "160000")},
        {b"s": file(b"c" * 40, "160000")},
        {ConflictKind.SUBMODULE},
    ),
]


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> Trees:
    found = Trees(Path(tmp_path_factory.mktemp("trees")))
    found.git("init", "-q")
    return found


@pytest.mark.parametrize("story", STORIES, ids=[story[0] for story in STORIES])
def test_gits_word_is_read_as_the_kind(
    trees: Trees, story: tuple[str, Tree, Tree, Tree, set[ConflictKind]]
):
    _, base, target, incoming, expected = story
    root = trees.commit(base)
    words = trees.kinds(trees.commit(target, root), trees.commit(incoming, root))
    kinds = {
        _told(path, kind_named(word), (base, target, incoming))
        for path, found in words.items()
        for word in found
    }
    assert kinds == expected, words


def test_a_mode_alone_is_a_kind_of_its_own(trees: Trees):
    base = {b"x": file(b"x\n")}
    target = {**base, b"f": file(b"f\n", "100755")}
    incoming = {**base, b"f": file(b"f\n")}
    root = trees.commit(base)
    words = trees.kinds(trees.commit(target, root), trees.commit(incoming, root))
    (word,) = words[b"f"]
    assert _told(b"f", kind_named(word), (base, target, incoming)) is ConflictKind.MODE


def _told(path: bytes, kind: ConflictKind, trees: tuple[Tree, Tree, Tree]) -> ConflictKind:
    base, target, incoming = (
        FileSide(path=path, mode=tree[path][0], blob=repr(tree[path][1]), content=tree[path][1])
        if path in tree
        else None
        for tree in trees
    )
    return (
        FileConflict(path=path, kind=kind, base=base, target=target, incoming=incoming)
        .told_exactly()
        .kind
    )
