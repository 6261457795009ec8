"""Read YAML text into a tree: strict, bounded in time and size, each problem with its place.

Built on the events of PyYAML rather than its composer: a composer recurses (a deep file is a
traceback) and expands nothing, which leaves alias bombs to whoever walks its graph.
"""

import re
from dataclasses import dataclass, field
from typing import NamedTuple

import yaml

from engine.errors import SpecProblem
from engine.spec.tree import DEEPEST, NOWHERE, Fields, Items, Node, Position, Scalar, Value

LARGEST_BYTES = 1 << 20
MOST_NODES = 20_000
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_INT = re.compile(r"-?(0|[1-9][0-9]{0,400})")
_FLOAT = re.compile(r"-?[0-9]{1,40}\.[0-9]{1,40}([eE][-+]?[0-9]{1,3})?")
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None, "~": None, "": None}
# The C parser is ten times faster; the pure one reads the same language where it is not built.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Unreadable(Exception):
    """Nothing after this place can be read."""

    def __init__(self, message: str, place: Position = NOWHERE) -> None:
        self.message, self.place = message, place
        super().__init__(message)


def read_yaml(data: bytes, *, file: str) -> tuple[Node | None, list[SpecProblem]]:
    """Return the tree of one YAML document and every problem; None if it is unreadable."""
    builder = _Builder(file)
    try:
        source = _decoded(data)
        root = builder.build(source)
    except _Unreadable as error:
        builder.complain(error.message, error.place)
        root = None
    return root, builder.problems


def _decoded(data: bytes) -> str:
    if len(data) > LARGEST_BYTES:
        raise _Unreadable(f"the file has {len(data)} bytes; a manifest has at most {LARGEST_BYTES}")
    try:
        source = data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8", "replace")
        raise _Unreadable(
            f"the file is not UTF-8: byte 0x{data[error.start]:02x}", _end_of(before)
        ) from None
    if bad := _UNPRINTABLE.search(source):
        place = _end_of(source[: bad.start()])
        raise _Unreadable(f"the character U+{ord(bad[0]):04X} is not allowed in a manifest", place)
    return source


def _end_of(before: str) -> Position:
    return Position(before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1)


class _Size(NamedTuple):
    """The size of an expanded node: values in all, and levels."""

    nodes: int
    levels: int


_SINGLE = _Size(1, 0)


@dataclass(slots=True)
class _OpenNode:
    """A list or mapping whose end has not come yet."""

    is_mapping: bool
    place: Position
    anchor: str | None
    items: list[Node] = field(default_factory=list)
    fields: dict[str, Node] = field(default_factory=dict)
    keys: dict[str, Position] = field(default_factory=dict)
    key: str | None = None
    wants_value: bool = False
    size: "_Size" = field(default_factory=lambda: _Size(1, 1))

    def closed(self) -> Node:
        if self.is_mapping:
            return Fields(self.fields, self.place, self.keys)
        return Items(tuple(self.items), self.place)


class _Builder:
    """Turns parser events into one tree, without recursion.

    `sizes` holds for every finished anchor how much it stands for, so that an alias bomb is refused
    by arithmetic and never walked.
    """

    def __init__(self, file: str) -> None:
        self.file = file
        self.problems: list[SpecProblem] = []
        self.stack: list[_OpenNode] = []
        self.anchors: dict[str, Node] = {}
        self.sizes: dict[str, _Size] = {}
        self.root: Node | None = None
        self.documents = 0

    def complain(self, message: str, place: Position, key: str = "") -> None:
        """Note one problem."""
        line, column = place
        self.problems.append(
            SpecProblem(file=self.file, line=line, column=column, key=key, message=message)
        )

    def build(self, source: str) -> Node | None:
        """Return the tree of the only document in the source."""
        try:
            for event in yaml.parse(source, Loader=_LOADER):
                self._take(event)
        except yaml.MarkedYAMLError as error:
            raise _syntax(error, source) from None
        except yaml.YAMLError as error:
            raise _Unreadable(f"this is not YAML: {error}") from None
        if self.root is None:
            raise _Unreadable("the file is empty; `plait init` writes a manifest")
        return self.root

    def _take(self, event: yaml.Event) -> None:
        mark = event.start_mark
        place = Position(mark.line + 1, mark.column + 1) if mark else NOWHERE
        match event:
            case yaml.DocumentStartEvent():
                self.documents += 1
                if self.documents > 1:
                    raise _Unreadable(
                        "a second document starts here; a manifest is one document", place
                    )
            case yaml.AliasEvent():
                self._alias(event.anchor or "", place)
            case yaml.ScalarEvent():
                self._scalar(event, place)
            case yaml.CollectionStartEvent():
                self._begin(event, place)
            case yaml.CollectionEndEvent():
                self._end()
            case _:
                pass  # beginnings and ends of the stream and the document

    def _begin(self, event: yaml.CollectionStartEvent, place: Position) -> None:
        self._refuse_tag(event.tag, place)
        if len(self.stack) >= DEEPEST:
            raise _Unreadable(f"this is nested deeper than {DEEPEST} levels", place)
        if self._expects_key():
            raise _Unreadable("a key is text, not a list or a mapping", place)
        is_mapping = isinstance(event, yaml.MappingStartEvent)
        self.stack.append(_OpenNode(is_mapping, place, event.anchor))

    def _end(self) -> None:
        done = self.stack.pop()
        self._put(done.closed(), done.size, done.anchor)

    def _scalar(self, event: yaml.ScalarEvent, place: Position) -> None:
        self._refuse_tag(event.tag, place)
        if self._expects_key():
            self._key(event, place)
        else:
            is_plain = bool(event.implicit[0])
            value = _resolved(event.value) if is_plain else event.value
            self._put(Scalar(value, place), _SINGLE, event.anchor)

    def _key(self, event: yaml.ScalarEvent, place: Position) -> None:
        top = self.stack[-1]
        top.key, top.wants_value = event.value, True
        if event.value == "<<" and event.implicit[0]:
            self.complain("merge keys are not supported; write the keys out", place, "<<")
            top.key = None
        elif event.value in top.keys:
            first = top.keys[event.value].line
            self.complain(f"is written twice; first on line {first}", place, event.value)
            top.key = None
        else:
            top.keys[event.value] = place
        if event.anchor:
            self.anchors[event.anchor] = Scalar(event.value, place)
            self.sizes[event.anchor] = _SINGLE

    def _alias(self, anchor: str, place: Position) -> None:
        if anchor not in self.anchors:
            raise _Unreadable(
                f"*{anchor} does not refer to an anchor that is complete before it", place
            )
        if self._expects_key():
            raise _Unreadable("an alias cannot be a key", place)
        self._put(self.anchors[anchor], self.sizes[anchor], None)

    def _put(self, node: Node, size: _Size, anchor: str | None) -> None:
        if anchor:
            self.anchors[anchor], self.sizes[anchor] = node, size
        if not self.stack:
            self.root = node
            return
        top = self.stack[-1]
        top.size = _Size(top.size.nodes + size.nodes, max(top.size.levels, size.levels + 1))
        if top.size.nodes > MOST_NODES:
            raise _Unreadable(f"a manifest holds at most {MOST_NODES} values", node.place)
        if top.size.levels > DEEPEST:
            raise _Unreadable(f"this is nested deeper than {DEEPEST} levels", node.place)
        if not top.is_mapping:
            top.items.append(node)
            return
        if top.key is not None:
            top.fields[top.key] = node
        top.wants_value = False

    def _expects_key(self) -> bool:
        return bool(self.stack) and self.stack[-1].is_mapping and not self.stack[-1].wants_value

    def _refuse_tag(self, tag: str | None, place: Position) -> None:
        if tag:
            self.complain(f"the tag {tag!r:.60} is not supported; write only the value", place)


def _resolved(word: str) -> Value:
    """Return what a plain scalar means: fewer things than in YAML 1.1, where `no` is a boolean."""
    if word in _WORDS:
        return _WORDS[word]
    if _INT.fullmatch(word):
        return int(word)
    if _FLOAT.fullmatch(word):
        return float(word)
    return word


def _syntax(error: yaml.MarkedYAMLError, source: str) -> _Unreadable:
    mark = error.problem_mark or error.context_mark
    place = Position(mark.line + 1, mark.column + 1) if mark else NOWHERE
    said = error.problem or error.context or "it cannot be read"
    lines = source.split("\n")
    line = lines[place.line - 1] if place.line <= len(lines) else ""
    if "\t" in line[: len(line) - len(line.lstrip())] or "'\\t'" in said:
        return _Unreadable("a tab cannot indent; use spaces", place)
    return _Unreadable(f"this is not YAML: {said}", place)
