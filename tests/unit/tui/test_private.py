"""Private parts of Textual stand in one module, and each is still needed."""

import ast
import inspect
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.segment import Segment
from textual import keys, strip
from textual import screen as screens
from textual.app import App
from textual.binding import Binding
from textual.css.stylesheet import Stylesheet
from textual.drivers import _writer_thread, linux_driver
from textual.message_pump import MessagePump
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input, OptionList, TextArea

from tests.support.consoles import opened
from tui.kit import private
from tui.theming import DEFAULT

TUI = Path(private.__file__).parents[1]
OURS = (App, Screen, Widget, TextArea, Input, OptionList)


def _textual_names() -> set[str]:
    named = {name for kind in OURS for name in dir(kind)}
    for kind in OURS:  # what is only set on instances
        source = inspect.getsource(inspect.getmodule(kind))
        named |= set(re.findall(r"self\.(_\w+)", source))
    return {name for name in named if name.startswith("_") and not name.startswith("__")}


KNOWN = _textual_names()


def _used(path: Path) -> Iterator[str]:
    """Yield every private name of Textual that a module uses or takes over."""
    tree, place = ast.parse(path.read_text()), path.relative_to(TUI)
    nodes = list(ast.walk(tree))
    imported = [n for n in nodes if isinstance(n, ast.ImportFrom) and n.module]
    textual = [n for n in imported if n.module.startswith("textual")]
    for node in textual:
        words = [node.module, *(name.name for name in node.names)]
        if any(part.startswith("_") for word in words for part in word.split(".")):
            yield f"{place}: import of {words}"
    if not textual:
        return
    methods = {
        method.name
        for node in nodes
        if isinstance(node, ast.ClassDef)
        for method in node.body
        if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    yield from (f"{place}: def {name}" for name in sorted(methods & KNOWN))
    for node in nodes:
        if isinstance(node, ast.Attribute) and node.attr in KNOWN - methods:
            yield f"{place}: {node.attr}"


def test_private_parts_of_textual_stand_in_one_module():
    others = [path for path in TUI.rglob("*.py") if path != Path(private.__file__)]
    assert [found for path in others for found in _used(path)] == []
    assert list(_used(Path(private.__file__))), "the search finds nothing"


REASONS = {
    "name_of_sign": lambda: hasattr(keys, "character_to_key"),
    "hand_to": lambda: hasattr(Widget, "forward_event") or hasattr(App, "forward_event"),
    "paint_now": lambda: hasattr(Screen, "paint") or hasattr(Screen, "update_now"),
    "take_for_styled": lambda: "_css_update_count = -1" not in inspect.getsource(screens),
    "is_leaving": lambda: hasattr(App, "is_leaving") or hasattr(App, "is_exiting"),
    "send_to_terminal": lambda: hasattr(App, "write_sequence"),
    "_parse_rules": lambda: (
        "_parse_cache.clear()" not in inspect.getsource(Stylesheet.set_variables)
        and "Stylesheet(variables" not in inspect.getsource(Stylesheet.reparse)
    ),
    "_begin_strip": lambda: "FIFOCache(4)" not in inspect.getsource(strip),
    "Enduring": lambda: (
        "break" not in inspect.getsource(MessagePump._process_messages_loop).split("_handle_")[1]
    ),
    "EnduringWriter": lambda: "OSError" in inspect.getsource(_writer_thread.WriterThread.run),
    "SturdyDriver": lambda: (
        'errors="replace"' in inspect.getsource(linux_driver)
        and "suspend" in inspect.getsource(linux_driver.LinuxDriver._sigcont_application)
    ),
}
"""For each part, what would make it needless; when one is true, the part can go."""


@pytest.mark.parametrize("name", REASONS)
def test_each_part_is_still_needed(name: str):
    assert hasattr(private, name)
    assert not REASONS[name](), f"Textual can do this itself now: take {name} away"


def test_textual_names_single_signs_but_not_those_of_a_sequence():
    assert next(iter(Binding.make_bindings([("?", "x")]))).key == "question_mark"
    assert next(iter(Binding.make_bindings([("g ?", "x")]))).key == "g ?"


@pytest.mark.anyio
async def test_a_console_parses_each_sheet_once_for_its_colors(monkeypatch: pytest.MonkeyPatch):
    parsed: Counter[tuple[object, ...]] = Counter()
    parse = private._PARSE

    def count(sheet: Stylesheet, css: str, **more: object) -> object:
        parsed[frozenset(sheet._variables.items()), css, *more.values()] += 1
        return parse(sheet, css, **more)

    private._RULES.clear()
    monkeypatch.setattr(private, "_PARSE", count)
    async with opened() as console:
        await console.do("go_inbox")
    assert parsed
    assert set(parsed.values()) == {1}
    begun = len(parsed)
    async with opened() as console:
        assert len(parsed) == begun
        console.app.theme = next(name for name in console.app.session.themes if name != DEFAULT)
        await console.until(lambda: len(parsed) > begun)


def test_a_strip_makes_each_of_its_caches_when_it_is_first_asked():
    assert set(Strip.__slots__) == private._STRIP, "Textual's strips hold something else now"
    private.Enduring()
    row = Strip([Segment("abc")], 3)
    assert Strip.__init__ is private._begin_strip
    halves = row.divide([1, 3])
    assert [half.text for half in halves] == ["a", "bc"]
    assert row.divide([1, 3]) is halves
    assert row.crop(0, 2) is row.crop(0, 2)
    with pytest.raises(AttributeError):
        _ = row.other
    for name, size in private._CACHES.items():
        assert getattr(Strip([]), name)._maxsize == size
        assert f"self.{name}" in inspect.getsource(strip)


@pytest.mark.anyio
async def test_a_screen_that_is_first_seen_restyles_no_other(monkeypatch: pytest.MonkeyPatch):
    async with opened() as console:
        monkeypatch.setattr(console.app, "refresh_css", lambda **_: pytest.fail("restyled"))
        await console.do("go_inbox")
        monkeypatch.undo()
        before = console.screen.styles.background
        console.app.theme = next(name for name in console.app.session.themes if name != DEFAULT)
        await console.until(lambda: console.screen.styles.background != before)


def _handlers_called_twice(source: str) -> Iterator[str]:
    """Yield each handler of a message that calls the one of its base."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name != "on_event":
            called = f"super().{node.name}("
            if node.name.startswith("on_") and called in ast.unparse(node):
                yield node.name


def test_a_handler_leaves_that_of_its_base_to_textual_which_calls_both():
    twice = "class A(B):\n    def on_mount(self):\n        super().on_mount()\n"
    assert list(_handlers_called_twice(twice)) == ["on_mount"]
    found = {
        path.name: names
        for path in TUI.rglob("*.py")
        if (names := list(_handlers_called_twice(path.read_text())))
    }
    assert found == {}
