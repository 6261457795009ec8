"""The decisions of a review, entry by entry, as plain data that outlives the process.

An entry says what was decided and for what: hunks by their content, whole files by the
fingerprint of their versions. So entries can be read against a merge that has been made again.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from engine.merge.choices import Choice, choice_from_json, choice_to_json
from engine.merge.editing import keys_marked
from engine.merge.packing import pack, unpack
from engine.merge.text import HunkKey
from engine.merge.whole import FilePlace, Whole


@dataclass(frozen=True, slots=True)
class HunkAt:
    """A hunk of a file."""

    path: bytes
    key: HunkKey


@dataclass(frozen=True, slots=True)
class HunksChosen:
    """One choice for one hunk, or for many at once; undone as one."""

    at: tuple[HunkAt, ...]
    choice: Choice


@dataclass(frozen=True, slots=True)
class HunksWritten:
    """Own texts for hunks of a file, written in one go; undone as one."""

    path: bytes
    texts: tuple[tuple[HunkKey, bytes], ...]

    @property
    def at(self) -> tuple[HunkAt, ...]:
        """The hunks that were written."""
        return tuple(HunkAt(self.path, key) for key, _ in self.texts)


@dataclass(frozen=True, slots=True)
class HunksOpened:
    """These hunks are open again."""

    at: tuple[HunkAt, ...]


@dataclass(frozen=True, slots=True)
class WholeChosen:
    """One choice for a whole path."""

    path: bytes
    fingerprint: str
    choice: Whole


@dataclass(frozen=True, slots=True)
class ModeChosen:
    """The mode of the merged file."""

    path: bytes
    fingerprint: str
    mode: str


@dataclass(frozen=True, slots=True)
class PlaceChosen:
    """A choice of the path at which the merged file is to lie."""

    path: bytes
    fingerprint: str
    place: FilePlace


@dataclass(frozen=True, slots=True)
class FileSet:
    """A path has this content and mode, whatever the merge says; no content: the path is gone.

    `fingerprint` is empty where the path is no conflict of the merge. Hunks that stand between
    markers in the content (`engine.merge.editing`) are still open. `by` is the command that made
    the content, if one did, and `basis` names the rest of the result that it made it from.
    """

    path: bytes
    fingerprint: str
    content: bytes | None
    mode: str
    by: str = ""
    basis: str = ""

    @property
    def marked(self) -> frozenset[HunkKey]:
        """The hunks that stand open in the content."""
        return keys_marked(self.content or b"")


@dataclass(frozen=True, slots=True)
class FileOpened:
    """Everything decided about this path is open again."""

    path: bytes


Entry = (
    HunksChosen
    | HunksWritten
    | HunksOpened
    | WholeChosen
    | ModeChosen
    | PlaceChosen
    | FileSet
    | FileOpened
)


def entry_to_json(entry: Entry) -> dict[str, object]:
    """The entry as plain data for `json`."""
    match entry:
        case HunksChosen():
            return {"did": "choose", "at": _pack_at(entry.at), **choice_to_json(entry.choice)}
        case HunksWritten():
            texts = [[key, pack(text)] for key, text in entry.texts]
            return {"did": "write", "path": pack(entry.path), "texts": texts}
        case HunksOpened():
            return {"did": "open", "at": _pack_at(entry.at)}
        case FileOpened():
            return {"did": "open_file", "path": pack(entry.path)}
        case _:
            return {**_file_to_json(entry), **_pack_file(entry)}


def _file_to_json(entry: WholeChosen | ModeChosen | PlaceChosen | FileSet) -> dict[str, object]:
    match entry:
        case FileSet():
            content = None if entry.content is None else pack(entry.content)
            made = {"by": entry.by, "basis": entry.basis} if entry.by else {}
            return {"did": "set_file", "content": content, "mode": entry.mode, **made}
        case WholeChosen():
            return {"did": "choose_whole", "whole": str(entry.choice)}
        case ModeChosen():
            return {"did": "choose_mode", "mode": entry.mode}
        case PlaceChosen():
            return {"did": "choose_place", "place": str(entry.place)}


def entry_from_json(data: Mapping[str, object]) -> Entry:
    """The entry that `entry_to_json` wrote; ValueError for anything else."""
    match data:
        case {"did": "choose", "at": list(at)}:
            return HunksChosen(_unpack_at(at), choice_from_json(data))
        case {"did": "write", "path": path, "texts": list(texts)}:
            return HunksWritten(unpack(path), _unpack_texts(texts))
        case {"did": "open", "at": list(at)}:
            return HunksOpened(_unpack_at(at))
        case {"did": "open_file", "path": path}:
            return FileOpened(unpack(path))
        case {"path": path, "fingerprint": str(fingerprint)}:
            return _file_entry(data, unpack(path), fingerprint)
        case _:
            raise ValueError(f"not an entry of a merge journal: {data!r}")


def _file_entry(data: Mapping[str, object], path: bytes, fingerprint: str) -> Entry:
    match data:
        case {"did": "set_file", "content": content, "mode": str(mode)}:
            made = (str(data.get("by", "")), str(data.get("basis", "")))
            text = None if content is None else unpack(content)
            return FileSet(path, fingerprint, text, mode, *made)
        case {"did": "choose_whole", "whole": str(choice)}:
            return WholeChosen(path, fingerprint, Whole(choice))
        case {"did": "choose_mode", "mode": str(mode)}:
            return ModeChosen(path, fingerprint, mode)
        case {"did": "choose_place", "place": str(place)}:
            return PlaceChosen(path, fingerprint, FilePlace(place))
        case _:
            raise ValueError(f"not an entry of a merge journal: {data!r}")


def _pack_file(entry: WholeChosen | ModeChosen | PlaceChosen | FileSet) -> dict[str, object]:
    return {"path": pack(entry.path), "fingerprint": entry.fingerprint}


def _pack_at(at: tuple[HunkAt, ...]) -> list[list[object]]:
    return [[pack(hunk.path), hunk.key] for hunk in at]


def _unpack_at(packed: list[object]) -> tuple[HunkAt, ...]:
    found: list[HunkAt] = []
    for item in packed:
        match item:
            case [path, str(key)]:
                found.append(HunkAt(unpack(path), HunkKey(key)))
            case _:
                raise ValueError(f"not a hunk of a merge journal: {item!r}")
    return tuple(found)


def _unpack_texts(packed: list[object]) -> tuple[tuple[HunkKey, bytes], ...]:
    found: list[tuple[HunkKey, bytes]] = []
    for item in packed:
        match item:
            case [str(key), text]:
                found.append((HunkKey(key), unpack(text)))
            case _:
                raise ValueError(f"not a text of a merge journal: {item!r}")
    return tuple(found)
