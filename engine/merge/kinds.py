"""The kinds of conflict, and git's names for them."""

from enum import StrEnum

from engine.merge.styles import Style, plain
from engine.merge.text import merge_texts


class ConflictKind(StrEnum):
    """The reason why a path could not be merged."""

    CONTENTS = "contents"
    ADD_ADD = "add/add"
    BINARY = "binary"
    MODIFY_DELETE = "modify/delete"
    RENAME_RENAME = "rename/rename"
    RENAME_DELETE = "rename/delete"
    RENAME_ADD = "rename/add"
    DIRECTORY_RENAME = "directory rename"
    DIRECTORY_FILE = "directory/file"
    MODE = "mode"
    SYMLINK = "symlink"
    DISTINCT_TYPES = "distinct types"
    SUBMODULE = "submodule"
    EOL = "line ends"
    ENCODING = "encoding"
    NO_NEWLINE = "no newline at end"


STYLE_KINDS = frozenset({ConflictKind.EOL, ConflictKind.ENCODING, ConflictKind.NO_NEWLINE})
"""The sides say things that fit together, but write them down differently."""

_LINK, _SUBMODULE = "120000", "160000"

# merge-ort promises that these words stay as they are ("relied upon by external tools").
_GIT_NAMES = {
    "contents": ConflictKind.CONTENTS,
    "binary": ConflictKind.BINARY,
    "file/directory": ConflictKind.DIRECTORY_FILE,
    "distinct modes": ConflictKind.DISTINCT_TYPES,
    "distinct types": ConflictKind.DISTINCT_TYPES,
    "modify/delete": ConflictKind.MODIFY_DELETE,
    "rename/rename": ConflictKind.RENAME_RENAME,
    "rename/delete": ConflictKind.RENAME_DELETE,
    "rename involved in collision": ConflictKind.RENAME_ADD,
    "add/add": ConflictKind.ADD_ADD,
}


def kind_named(name: str) -> ConflictKind:
    """The kind behind git's word, such as `CONFLICT (modify/delete)` or `CONFLICT (contents)`.

    Every word that speaks of a directory rename is one kind here, every word that speaks of a
    submodule another. A word from a newer git that is not known reads as a conflict of contents,
    which offers whole files where lines cannot be compared.
    """
    word = name.removeprefix("CONFLICT").strip().removeprefix("(").removesuffix(")")
    if "directory rename" in word:
        return ConflictKind.DIRECTORY_RENAME
    if "submodule" in word:
        return ConflictKind.SUBMODULE
    return _GIT_NAMES.get(word, ConflictKind.CONTENTS)


def kind_by_modes(kind: ConflictKind, modes: tuple[str | None, str, str]) -> ConflictKind:
    """The kind, described more exactly by the file modes of base, target and incoming.

    git reports links, submodules, files added twice and files that differ in their mode alone as
    conflicts of contents.
    """
    base, target, incoming = modes
    if kind not in (ConflictKind.CONTENTS, ConflictKind.ADD_ADD, ConflictKind.BINARY):
        return kind
    if target[:3] != incoming[:3]:
        return ConflictKind.DISTINCT_TYPES
    if target == _LINK:
        return ConflictKind.SYMLINK
    if target == _SUBMODULE:
        return ConflictKind.SUBMODULE
    if base is None and kind is ConflictKind.CONTENTS:
        return ConflictKind.ADD_ADD
    return kind


def kind_by_style(
    kind: ConflictKind, base: bytes | None, target: bytes, incoming: bytes
) -> ConflictKind:
    """The kind, described more exactly by the contents: whether it is only a matter of style."""
    if kind not in (ConflictKind.CONTENTS, ConflictKind.ADD_ADD, ConflictKind.BINARY):
        return kind
    mine, theirs = Style.of(target), Style.of(incoming)
    before = mine if base is None else Style.of(base)
    if mine == theirs == before or merged_plainly(base, target, incoming) is None:
        return kind
    forms = {(style.encoding, style.mark) for style in (before, mine, theirs)}
    if len(forms) > 1:
        return ConflictKind.ENCODING
    if b"\0" in target + incoming:
        return kind
    if len({style.crlf for style in (before, mine, theirs)}) > 1:
        return ConflictKind.EOL
    return ConflictKind.NO_NEWLINE


def merged_plainly(base: bytes | None, target: bytes, incoming: bytes) -> bytes | None:
    """The plain text of the merge, or None if the sides contradict each other in what they say."""
    text = merge_texts(plain(base or b""), plain(target), plain(incoming))
    return None if text.hunks else text.render(lambda hunk: b"".join(hunk.base))
