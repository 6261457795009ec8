"""The pages about the house tell the truth: what they name is there, and the map is the house's."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.support.diagram import PAGE, ROOT, with_map

PAGES = [
    PAGE,
    *(ROOT / name for name in ("CONTRIBUTING.md", "README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
_NAMED = re.compile(
    r"`((?:engine|tui|themes|tests|docs|screenshots)/[\w./*-]+)(?:::(\w+(?:\.\w+)?))?`"
)
_LONGEST_WALK = 40
_MARKS = re.compile(r"^(?:<<<<<<<|>>>>>>>) .*$", re.MULTILINE)


@cache
def names_in(path: Path) -> set[str]:
    """Return what a module defines: at its top, and in its classes as `Class.name`."""
    found: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        found |= _names(node)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{name}" for inner in node.body for name in _names(inner)}
    return found


def _names(node: ast.stmt) -> set[str]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return {node.name}
        case ast.Assign():
            return {each.id for each in node.targets if isinstance(each, ast.Name)}
        case ast.AnnAssign(target=ast.Name(id=name)):
            return {name}
        case _:
            return set()


def untrue(text: str) -> list[str]:
    """Return every path and name of a text that is not there."""
    return [
        f"{path}::{name}" if name else path
        for path, name in _NAMED.findall(text)
        if not list(ROOT.glob(path.rstrip("/"))) or (name and name not in names_in(ROOT / path))
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_whatever_a_page_names_is_there(page: Path):
    assert untrue(page.read_text()) == []


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md"], ids=lambda page: page.name)
def test_no_page_holds_the_marks_of_a_conflict(page: Path):
    assert _MARKS.findall(page.read_text()) == []


def test_marks_of_a_conflict_are_noticed():
    assert _MARKS.findall("a\n<<<<<<< HEAD\nb\n=======\n") != []


def test_a_name_that_is_gone_is_noticed():
    gone = ["engine/supervisor", "engine/limits.py::Bounds", "engine/core/state.py::Worker.tries"]
    there = ["engine/limits.py::Limits.over", "themes/*.toml", "engine/git/", "tests/frozen"]
    assert untrue(" ".join(f"`{name}`" for name in gone + there)) == gone


def test_the_walks_are_short_enough_to_be_read():
    parts = PAGE.read_text().split("\n## ")
    walks = [part for part in parts if part.startswith(("A memory limit", "The key L"))]
    assert len(walks) == 2
    for walk in walks:
        assert len(walk.splitlines()) <= _LONGEST_WALK


def test_the_map_is_the_one_of_the_house():
    page = PAGE.read_text()
    assert page == with_map(page), "draw it anew: python -m tests.support.diagram"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Prove that no", "Hope that no"),
        ("| 17 | `engine/proof` |", "| 17 | `engine/proofs` |"),
        ("| 17 | `engine/proof` | 5 |", "| 17 | `engine/proof` | 50 |"),
    ],
)
def test_a_stale_map_is_noticed(old: str, new: str):
    stale = PAGE.read_text().replace(old, new)
    assert old in PAGE.read_text()
    assert with_map(stale) != stale


def test_a_room_that_grew_a_little_needs_no_new_map():
    grown = PAGE.read_text().replace("| `engine/proof` | 5 |", "| `engine/proof` | 6 |")
    assert grown != PAGE.read_text()
    assert with_map(grown) == grown
