"""Syntax colors by tree-sitter, where it and a file's grammar are installed (`plait[syntax]`).

A grammar knows what a name is, and takes a fifth of the time of a lexer. A text that begins or
breaks off in the middle does not confuse it. Nothing here is needed: without it `tui.kit.syntax`
colors by lexers.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from importlib import import_module
from pathlib import PurePosixPath
from typing import Any, NamedTuple, Protocol

from tui.ink import Role

_MADE = "language"
_NAMES: dict[str, tuple[str, str]] = {
    **dict.fromkeys((".py", ".pyi"), ("python", _MADE)),
    **dict.fromkeys((".js", ".mjs", ".cjs", ".jsx"), ("javascript", _MADE)),
    **dict.fromkeys((".ts", ".mts", ".cts"), ("typescript", "language_typescript")),
    ".tsx": ("typescript", "language_tsx"),
    ".go": ("go", _MADE),
    ".rs": ("rust", _MADE),
    ".java": ("java", _MADE),
    **dict.fromkeys((".c", ".h"), ("c", _MADE)),
    **dict.fromkeys((".sh", ".bash"), ("bash", _MADE)),
    ".json": ("json", _MADE),
    ".toml": ("toml", _MADE),
    **dict.fromkeys((".yaml", ".yml"), ("yaml", _MADE)),
}
"""By the end of a file's name: the package of its grammar, and what makes it there."""
_STANDS_ON = {"typescript": ("javascript",)}
"""Whose queries a language's own ones only add to."""
_ROLES = {
    "keyword": Role.KEYWORD,
    "boolean": Role.KEYWORD,
    "constant.builtin": Role.KEYWORD,
    "string": Role.STRING,
    "escape": Role.STRING,
    "comment": Role.COMMENT,
    "number": Role.NUMBER,
    "float": Role.NUMBER,
    "type": Role.TYPE,
    "attribute": Role.TYPE,
    "function.builtin": Role.TYPE,
    "tag": Role.KEYWORD,
    "embedded": Role.TEXT,
}
_NAMED = ("function", "constructor", "method", "type")
"""Kinds that give a name where it is defined, and are plain or a type where it is used."""
_DEFINES = re.compile(r"(definition|declaration|declarator|item|spec)$")
_ORDER = tuple(Role)
_DEADLY = {"yaml": re.compile(rb"[-?: \t]{150,}")}
"""By language: what makes its scanner write past its buffer, which ends the process at once.

That of YAML keeps each level of nesting there, has room for some 250, and checks nothing. A level
takes a blank or a sign at the least.
"""
_RUN = re.compile(rb"(.)\1*", re.DOTALL)


class _Grammar(NamedTuple):
    deadly: re.Pattern[bytes] | None
    parser: Any
    query: Any
    cursor: Any


@lru_cache(maxsize=32)
def _grammar(suffix: str) -> _Grammar | None:
    """Return what reads files whose names end so; None where nothing of the kind is installed."""
    name, made = _NAMES.get(suffix, ("", ""))
    if not name:
        return None
    try:
        sitter = import_module("tree_sitter")
        modules = [import_module(f"tree_sitter_{n}") for n in (*_STANDS_ON.get(name, ()), name)]
        language = sitter.Language(getattr(modules[-1], made)())
        query = sitter.Query(language, "\n".join(m.HIGHLIGHTS_QUERY for m in modules))
        return _Grammar(_DEADLY.get(name), sitter.Parser(language), query, sitter.QueryCursor)
    except (ImportError, AttributeError, ValueError):  # not there, or not as these packages are now
        return None


class Node(Protocol):
    """A node of what a grammar made of a text."""

    type: str
    has_error: bool
    start_byte: int
    end_byte: int
    start_point: tuple[int, int]
    end_point: tuple[int, int]
    child_count: int
    children: list["Node"]
    named_children: list["Node"]

    def child_by_field_name(self, name: str) -> "Node | None":
        """Return a child by what it is for."""


def can_parse(path: str) -> bool:
    """Say if files of this name have a grammar, and it is installed."""
    return _grammar(PurePosixPath(path).suffix.lower()) is not None


def _reader_of(path: str, data: bytes) -> _Grammar | None:
    """Return the grammar that reads a text of a file; None where none does, or none safely."""
    grammar = _grammar(PurePosixPath(path).suffix.lower())
    if grammar is None or (grammar.deadly and grammar.deadly.search(data)):
        return None
    return grammar


def parsed(path: str, data: bytes) -> Node | None:
    """Return the root of what a grammar makes of a file; None where there is none."""
    grammar = _reader_of(path, data)
    if grammar is None:
        return None
    parser = type(grammar.parser)(grammar.parser.language)  # its own: this may be another thread
    root: Node = parser.parse(data).root_node
    return root


def colored(path: str, text: str) -> list[list[tuple[str, Role]]] | None:
    """The lines of a text as pieces with their roles; None where no grammar reads it."""
    try:
        data = text.encode()
    except UnicodeEncodeError:
        return None
    grammar = _reader_of(path, data)
    if grammar is None:
        return None
    plain = _ORDER.index(Role.TEXT)
    paint = bytearray(bytes([plain])) * len(data)
    for start, end, role in _captured(grammar, data):
        paint[start:end] = bytes([_ORDER.index(role)]) * (end - start)
    lines, at = [], 0
    for line in data.split(b"\n"):
        runs = _RUN.finditer(bytes(paint[at : at + len(line)]))
        lines.append([(line[run.start() : run.end()].decode(), _ORDER[run[0][0]]) for run in runs])
        at += len(line) + 1
    return lines


def _captured(grammar: _Grammar, data: bytes) -> Iterator[tuple[int, int, Role]]:
    """Yield what has a color, in the order of painting: the wider and the more general first."""
    found = []
    tree = grammar.parser.parse(data)
    for pattern, captures in grammar.cursor(grammar.query).matches(tree.root_node):
        for name, nodes in captures.items():
            for node in nodes:
                role = _role_of(name, node)
                if role is not None:
                    found.append((node.start_byte, -node.end_byte, pattern, role))
    for start, end, _, role in sorted(found, key=lambda one: one[:3]):
        yield start, -end, role


def _role_of(name: str, node: Any) -> Role | None:
    kind = name.partition(".")[0]
    # A grammar finds a parent from the root down: asked for every node, that is quadratic.
    is_asked = kind in _NAMED or kind == "string"
    parent = node.parent.type if is_asked and node.parent is not None else ""
    if kind in _NAMED and _DEFINES.search(parent) and _is_name_of_parent(node):
        return Role.DEFINITION
    if kind == "operator":
        return Role.KEYWORD if node.type[:1].isalpha() else None
    if kind == "string" and parent == "expression_statement":
        return Role.COMMENT  # a docstring
    return _ROLES.get(name) or _ROLES.get(kind)


def _is_name_of_parent(node: Any) -> bool:
    return any(node == node.parent.child_by_field_name(field) for field in ("name", "declarator"))
