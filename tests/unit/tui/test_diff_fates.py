"""Diff says what became of functions only where it was checked: moved, renamed, reformatted."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from engine.messages.diffs import ChangeDiff, DiffLine, FileDiff, FileSides, Hunk, Sign
from engine.phases import Phase
from tests.support.consoles import opened
from tests.support.needs import need
from tests.support.world import FakePort, changed, csvlite
from tui.screens.diff.fates import REFORMATTED, Fate, Versions, fates_of, rows_of
from tui.screens.diff.units import Unit, can_take_apart, units_of

_RUNNING = "implement/worker_1"
_AREA = '''
def area(width, height):
    """Return it."""
    whole = width * height  # in cells
    return whole
'''
_OTHER = """
def other(value):
    for one in value:
        print(one)
    return value
"""


def _units(path: str, text: str) -> Sequence[Unit]:
    found = units_of(path, text.encode())
    assert found is not None
    return found


def _fates(*files: tuple[str, str, str]) -> list[tuple[str, str, int, str]]:
    """Return what is said of files, each a name with its text before and after."""
    versions = [Versions(path, "", _units(path, a), _units(path, b)) for path, a, b in files]
    return [
        (files[at][0], fate.name, fate.line, fate.said)
        for at, fates in sorted(fates_of(versions).items())
        for fate in fates
    ]


def test_a_function_that_is_only_set_in_another_way_is_reformatted_only():
    new = _AREA.replace("width * height", "(\n        width\n        * height\n    )")
    assert _fates(("a.py", _AREA, new)) == [("a.py", "area()", 2, "reformatted only")]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("width * height", "(width + height)"),
        ("# in cells", "# in lines"),
        ("  # in cells", ""),
        ("Return it", "Return this"),
        ("return whole", "return  whole\n    return None"),
        ("def area", "@cached\ndef area"),
    ],
)
def test_whatever_else_changed_is_no_reformatting(old: str, new: str):
    assert _fates(("a.py", _AREA, _AREA.replace(old, new))) == []


def test_a_function_that_went_to_another_file_says_so_in_both():
    found = _fates(("a.py", _OTHER + _AREA, _OTHER), ("b.py", "x = 1\n", "x = 1\n" + _AREA))
    assert found == [
        ("a.py", "area()", 7, "moved to b.py:3"),
        ("b.py", "area()", 3, "moved from a.py:7"),
    ]


def test_one_that_was_set_anew_on_the_way_says_that_too():
    new = _AREA.replace("width * height", "(width * height)")
    found = _fates(("a.py", _AREA, ""), ("b.py", "", new))
    assert ("b.py", "area()", 2, "moved from a.py:2, and reformatted") in found


def test_functions_that_changed_their_order_moved_the_fewest():
    third = _AREA.replace("area", "third")
    found = _fates(("a.py", _AREA + _OTHER + third, _OTHER + third + _AREA))
    assert found == [("a.py", "area()", 12, "moved from line 2")]


def test_a_method_that_became_a_function_moved():
    inside = "".join(f"    {line}\n" for line in _AREA.strip().split("\n"))
    found = _fates(
        ("a.py", f"class Box:\n    size = 1\n\n{inside}", f"class Box:\n    size = 1\n{_AREA}")
    )
    assert [one[1:] for one in found] == [
        ("area()", 4, "moved from line 4"),
    ]


def test_another_name_alone_is_a_renaming_also_of_what_calls_itself():
    old = _AREA.replace("return whole", "return area(whole, 1)")
    found = _fates(("a.py", old, old.replace("area", "surface")))
    assert ("a.py", "surface()", 2, "renamed, was area(), line 2") in found
    text = old.replace("area", "surface").replace("width * height", "width + height")
    assert _fates(("a.py", old, text)) == []


def test_a_class_that_was_renamed_is_told_once_and_not_its_methods():
    inside = "".join(f"    {line}\n" for line in (_AREA + _OTHER).strip().split("\n"))
    found = _fates(("a.py", f"class Box:\n{inside}", f"class Chest:\n{inside}"))
    assert [one[1:] for one in found] == [
        ("Chest", 1, "renamed, was Box, line 1"),
    ]


def test_many_rows_become_few():
    anew = [Fate(f"f{n}()", n, REFORMATTED) for n in range(4)]
    moved = [Fate(f"g{n}()", n, "moved from line 3") for n in range(20)]
    assert rows_of(anew[:3]) == [(f"f{n}()", f"line {n}  {REFORMATTED}") for n in range(3)]
    assert rows_of(anew) == [("4 functions", REFORMATTED)]
    rows = rows_of([*moved, *anew])
    assert len(rows) == 12
    assert rows[-1] == ("and 10 more", "")


def test_where_two_could_be_meant_nothing_is_said():
    copies = _AREA + _AREA.replace("area", "surface")
    third, fourth = (_AREA.replace("area", name) for name in ("third", "fourth"))
    assert _fates(("a.py", copies, third + fourth)) == []
    short = "def one():\n    return 1\n"
    assert _fates(("a.py", short, short.replace("one", "two"))) == []


@pytest.mark.parametrize(
    "text",
    [
        "def f(:\n",
        "\0",
        "def f():\n\tif x:\n        pass\n",
        "(" * 5000,
        "x = " + "-" * 99999 + "1",
    ],
)
def test_what_is_no_python_says_nothing(text: str):
    assert units_of("a.py", text.encode()) is None or not _units("a.py", text)


def test_bytes_that_are_no_text_and_very_large_files_are_left_alone():
    assert units_of("a.py", b"x = '\xe9'\ndef f():\n    pass\n") is None
    assert units_of("a.py", b"x = 1\n" * 300_000) is None


def test_an_overload_is_told_from_its_like():
    getter, setter = "@property\n    def x(self): ...", "@x.setter\n    def x(self, v): ..."
    text = f"class A:\n    {getter}\n    {setter}\n"
    names = [unit.path for unit in _units("a.py", text)]
    assert names == [("A",), ("A", "x"), ("A", "x#2")]
    assert {unit.called for unit in _units("a.py", text)} == {"A", "A.x()"}


_LANGUAGES = {
    "a.go": ("func Area(w int, h int) int {\n\tx := w * h\n\treturn x\n}\n", "Area"),
    "a.js": ("export function area(w, h) {\n  const x = w * h;\n  return x;\n}\n", "area"),
    "a.ts": (
        "class Box {\n  area(w: number): number {\n    const x = w;\n    return x;\n  }\n}\n",
        "area",
    ),
    "a.rs": (
        "impl Box {\n    fn area(&self) -> u32 {\n        let x = 1;\n        x\n    }\n}\n",
        "area",
    ),
    "a.java": ("class Box {\n  int area(int w) {\n    int x = w;\n    return x;\n  }\n}\n", "area"),
    "a.c": ("int area(int w)\n{\n  int x = w;\n  return x;\n}\n", "area"),
}


@pytest.mark.parametrize("path", _LANGUAGES)
def test_other_languages_by_their_grammars(path: str):
    need("grammars")
    text, name = _LANGUAGES[path]
    assert name in {unit.name for unit in _units(path, text)}
    spread = text.replace("x = ", "x  =  ").replace("x := ", "x  :=  ")
    assert [one[3] for one in _fates((path, text, spread))] == ["reformatted only"]
    other = text.replace("return x", "return x + 1").replace("        x\n", "        y\n")
    assert _fates((path, text, other)) == []
    said = [one[3] for one in _fates((path, text, text.replace(name, "surface")))]
    assert any(one.startswith("renamed, was") for one in said)


_FUNCTION = {
    "a.js": "function f() {\n  const x = 1;\n  return x;\n}",
    "a.c": "int f()\n{\n  int x = 1;\n  return x;\n}",
}


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("a.js", "{}", "steal(); {}"),
        ("a.js", "let a = 1; {}", "steal(); {}"),
        ("a.js", "{}", "{} evil();"),
        ("a.js", "{} good();", "{} evil();"),
        ("a.c", "{}", "int g = evil(); {}"),
    ],
)
def test_other_code_beside_a_function_is_no_reformatting_of_it(path: str, before: str, after: str):
    need("grammars")
    text = _FUNCTION[path]
    spread = text.replace("x = ", "x  =  ")
    assert _fates((path, before.format(text) + "\n", after.format(spread) + "\n")) == []
    same = (before.format(one) + "\n" for one in (text, spread))
    assert [one[3] for one in _fates((path, *same))] == [REFORMATTED]


@pytest.mark.parametrize(
    "text",
    [
        "# a" + "\r# b" * 14 + "\n{}",
        "# -*- coding: utf-7 -*-\n# +AAoACgAK-\n{}",
    ],
)
def test_a_function_of_python_stands_where_git_counts_it_or_nowhere(text: str):
    units = units_of("a.py", text.format(_AREA).encode())
    begins = text.partition("{}")[0].count("\n") + 1
    assert units is None or [unit.first for unit in units] == [begins + _AREA.startswith("\n")]


@pytest.mark.parametrize("comment", ["# noqa", "# type: ignore"])
def test_a_comment_that_went_to_another_line_is_no_reformatting(comment: str):
    one = f"def f():\n    x = 1  {comment}\n    return x\n"
    for other in (
        f"def f():\n    x = 1\n    return x  {comment}\n",
        f"def f():\n    x = 1\n    {comment}\n    return x\n",
    ):
        assert _fates(("a.py", one, other)) == []
    spread = f"def f():\n\n    x  =  1     {comment}\n    return (x)\n"
    assert [fate[3] for fate in _fates(("a.py", one, spread))] == [REFORMATTED]


def test_blanks_in_a_text_of_another_language_are_no_layout():
    need("grammars")
    one = "function f() {\n  return `a b` + 'c';\n}\n"
    assert _fates(("a.js", one, one.replace("a b", "a  b"))) == []
    assert _fates(("a.js", one, one.replace("'c'", "' c'"))) == []


def test_thousands_of_functions_are_compared_in_linear_time():
    """It took minutes with a search of lists."""
    texts = [
        "".join(f"def {name}{n}():\n    x = {n}\n    return x\n\n" for n in range(4000))
        for name in ("one", "two")
    ]
    assert len(_fates(("a.py", *texts))) == 4000
    many = texts[0] + texts[1]
    assert units_of("a.py", many.encode()) is None


def test_a_module_of_rust_is_looked_into():
    need("grammars")
    assert [unit.called for unit in _units("a.rs", "mod x {\n    fn f() {}\n}\n")] == ["f()"]


def test_without_a_grammar_nothing_is_taken_apart():
    assert can_take_apart("a.py")
    assert not can_take_apart("a.cobol")
    assert units_of("a.cobol", b"x") is None


def _hunk(old: str, new: str) -> Hunk:
    gone = [DiffLine(Sign.REMOVED, line, at, None) for at, line in enumerate(old.split("\n"), 1)]
    come = [DiffLine(Sign.ADDED, line, None, at) for at, line in enumerate(new.split("\n"), 1)]
    return Hunk(lines=(*gone[1:-1], *come[1:-1]))


@pytest.mark.anyio
async def test_diff_tells_it_and_white_space_folds_what_is_only_reformatted():
    new = _AREA.replace("width * height", "(width * height)")
    file = FileDiff(path="a.py", hunks=(_hunk(_AREA, new),))
    diff = ChangeDiff(against="main", files=(file,))
    sides = FileSides(path="a.py", old=_AREA.encode(), new=new.encode())
    port = FakePort(csvlite(), diffs={_RUNNING: diff}, sides_of={"a.py": sides})
    port.shown = changed(port.shown, _RUNNING, phase=Phase.REVIEWING)
    async with opened(port=port) as console:
        console.app.session.worker = _RUNNING
        await console.do("diff")
        await console.shows("area()  line 2  reformatted only", "(width * height)")
        await console.do("show_space")
        await console.until(lambda: "(width * height)" not in console.text)
        await console.do("show_space")
        await console.shows("(width * height)")
        other = replace(sides, new=new.replace("return whole", "return 0").encode())
        port.sides_of["a.py"] = other
        await console.do("diff")  # against the target: asked anew
        await console.until(lambda: "reformatted only" not in console.text)
