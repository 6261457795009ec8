"""Take a file apart into its functions, methods and classes, each with what it says.

Python is read by Python itself; other languages by tree-sitter, where their grammar is installed.
"""

import ast
import io
import re
import tokenize
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import cache, cached_property
from itertools import islice
from pathlib import PurePosixPath
from textwrap import dedent

from tui.kit.grammars import Node, can_parse, parsed

MOST_BYTES = 1 << 20
MOST_UNITS = 5000
"""A larger file is not taken apart, nor one of more units."""
_DEEPEST = 20
"""Units that stand deeper in each other are not looked for: each costs as much as all in it."""
_PYTHON = frozenset({".py", ".pyi"})
_DATA = frozenset({".json", ".toml", ".yaml", ".yml"})
_DEFINES = re.compile(
    r"(function|method|constructor|class|interface|struct|enum|trait|impl|type)"
    r"(_(definition|declaration|item|specifier|spec))?"
)
_FUNCTION = re.compile("function|method|constructor")
_HOLDS = re.compile(
    r"class|interface|struct|trait|impl|mod_item|module|namespace|export|body|list|program|decl"
)
_VERBATIM = re.compile(r"string|template|heredoc|char|regex|comment|text")
"""Kinds in which blanks count too."""
_OWN_NAME = "\0"
"""Stands for the name of a unit in what it says, so that another name alone makes no difference."""


class Unit:
    """A function, a method or a class.

    Attributes:
        path: The names that lead to it, its own last.
        first: Its first line, counted from 1, decorators included; `last` its last one.
        text: Its lines, without the indent that all of them have.
        beside: The text before it in its first line, and the text behind it in its last one.
    """

    def __init__(
        self,
        path: tuple[str, ...],
        lines: tuple[int, int],
        text: str,
        says: Callable[[str], Hashable],
        *,
        is_function: bool = True,
        beside: tuple[bytes, bytes] = (b"", b""),
    ) -> None:
        self.path = path
        self._ends = "()" if is_function else ""
        self.first, self.last = lines
        self.text = text
        self.beside = beside
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


def can_take_apart(path: str) -> bool:
    """Say if files of this name can be taken apart here, and may have anything in them."""
    suffix = PurePosixPath(path).suffix.lower()
    return suffix in _PYTHON or (suffix not in _DATA and can_parse(path))


def units_of(path: str, data: bytes) -> list[Unit] | None:
    """Return the units of a file, in order; None where it cannot be read as what its name says."""
    if len(data) > MOST_BYTES:
        return None
    if PurePosixPath(path).suffix.lower() in _PYTHON:
        return _python(data)
    root = parsed(path, data)
    if root is None or root.has_error:
        return None
    return _numbered(_in_tree(root, data))


def _numbered(found: Iterable[Unit]) -> list[Unit] | None:
    """Tell units of one name apart: overloads, and a property's setter; None for too many."""
    units = list(islice(found, MOST_UNITS + 1))
    if len(units) > MOST_UNITS:
        return None
    times: dict[tuple[str, ...], int] = {}
    for unit in units:
        count = times[unit.path] = times.get(unit.path, 0) + 1
        if count > 1:
            unit.path = (*unit.path[:-1], f"{unit.path[-1]}#{count}")
    return units


# Python.

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def _python(data: bytes) -> list[Unit] | None:
    """Return the units of Python; None where its lines are others for Python than for git."""
    data = data.replace(b"\r\n", b"\n")
    if b"\r" in data:
        return None
    try:
        text = data.decode("utf-8-sig")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)  # not the bytes: a cookie in them may move lines
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return _numbered(_defined(tree, text.split("\n")))


_Comment = tuple[int, bool, str]


def _comments(text: str) -> tuple[_Comment, ...] | None:
    """Return the comments of a stretch of code, and where they are; None where it cannot be read.

    A comment's place is how many names and numbers stand before it: layout moves none of these. It
    also tells if it stands in a line of its own.
    """
    found: list[_Comment] = []
    before = 0
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            before += token.type in {tokenize.NAME, tokenize.NUMBER}
            if token.type == tokenize.COMMENT:
                is_alone = not token.line[: token.start[1]].strip()
                found.append((before, is_alone, token.string))
    except (SyntaxError, ValueError, tokenize.TokenError):
        return None
    return tuple(found)


def _defined(tree: ast.AST, lines: Sequence[str]) -> Iterator[Unit]:
    # A file may nest deeper than Python calls itself: a stack of our own holds what is to come.
    waiting: list[tuple[ast.AST, tuple[str, ...]]] = [(tree, ())]
    while waiting:
        node, path = waiting.pop()
        if isinstance(node, _Definition):
            path = (*path, node.name)
            yield _python_unit(node, path, lines)
        is_open = isinstance(node, ast.Module | ast.If | ast.Try | ast.ClassDef)
        if is_open and len(path) < _DEEPEST:
            waiting += [(child, path) for child in reversed([*ast.iter_child_nodes(node)])]


def _python_unit(node: _Definition, path: tuple[str, ...], lines: Sequence[str]) -> Unit:
    first = min((node.lineno, *(one.lineno for one in node.decorator_list)))
    last = node.end_lineno or node.lineno
    text = dedent("\n".join(lines[first - 1 : last]))
    is_function = not isinstance(node, ast.ClassDef)
    return Unit(path, (first, last), text, _python_says(node, text), is_function=is_function)


def _python_says(node: _Definition, text: str) -> Callable[[str], Hashable]:
    @cache
    def whole() -> tuple[str, tuple[_Comment, ...]] | None:
        comments = _comments(text)
        try:
            return None if comments is None else (ast.dump(node), comments)
        except RecursionError:
            return None

    def says(own: str) -> Hashable:
        if (known := whole()) is None:
            return object()  # equal to nothing
        dumped, comments = known
        if own:
            mention = rf"\b(name|id|attr)='{re.escape(own)}'"
            dumped = re.sub(mention, f"\\1='{_OWN_NAME}'", dumped)
        return dumped, comments

    return says


# Other languages.


def _in_tree(root: Node, data: bytes) -> Iterator[Unit]:
    waiting = [(child, tuple[str, ...]()) for child in reversed(root.named_children)]
    while waiting:
        node, path = waiting.pop()
        name = _name_of(node, data) if _DEFINES.fullmatch(node.type) else ""
        if name:
            path = (*path, name)
            yield _tree_unit(node, path, data)
        if (name or _HOLDS.search(node.type)) and len(path) < _DEEPEST:
            waiting += [(child, path) for child in reversed(node.named_children)]


def _tree_unit(node: Node, path: tuple[str, ...], data: bytes) -> Unit:
    lines = (node.start_point[0] + 1, node.end_point[0] + 1)
    begin = data.rfind(b"\n", 0, node.start_byte) + 1
    end = data.find(b"\n", node.end_byte)
    behind = data[node.end_byte : end if end >= 0 else len(data)]
    return Unit(
        path,
        lines,
        dedent(data[begin : node.end_byte].decode(errors="surrogateescape")),
        _tree_says(node, data),
        is_function=_FUNCTION.match(node.type) is not None,
        beside=(data[begin : node.start_byte].strip(), behind.strip()),
    )


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
            is_leaf = not here.child_count or _VERBATIM.search(here.type)
            leaf = data[here.start_byte : here.end_byte] if is_leaf else _between(here, data)
            is_own = own and leaf == own.encode() and "identifier" in here.type
            found.append((here.type, b"\0" if is_own else leaf))
            if not is_leaf:
                waiting.extend(reversed(here.children))
        return tuple(found)

    return says


def _between(node: Node, data: bytes) -> bytes:
    """Return what a node says beside its children: some grammars have no node for all of it."""
    ends = [node.start_byte, *(child.end_byte for child in node.children)]
    begins = [*(child.start_byte for child in node.children), node.end_byte]
    parts = (data[end:begin].strip() for end, begin in zip(ends, begins, strict=True))
    return b"\n".join(filter(None, parts))
