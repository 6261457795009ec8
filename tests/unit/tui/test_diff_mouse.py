"""A diff under the mouse: what is seen can be clicked, scrolled, selected and copied."""

import re
from dataclasses import replace

import pytest

from engine.messages.diffs import ChangeDiff, DiffLine, FileDiff, Hunk, Sign
from tests.support.console_diffs import diff_of_reader
from tests.support.consoles import Console, opened
from tests.support.mouse import at, click, wheel
from tests.support.world import NOW, FakePort, changed, csvlite
from tui.app import Options
from tui.words.figures import MINUS

pytestmark = [pytest.mark.anyio, pytest.mark.long]
RUNNING = "implement/worker_1"
WIDE = (160, 40)


def _port(diff: ChangeDiff | None = None) -> FakePort:
    return FakePort(csvlite(), diffs={RUNNING: diff or diff_of_reader()})


def _long() -> ChangeDiff:
    lines = tuple(DiffLine(Sign.ADDED, f"line {n} " + "x" * 90, None, n) for n in range(20_000))
    hunks = tuple(Hunk(where=f"f{at}()", lines=lines[at : at + 40]) for at in range(0, 20_000, 40))
    return ChangeDiff(against="main", files=(FileDiff(path="src/long.py", hunks=hunks),))


async def _opened(console: Console, shown: str = "_parse_quoted()") -> Console:
    console.app.session.worker = RUNNING
    await console.do("diff")
    return await console.shows(shown)


def _first_line(console: Console) -> int:
    """The number of the first line of code on screen."""
    found = re.search(r"line (\d+)", console.text)
    assert found
    return int(found[1])


async def _drag(console: Console, begin: tuple[int, int], end: tuple[int, int]) -> None:
    await console.pilot.mouse_down(offset=begin)
    await console.pilot.hover(offset=end)
    await console.pilot.mouse_up(offset=end)
    await console.pilot.pause()


async def _copied(console: Console) -> str:
    await console.do("copy")
    return console.app.clipboard


async def test_a_click_on_a_file_goes_to_it_and_one_on_a_line_to_that():
    async with opened(port=_port()) as console:
        await _opened(console)
        await click(console, "io.py ≈")
        await console.shows("▌M io.py")
        await click(console, "self._undouble")
        await console.shows("▌M reader.py", "+         field = self._undouble")


def _of_lines(count: int) -> ChangeDiff:
    lines = tuple(DiffLine(Sign.ADDED, f"line {n}", None, n) for n in range(count))
    file = FileDiff(path="src/new.py", hunks=(Hunk(where="f()", lines=lines),))
    return ChangeDiff(against="main", files=(file,) if lines else ())


@pytest.mark.parametrize(("count", "shown"), [(0, "Nothing differs"), (5, "f()"), (100, "f()")])
async def test_a_scrollbar_stands_only_where_there_is_something_to_scroll(count: int, shown: str):
    async with opened(port=_port(_of_lines(count)), size=WIDE) as console:
        await _opened(console, shown)
        bar = "".join(line.ljust(WIDE[0])[-2] for line in console.text.split("\n")[3:-3])
        assert bool(bar.strip()) is (count == 100), console.text


async def test_two_clicks_fold_a_hunk_and_two_more_unfold_it():
    async with opened(port=_port()) as console:
        await _opened(console)
        await console.do("mark")
        assert "import re" not in console.text
        head = at(console, "✓ seen  imports")
        await console.pilot.click(offset=head, times=2)
        await console.shows("+ import re")
        await console.pilot.click(offset=head, times=2)
        assert "import re" not in console.text
        assert console.screen.get_selected_text() is None


async def test_the_wheel_scrolls_and_the_next_key_goes_on_from_there():
    async with opened(port=_port(_long())) as console:
        await _opened(console, "huge, folded")
        await console.do("open")
        await console.shows("f0()")
        await wheel(console, 30, x=80, y=20)
        first = _first_line(console)
        assert first > 20
        await console.do("up")
        assert _first_line(console) == first - 1


async def test_the_scrollbar_is_dragged_to_the_end_of_a_long_diff():
    async with opened(port=_port(_long())) as console:
        await _opened(console, "huge, folded")
        await console.do("open")
        await console.shows("f0()")
        grab = at(console, "█")
        await _drag(console, grab, (grab[0], 35))
        await console.shows("line 19999")


async def test_selected_code_is_copied_without_numbers_and_signs():
    async with opened(port=_port()) as console:
        await _opened(console)
        x, y = at(console, "import io")
        await _drag(console, (x, y), (x + len("import re"), y + 1))
        assert await _copied(console) == "import io\nimport re"
        await console.press("escape")
        assert await _copied(console) != "import io\nimport re"


async def test_a_line_that_goes_on_in_the_next_row_is_copied_as_one():
    async with opened(port=_port(_long()), size=(80, 24)) as console:
        await _opened(console, "huge, folded")
        await console.do("open")
        x, y = at(console, "line 3 ")
        await _drag(console, (x, y), (x + len("line 4"), y + 2))
        assert await _copied(console) == "line 3 " + "x" * 90 + "\nline 4"


async def test_a_line_that_is_cut_on_screen_is_copied_whole():
    async with opened(port=_port(_long()), size=(80, 24)) as console:
        await _opened(console, "huge, folded")
        await console.do("open", "show_long")
        await console.shows("long lines are cut")
        x, y = at(console, "line 3 ")
        await _drag(console, (x, y), (x + len("line 4"), y + 1))
        assert await _copied(console) == "line 3 " + "x" * 90 + "\nline 4"


async def test_one_side_is_copied_where_both_stand_beside_each_other():
    async with opened(port=_port(), size=WIDE) as console:
        await _opened(console)
        old = at(console, f"{MINUS}         end = line.find")
        await _drag(console, (old[0] + 2, old[1]), (old[0] + 30, old[1] + 2))
        copied = await _copied(console)
        assert copied.startswith("        end = line.find(self.quote, start + 1)\n")
        assert "_closing_quote" not in copied
        await console.press("escape")
        new = at(console, "+         end = self._closing")
        await _drag(console, (new[0] + 2, new[1]), (new[0] + 30, new[1] + 2))
        assert "line.find" not in await _copied(console)


async def test_a_selection_stays_while_the_worker_goes_on():
    port = _port()
    async with opened(port=port) as console:
        await _opened(console)
        x, y = at(console, "import io")
        await _drag(console, (x, y), (x + len("import io"), y))
        view = changed(port.shown, RUNNING, tool="pytest -q")
        await console.tell(replace(view, at=view.at + 1))
        assert await _copied(console) == "import io"


async def test_every_sign_of_the_panes_is_ascii_where_only_that_is_shown():
    async with opened(port=_port(), options=Options(clock=lambda: NOW, is_ascii=True)) as console:
        console.app.session.worker = RUNNING
        await console.do("diff")
        await console.shows("_parse_quoted()")
        assert console.text.isascii()
        assert console.text.split("\n")[4].endswith(("#", "|"))
