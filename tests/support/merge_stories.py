"""Stories of conflicts: three trees each, of every kind that git knows, and random ones."""

import random
from typing import NamedTuple

from engine.merge import ConflictKind

File = tuple[str, bytes]
Tree = dict[bytes, File]
TEXT = b"".join(b"line %d\n" % number for number in range(12))
OTHER = b"".join(b"row %d of another file\n" % number for number in range(9))


class Story(NamedTuple):
    """Base, target and incoming, and the kinds of the conflicts by path."""

    name: str
    base: Tree
    target: Tree
    incoming: Tree
    kinds: dict[bytes, ConflictKind]


def file(content: bytes, mode: str = "100644") -> File:
    """A file of a tree."""
    return (mode, content)


_X: Tree = {b"x": file(b"x\n")}
_MINE, _THEIRS = TEXT + b"t\n", TEXT + b"i\n"
_DIR: Tree = {b"d/a": file(TEXT), b"d/b": file(TEXT + b"b\n"), b"d/c": file(TEXT + b"c\n")}
_DIR_MOVED: Tree = {b"e" + path[1:]: entry for path, entry in _DIR.items()}
_ODD = b"caf\xe9\t\n\"'"

STORIES: tuple[Story, ...] = (
    Story(
        "contents",
        {b"f": file(TEXT)},
        {b"f": file(_MINE)},
        {b"f": file(_THEIRS)},
        {b"f": ConflictKind.CONTENTS},
    ),
    Story(
        "odd name",
        {_ODD: file(TEXT)},
        {_ODD: file(_MINE)},
        {_ODD: file(_THEIRS)},
        {_ODD: ConflictKind.CONTENTS},
    ),
    Story(
        "add/add",
        _X,
        {**_X, b"f": file(b"t\n")},
        {**_X, b"f": file(b"i\n")},
        {b"f": ConflictKind.ADD_ADD},
    ),
    Story(
        "binary",
        {b"f": file(b"\0")},
        {b"f": file(b"\0t")},
        {b"f": file(b"\0i")},
        {b"f": ConflictKind.BINARY},
    ),
    Story(
        "modify/delete",
        {b"f": file(TEXT), **_X},
        _X,
        {b"f": file(_THEIRS), **_X},
        {b"f": ConflictKind.MODIFY_DELETE},
    ),
    Story(
        "rename/rename",
        {b"f": file(TEXT)},
        {b"g": file(_MINE)},
        {b"h": file(_THEIRS)},
        {b"f": ConflictKind.RENAME_RENAME},
    ),
    Story(
        "rename/rename into a folder that moves",
        {**_DIR, b"f": file(TEXT + OTHER)},
        {**_DIR, b"d/f": file(TEXT + OTHER + b"t\n")},
        {**_DIR_MOVED, b"h": file(TEXT + OTHER + b"i\n")},
        {b"f": ConflictKind.RENAME_RENAME},
    ),
    Story(
        "a link where a moved file was",
        {b"f": file(TEXT)},
        {b"g": file(_MINE)},
        {b"f": file(b"g", "120000")},
        {b"g": ConflictKind.MODIFY_DELETE},
    ),
    Story(
        "a folder where a moved file was",
        {b"f": file(TEXT), **_X},
        {b"g": file(_MINE), b"f/in": file(b"in\n"), **_X},
        {b"f": file(_THEIRS), **_X},
        {b"g": ConflictKind.CONTENTS},
    ),
    Story(
        "a file in the way of a folder that moves",
        {**_DIR, **_X},
        {**_DIR_MOVED, b"e/new": file(b"t\n"), **_X},
        {**_DIR, b"d/new": file(b"i\n"), **_X},
        {b"e/new": ConflictKind.DIRECTORY_RENAME},
    ),
    Story(
        "a moved file, deleted for a folder at its new name",
        {**_DIR, **_X},
        {b"e/a/in": file(b"in\n"), b"d/b": _DIR[b"d/b"], b"d/c": _DIR[b"d/c"], **_X},
        {**_DIR_MOVED, b"e/a": file(_THEIRS), **_X},
        {b"e/a": ConflictKind.DIRECTORY_FILE},
    ),
    Story(
        "rename/delete",
        {b"f": file(TEXT), **_X},
        {b"g": file(_MINE), **_X},
        _X,
        {b"g": ConflictKind.RENAME_DELETE},
    ),
    Story(
        "renamed and changed",
        {b"f": file(TEXT)},
        {b"g": file(_MINE)},
        {b"f": file(_THEIRS)},
        {b"g": ConflictKind.CONTENTS},
    ),
    Story(
        "rename/add",
        {b"f": file(TEXT), **_X},
        {b"g": file(_MINE), **_X},
        {b"f": file(_THEIRS), b"g": file(b"other\n"), **_X},
        {b"g": ConflictKind.RENAME_ADD, b"f": ConflictKind.MODIFY_DELETE},
    ),
    Story(  # git leaves markers in g and names no version of it
        "rename/add of the same text",
        {b"f": file(TEXT), **_X},
        {b"g": file(TEXT + b"t\n"), **_X},
        {b"f": file(TEXT + b"i\n"), b"g": file(TEXT + b"t\n"), **_X},
        {b"g": ConflictKind.RENAME_ADD, b"f": ConflictKind.MODIFY_DELETE},
    ),
    Story(
        "directory rename",
        _DIR,
        _DIR_MOVED,
        {**_DIR, b"d/new": file(b"new\n")},
        {b"e/new": ConflictKind.DIRECTORY_RENAME},
    ),
    Story(
        "directory split",
        {b"d/a": file(TEXT), b"d/b": file(OTHER), **_X},
        {b"e/a": file(TEXT), b"g/b": file(OTHER), **_X},
        {b"d/a": file(TEXT), b"d/b": file(OTHER), b"d/new": file(b"n\n"), **_X},
        {b"d": ConflictKind.DIRECTORY_RENAME},
    ),
    Story(
        "file against directory",
        _X,
        {**_X, b"d": file(b"t\n")},
        {**_X, b"d/f": file(b"i\n"), b"d/g": file(b"i\n")},
        {b"d": ConflictKind.DIRECTORY_FILE},
    ),
    Story(
        "changed file against directory",
        {b"d": file(TEXT), **_X},
        {b"d/f": file(b"new\n"), **_X},
        {b"d": file(_THEIRS), **_X},
        {b"d": ConflictKind.DIRECTORY_FILE},
    ),
    Story(
        "link against file",
        _X,
        {**_X, b"f": file(b"x", "120000")},
        {**_X, b"f": file(b"i\n")},
        {b"f": ConflictKind.DISTINCT_TYPES},
    ),
    Story(
        "link against link",
        {b"l": file(b"a", "120000")},
        {b"l": file(b"b", "120000")},
        {b"l": file(b"c", "120000")},
        {b"l": ConflictKind.SYMLINK},
    ),
    Story(
        "submodule",
        {b"s": file(b"a" * 40, "160000")},
        {b"s": file(b"b" * 40, "160000")},
        {b"s": file(b"c" * 40, "160000")},
        {b"s": ConflictKind.SUBMODULE},
    ),
    Story(
        "mode",
        _X,
        {**_X, b"f": file(b"f\n", "100755")},
        {**_X, b"f": file(b"f\n")},
        {b"f": ConflictKind.MODE},
    ),
    Story(
        "line ends",
        {b"f": file(b"a\nb\nc\nd\ne\n")},
        {b"f": file(b"a\r\nb\r\nc\r\nd\r\ne\r\n")},
        {b"f": file(b"a\nb\nc\nd\nE\n")},
        {b"f": ConflictKind.EOL},
    ),
)


def random_trees(seed: int) -> tuple[Tree, Tree, Tree]:
    """Some files of code-like lines, edited, moved, added and deleted on both sides."""
    dice = random.Random(seed)
    base: Tree = {}
    for number in range(6):
        lines = [b"file %d, line %d\n" % (number, n) for n in range(dice.randrange(5, 30))]
        base[b"d%d/f%d" % (number % 3, number)] = file(b"".join(lines))
    return base, _edited(base, dice, b"target"), _edited(base, dice, b"incoming")


def _edited(base: Tree, dice: random.Random, who: bytes) -> Tree:
    tree = dict(base)
    for _ in range(dice.randrange(1, 6)):
        path = dice.choice(sorted(tree))
        mode, content = tree[path]
        deed = dice.random()
        if deed < 0.65:
            tree[path] = (mode, _changed(content, dice, who))
        elif deed < 0.75 and len(tree) > 1:
            del tree[path]
        elif deed < 0.85:
            tree[b"moved%d/%s" % (dice.randrange(2), who)] = tree.pop(path)
        elif deed < 0.95:
            tree[b"new%d" % dice.randrange(3)] = file(b"new of " + who + b"\n")
        else:
            tree[path] = ("100755", content)
    return tree


def _changed(content: bytes, dice: random.Random, who: bytes) -> bytes:
    lines = content.splitlines(keepends=True)
    at = dice.randrange(len(lines) + 1)
    lines[at : at + dice.randrange(3)] = [
        b"%s %d\n" % (who, dice.randrange(1000)) for _ in range(dice.randrange(3))
    ]
    return b"".join(lines) or b"\n"
