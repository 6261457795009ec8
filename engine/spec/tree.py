"""Hold a manifest as a tree of values that know where they were written.

Knows nothing of keys or types; a tree comes from YAML text or from plain Python values.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

Value = str | int | float | bool | None


class Position(NamedTuple):
    """The line and column of something, both counted from 1."""

    line: int
    column: int


NOWHERE = Position(1, 1)
"""The place of whatever came as Python values and was never written down."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """A single value."""

    value: Value
    place: Position = NOWHERE


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    items: tuple["Node", ...]
    place: Position = NOWHERE


@dataclass(frozen=True, slots=True)
class Fields:
    """A mapping; `keys` says where each key was written."""

    fields: Mapping[str, "Node"]
    place: Position = NOWHERE
    keys: Mapping[str, Position] = field(default_factory=dict)


Node = Scalar | Items | Fields
Step = str | int
"""One step of a path: a key or an index."""
Path = tuple[Step, ...]


def written(path: Path) -> str:
    """Return a path as people write it: `pipelines[0].steps[1].prompt`."""
    parts = [f"[{step}]" if isinstance(step, int) else f".{step}" for step in path]
    return "".join(parts).removeprefix(".")


def plain(node: Node) -> object:
    """Return the values alone; lists become tuples, so that nothing can change them."""
    match node:
        case Scalar():
            return node.value
        case Items():
            return tuple(plain(item) for item in node.items)
        case Fields():
            return {key: plain(value) for key, value in node.fields.items()}


class NotPlain(ValueError):
    """A Python value that no manifest can hold."""

    def __init__(self, path: Path, what: str) -> None:
        self.path = path
        super().__init__(what)


def from_plain(value: object, path: Path = ()) -> Node:
    """Return the tree of plain Python values; raise NotPlain for what YAML cannot say."""
    if len(path) > DEEPEST:
        raise NotPlain(path, f"is nested deeper than {DEEPEST} levels")
    if value is None or isinstance(value, str | int | float | bool):
        return Scalar(value)
    if isinstance(value, Mapping):
        return Fields({_key(k, path): from_plain(v, (*path, k)) for k, v in value.items()})
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return Items(tuple(from_plain(v, (*path, i)) for i, v in enumerate(value)))
    raise NotPlain(
        path, f"has a value of type {type(value).__name__}, which a manifest cannot contain"
    )


def _key(key: object, path: Path) -> str:
    if isinstance(key, str):
        return key
    raise NotPlain(path, f"has a key that is not text: {key!r:.40}")


def child(node: Node | None, step: Step) -> Node | None:
    """Return what stands under that key or index, if anything."""
    match node, step:
        case Fields(), str():
            return node.fields.get(step)
        case Items(), int() if 0 <= step < len(node.items):
            return node.items[step]
    return None


def at(node: Node | None, *path: Step) -> Node | None:
    """Return the value at the end of that path: None if there is none, or only null."""
    for step in path:
        node = child(node, step)
    return None if isinstance(node, Scalar) and node.value is None else node


def entries(node: Node | None) -> Iterator[tuple[Step, Node]]:
    """Return a list's or mapping's members with index or key; nothing for anything else."""
    match node:
        case Fields():
            yield from node.fields.items()
        case Items():
            yield from enumerate(node.items)
        case Scalar() | None:
            pass


def text(node: Node | None) -> str | None:
    """Return the text of a scalar that is text."""
    return node.value if isinstance(node, Scalar) and isinstance(node.value, str) else None


def number(node: Node | None) -> int | None:
    """Return the whole number of a scalar that is one."""
    is_one = isinstance(node, Scalar) and type(node.value) is int
    return node.value if is_one else None  # type: ignore[union-attr,return-value]  # as is_one says


def texts(node: Node | None) -> list[tuple[int, str]]:
    """Return the texts in a list, with their indices."""
    members = entries(node) if isinstance(node, Items) else ()
    return [(i, t) for i, item in members if isinstance(i, int) and (t := text(item)) is not None]


def place_of(root: Node, path: Path, *, of_key: bool = False) -> Position:
    """Return where the end of a path was written, or the nearest thing above it that was.

    Args:
        root: The whole tree.
        path: Keys and indices from the root.
        of_key: The place of the key itself instead of its value.
    """
    node, place = root, root.place
    for step in path:
        below = child(node, step)
        if below is None:
            break
        place = below.place
        if (
            isinstance(node, Fields)
            and isinstance(step, str)
            and _prefers_key(below, of_key=of_key)
        ):
            place = node.keys.get(step, below.place)
        node = below
    return place


def _prefers_key(value: Node, *, of_key: bool) -> bool:
    """Return whether to point at the key: a block begins below it, where nobody looks."""
    return of_key or not isinstance(value, Scalar)


DEEPEST = 32
"""No manifest needs more; a recursion over the tree stays far from Python's own limit."""
