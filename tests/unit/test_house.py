"""Ratchets on the cut of the house: each figure may fall and never rise.

A limit is the figure of today. Whoever lowers a figure lowers the limit beside it.
"""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.unit.test_english import slips

ROOT = Path(__file__).parents[2]
MOST_ROOM_FILES, MOST_ROOM_LINES = 35, 6500
LARGE_ROOMS = {"engine/git": "one world, hardened call by call, on its own plumbing"}
_ROW = re.compile(r"[^\s.?!] {2,}\S|[├└→]")
_NAME = re.compile(r"^ {4,}\w+:", re.MULTILINE)
RELATIVE_WORDS = frozenset(["What", "How", "Where", "Whether", "Which", "Why", "When", "Who"])


@cache
def modules() -> dict[str, ast.Module]:
    """Return every module of engine and tui, parsed, by its dotted name."""
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): ast.parse(path.read_text())
        for room in ("engine", "tui")
        for path in (ROOT / room).rglob("*.py")
        if "demo/project" not in path.as_posix()
    }


def classes() -> Iterator[tuple[str, ast.ClassDef]]:
    """Yield every class at the top of a module, with the module's name."""
    for name, tree in modules().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                yield name, node


def functions() -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Yield every function and method, with the module's name."""
    for name, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield name, node


def importers() -> dict[str, set[str]]:
    """Return by whom each module is imported; also where only types are meant."""
    by_whom: dict[str, set[str]] = defaultdict(set)
    for name, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                for found in (node.module, *(f"{node.module}.{one.name}" for one in node.names)):
                    if found in modules():
                        by_whom[found].add(name)
            elif isinstance(node, ast.Import):
                for one in node.names:
                    by_whom[one.name].add(name)
    return by_whom


def falls(found: set[str] | list[str], most: int, what: str) -> None:
    """Hold a figure at its limit, and the limit at the figure."""
    listed = "\n  ".join(sorted(found))
    assert len(found) <= most, f"{len(found)} {what}, at most {most}:\n  {listed}"
    assert len(found) == most, f"only {len(found)} {what} are left: lower the limit of {most}"


def test_single_importer_siblings():
    """A module that one neighbor alone imports is a slice of it. A front door is no neighbor."""
    slices = {
        f"{name} <- {next(iter(by))}"
        for name, by in importers().items()
        if name.startswith("engine.")
        and len(by) == 1
        and next(iter(by)).rpartition(".")[0] == name.rpartition(".")[0]
        and not next(iter(by)).endswith(".__init__")
    }
    falls(slices, 14, "modules with a single importer beside them")


def test_class_names_mean_one_thing():
    named = Counter(node.name for name, node in classes() if name.startswith("engine."))
    falls({name for name, n in named.items() if n > 1}, 10, "class names defined twice")


def test_chains_of_own_classes_are_short():
    own = {node.name: [ast.unparse(base) for base in node.bases] for _, node in classes()}

    def depth(name: str) -> int:
        bases = own.get(name.partition("[")[0], [])
        return 1 + max((depth(b) for b in bases if b.partition("[")[0] in own), default=0)

    long = {
        f"{name} {depth(name)}"
        for n, c in classes()
        if n.startswith("engine.") and depth(name := c.name) > 3
    }
    falls(long, 0, "classes with more than three of their own in a chain")


def _hands_on(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Say if a function only calls one other with what it was given."""
    body = [
        one
        for one in node.body
        if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))
    ]
    if len(body) != 1 or node.decorator_list or not isinstance(body[0], ast.Return | ast.Expr):
        return False
    call = body[0].value
    call = call.value if isinstance(call, ast.Await) else call
    if not isinstance(call, ast.Call):
        return False
    mine = {arg.arg for arg in (*node.args.args, *node.args.kwonlyargs)} - {"self", "cls"}
    given = [*call.args, *(word.value for word in call.keywords)]
    names = {one.id for one in given if isinstance(one, ast.Name)}
    return bool(mine) and names == mine and len(given) == len(mine)


def test_nothing_only_hands_on():
    found = [
        f"{name}.{node.name}"
        for name, node in functions()
        if name.startswith("engine.") and _hands_on(node)
    ]
    falls(found, 19, "functions that only hand on what they were given")


def test_the_core_knows_its_types():
    found = [
        f"{name}:{node.lineno}"
        for name, tree in modules().items()
        if name.startswith("engine.core.")
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and node.id == "Any"
    ]
    falls(found, 0, "uses of Any in the core")


def test_the_port_stays_narrow():
    port = next(node for name, node in classes() if node.name == "EnginePort")
    methods = [
        one.name for one in port.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    falls(methods, 3, "methods of the port")


def relative(tree: ast.Module) -> list[str]:
    """Return the first lines of docstrings that begin with a relative clause."""
    return [
        text.splitlines()[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(text := node.value.value, str)
        and next(iter(text.split()), "").rstrip(",.:;") in RELATIVE_WORDS
    ]


class Prose(NamedTuple):
    """The docstrings of a file, and the first lines of those with a relative clause."""

    relative: list[str]
    docstrings: list[str]


@cache
def prose() -> dict[str, Prose]:
    """Return the prose of every file of Python that people read; all their trees are too large."""
    found: dict[str, Prose] = {}
    for room in ("engine", "tui", "tests"):
        for path in (ROOT / room).rglob("*.py"):
            tree = ast.parse(path.read_text())
            name = path.relative_to(ROOT).as_posix()
            found[name] = Prose(relative(tree), list(_docstrings(tree)))
    return found


def test_docstrings_say_what_is_done():
    """A docstring begins with an imperative or a noun, not with a relative clause."""
    found = [f"{name}: {line}" for name, of in prose().items() for line in of.relative]
    falls(found, 0, "docstrings that begin with a relative clause")


def test_a_relative_clause_is_noticed():
    tree = ast.parse('x = 1\n"""What it holds."""\ndef f():\n    """Return it, whatever."""\n')
    assert relative(tree) == ["What it holds."]


def test_docstrings_are_in_plain_english():
    """No sentence of a docstring is longer than one of a page, or has a word that style bans."""
    found = [
        f"{name}: {slip}"
        for name, of in prose().items()
        for slip in slips("\n\n".join(map(_prose, of.docstrings)))
    ]
    falls(found, 0, "sentences of docstrings that style rules out")


def _docstrings(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""


def _prose(docstring: str) -> str:
    """Leave the rows of tables and the names of attributes out."""
    rows = [line for line in docstring.splitlines() if not _ROW.search(line)]
    return _NAME.sub("", "\n".join(rows))


def test_a_table_in_a_docstring_is_no_sentence():
    table = "    collect(repo)   told what it came to\n    ├ OutOfRoom\n    told: The time.\n"
    assert slips(_prose(table)) == []
    assert slips(_prose("    The engine is told.\n")) != []


def test_rooms_are_rooms():
    rooms: dict[str, list[Path]] = defaultdict(list)
    for path in (ROOT / "engine").rglob("*.py"):
        rooms[path.parent.relative_to(ROOT).as_posix()].append(path)
    for room, paths in rooms.items():
        lines = sum(len(path.read_text().splitlines()) for path in paths)
        if room not in LARGE_ROOMS:
            assert len(paths) <= MOST_ROOM_FILES, f"{room} has {len(paths)} files"
            assert lines <= MOST_ROOM_LINES, f"{room} has {lines} lines"
