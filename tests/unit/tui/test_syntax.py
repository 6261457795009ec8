"""Code in colors: by a grammar where one is installed, by a lexer else, and plain at last."""

import subprocess  # noqa: TID251  what ends a process must be watched from another one
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.needs import need
from tui.ink import Role
from tui.kit import grammars, syntax
from tui.kit.grammars import colored
from tui.kit.syntax import Pieces, inked_change, inked_lines

_ROOT = Path(__file__).parents[3]
CODE = ("def f():", '    """Of two', '    lines."""', "    return g(1)  # why")


@pytest.fixture(params=["grammar", "lexer"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Either way to color."""
    for cached in (inked_lines, inked_change):
        cached.cache_clear()
    if request.param == "lexer":
        monkeypatch.setattr(syntax, "colored", lambda *_: None)
    else:
        need("grammars")
    yield request.param
    for cached in (inked_lines, inked_change):
        cached.cache_clear()


def roles(pieces: Pieces) -> list[dict[str, Role]]:
    return [{text.strip(): role for text, role in line} for line in pieces]


def test_code_has_roles_and_loses_no_character(way: str):
    pieces = inked_lines("a.py", CODE)
    assert tuple("".join(text for text, _ in line) for line in pieces) == CODE
    head, docs, more, end = roles(pieces)
    assert (head["def"], head["f"]) == (Role.KEYWORD, Role.DEFINITION)
    assert (docs, more) == ({'"""Of two': Role.COMMENT}, {'lines."""': Role.COMMENT})
    assert (end["return"], end["1"], end["# why"]) == (Role.KEYWORD, Role.NUMBER, Role.COMMENT)


def test_what_was_taken_away_colors_nothing_that_is_there(way: str):
    lines = ("x = '''", "x = 1", "y = None", "'''")
    gone, new, kept, end = roles(inked_change("a.py", ("-", "+", " ", "-"), lines))
    assert Role.STRING in gone.values()
    assert new["1"] is Role.NUMBER
    assert kept["None"] is Role.KEYWORD
    assert end["'''"] is Role.STRING


@pytest.mark.parametrize("line", ["x = 'é'  # ü", "", "\t", "a\udce9b = 1", "def f(", "}" * 30])
def test_any_line_comes_back_whole(way: str, line: str):
    (pieces,) = inked_lines("a.py", (line,))
    assert "".join(text for text, _ in pieces) == line


def test_an_unknown_language_and_a_very_long_line_are_plain(way: str):
    assert inked_lines("a.unknown-kind", ("def f():",)) == ((("def f():", Role.TEXT),),)
    long = "def f(): " + "x" * 500
    assert inked_lines("a.py", (long,)) == (((long, Role.TEXT),),)


@pytest.mark.parametrize(
    ("name", "line", "role"),
    [
        ("a.ts", "export function run(n: number) {", "run"),
        ("a.go", "func (s *S) run(n int) error {", "run"),
        ("a.rs", "pub fn run() {}", "run"),
        ("a.java", "class run extends B {}", "run"),
        ("a.c", "int run(char *s) { return 1; }", "run"),
        ("a.js", "function run() {}", "run"),
    ],
)
def test_a_grammar_knows_what_is_defined(name: str, line: str, role: str):
    need("grammars")
    assert grammars.colored(name, line) is not None
    (pieces,) = roles(inked_lines(name, (line,)))
    assert pieces[role] is Role.DEFINITION


@pytest.mark.parametrize("name", ["a.sh", "a.json", "a.toml", "a.yaml"])
def test_the_extra_brings_a_grammar_for(name: str):
    need("grammars")
    assert grammars.colored(name, "") == [[]]


@pytest.mark.parametrize(
    "text",
    [
        "- " * 1000 + "a",
        "? " * 1000 + "a",
        ": - " * 1000 + "a",
        "".join(f"{' ' * n}a:\n" for n in range(400)),
        "".join(f"{' ' * n}-\r" for n in range(400)),
    ],
)
def test_a_file_that_nests_deep_does_not_end_the_process(text: str):
    """A grammar of YAML writes past its buffer: another process looks if ours would end."""
    program = "import sys; from tui.kit.grammars import *; p, t = sys.argv[1:]; "
    asks = "parsed(p, t.encode()); colored(p, t)"
    run = [sys.executable, "-c", program + asks, "a.yaml", text]
    assert subprocess.run(run, cwd=_ROOT, check=False).returncode == 0


def test_a_file_that_nests_as_people_write_it_is_colored():
    need("grammars")
    assert colored("a.yaml", "- " * 40 + "a: 1\n") is not None
