"""Take a file apart into its functions, methods and classes, each with what it says.

Python is read by Python itself; other languages by tree-sitter, where their grammar is installed.
"""

import ast
import io
import re
import tokenize
import warnings
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cached_property
from pathlib import PurePosixPath
from textwrap import dedent

from tui.kit.grammars import Node, can_parse, parsed

MOST_BYTES = 1 << 20
"""A larger file is not taken apart."""
_PYTHON = frozenset({".py", ".pyi"})
_DEFINES = re.compile(
    r"(function|method|constructor|class|interface|struct|enum|trait|impl|type)"
    r"(_(definition|declaration|item|specifier|spec))?"
)
_FUNCTION = re.compile("function|method|constructor")
_HOLDS = re.compile(
    r"class|interface|struct|trait|impl|module|namespace|export|body|list|program|decl"
)
_OWN_NAME = "\0"
"""Stands for the name of a unit in what it says, so that another name alone makes no difference."""


class Unit:
    """A function, a method or a class.

    Attributes:
        path: The names that lead to it, its own last.
        first: Its first line, counted from 1, decorators included; `last` its last one.
        text: Its lines, without the indent that all of them have.
    """

    def __init__(
        self,
        path: tuple[str, ...],
        lines: tuple[int, int],
        text: str,
        says: Callable[[str], Hashable],
        *,
        is_function: bool = True,
    ) -> None:
        self.path = path
        self._ends = "()" if is_function else ""
        self.first, self.last = lines
        self.text = text
        self._says = says

    @property
    def name(self) -> str:
        """Return its own name."""
        return self.path[-1].partition("#")[0]

    @property
    def called(self) -> str:
        """Return its names for people."""
        return ".".join(part.partition("#")[0] for part in self.path) + self._ends

    @cached_property
    def meaning(self) -> Hashable:
        """Return what it says, comments included, however it is set."""
        return self._says("")

    @cached_property
    def body(self) -> Hashable:
        """Return what it says but for its own name."""
        return self._says(self.name)

    def holds(self, other: "Unit") -> bool:
        """Say if another one of the same file stands in it."""
        return self is not other and self.first <= other.first and other.last <= self.last


def can_take_apart(path: str) -> bool:
    """Say if files of this name can be taken apart here."""
    suffix = PurePosixPath(path).suffix.lower()
    return suffix in _PYTHON or can_parse(path)


def units_of(path: str, data: bytes) -> list[Unit] | None:
    """Return the units of a file, in order; None where it cannot be read as what its name says."""
    if len(data) > MOST_BYTES:
        return None
    if PurePosixPath(path).suffix.lower() in _PYTHON:
        return _numbered(_python(data))
    root = parsed(path, data)
    if root is None or root.has_error:
        return None
    return _numbered(list(_in_tree(root, (), data)))


def _numbered(units: list[Unit] | None) -> list[Unit] | None:
    """Tell units of one name apart: overloads, and a property's setter."""
    times: dict[tuple[str, ...], int] = {}
    for unit in units or ():
        count = times[unit.path] = times.get(unit.path, 0) + 1
        if count > 1:
            unit.path = (*unit.path[:-1], f"{unit.path[-1]}#{count}")
    return units


# Python.

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def _python(data: bytes) -> list[Unit] | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(data)
            text = data.decode()
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return list(_defined(tree, (), text.split("\n")))


def _comments(text: str) -> tuple[str, ...] | None:
    """Return the comments of a stretch of code; None where it cannot be read."""
    try:
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        return tuple(token.string for token in tokens if token.type == tokenize.COMMENT)
    except (SyntaxError, ValueError, tokenize.TokenError):
        return None


def _defined(tree: ast.AST, path: tuple[str, ...], lines: Sequence[str]) -> Iterator[Unit]:
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, _Definition):
            if isinstance(node, ast.If | ast.Try):
                yield from _defined(node, path, lines)
            continue
        first = min((node.lineno, *(one.lineno for one in node.decorator_list)))
        last = node.end_lineno or node.lineno
        here = (*path, node.name)
        text = dedent("\n".join(lines[first - 1 : last]))
        is_class = isinstance(node, ast.ClassDef)
        says = _python_says(node, text)
        yield Unit(here, (first, last), text, says, is_function=not is_class)
        if is_class:
            yield from _defined(node, here, lines)


def _python_says(node: _Definition, text: str) -> Callable[[str], Hashable]:
    def says(own: str) -> Hashable:
        try:
            dumped = ast.dump(node)
        except RecursionError:
            return object()  # equal to nothing
        comments = _comments(text)
        if comments is None:
            return object()
        if own:
            mention = rf"\b(name|id|attr)='{re.escape(own)}'"
            dumped = re.sub(mention, f"\\1='{_OWN_NAME}'", dumped)
        return dumped, comments

    return says


# Other languages.


def _in_tree(node: Node, path: tuple[str, ...], data: bytes) -> Iterator[Unit]:
    for child in node.named_children:
        name = _name_of(child, data) if _DEFINES.fullmatch(child.type) else ""
        if not name:
            if _HOLDS.search(child.type):
                yield from _in_tree(child, path, data)
            continue
        here = (*path, name)
        lines = (child.start_point[0] + 1, child.end_point[0] + 1)
        begin = data.rfind(b"\n", 0, child.start_byte) + 1
        text = dedent(data[begin : child.end_byte].decode(errors="surrogateescape"))
        is_function = _FUNCTION.match(child.type) is not None
        yield Unit(here, lines, text, _tree_says(child, data), is_function=is_function)
        yield from _in_tree(child, here, data)


def _name_of(node: Node, data: bytes) -> str:
    """Return what a definition is called: in C its name stands deep inside."""
    named = node.child_by_field_name("type" if node.type.startswith("impl") else "name")
    inner = node.child_by_field_name("declarator")
    while named is None and inner is not None:
        deeper = inner.child_by_field_name("declarator")
        named, inner = (inner, None) if deeper is None else (None, deeper)
    return data[named.start_byte : named.end_byte].decode(errors="replace") if named else ""


def _tree_says(node: Node, data: bytes) -> Callable[[str], Hashable]:
    def says(own: str) -> Hashable:
        found: list[tuple[str, bytes]] = []
        waiting = [node]
        while waiting:
            here = waiting.pop()
            leaf = b"" if here.child_count else data[here.start_byte : here.end_byte]
            is_own = own and leaf == own.encode() and "identifier" in here.type
            found.append((here.type, b"\0" if is_own else leaf))
            waiting.extend(reversed(here.children))
        return tuple(found)

    return says
