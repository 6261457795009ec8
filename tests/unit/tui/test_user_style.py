"""The user's own sheets and themes: over ours, checked, and read again when they change."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.support.consoles import Console, opened
from tests.support.world import NOW, csvlite
from tui.app import Options
from tui.theming import Theme, load_all

pytestmark = pytest.mark.anyio

THEME = 'name = "mine"\nbase = "loom"\n[roles]\naccent = "{accent}"\n'


def _options(folder: Path) -> Options:
    return Options(clock=lambda: NOW, is_plain=False, has_truecolor=True, config=folder)


def _height_of_keys(console: Console) -> int:
    return console.screen.query_one("#keys").size.height


async def test_a_sheet_of_the_user_wins_over_ours(tmp_path: Path):
    (tmp_path / "mine.tcss").write_text("#keys { height: 2; }\n")
    async with opened(csvlite(), options=_options(tmp_path)) as console:
        await console.until(lambda: _height_of_keys(console) == 2)


async def test_without_a_sheet_the_bars_are_ours(tmp_path: Path):
    async with opened(csvlite(), options=_options(tmp_path)) as console:
        assert _height_of_keys(console) == 1


async def test_a_sheet_is_read_again_when_it_changes_and_gone_when_it_goes(tmp_path: Path):
    async with opened(csvlite(), options=_options(tmp_path)) as console:
        (tmp_path / "mine.tcss").write_text("#keys { height: 3; }\n")
        await console.until(lambda: _height_of_keys(console) == 3)
        (tmp_path / "mine.tcss").write_text("#keys { height: 2; }\n")
        await console.until(lambda: _height_of_keys(console) == 2)
        (tmp_path / "mine.tcss").unlink()
        await console.until(lambda: _height_of_keys(console) == 1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("#keys { height: 2; }\n\n#keys { heigth: 2; }\n", "bad.tcss:3: "),
        ("#keys { height: two; }\n", "bad.tcss:1: "),
        ("#keys { color: $role-nothing; }\n", "bad.tcss:1: "),
        ("#keys {\n", "bad.tcss:"),
        ("\x00\xff", "bad.tcss:1: "),
    ],
)
async def test_a_wrong_sheet_is_named_with_its_line_and_changes_nothing(
    text: str, said: str, tmp_path: Path
):
    (tmp_path / "bad.tcss").write_text(text, "latin-1")
    (tmp_path / "good.tcss").write_text("#keys { height: 2; }\n")
    async with opened(csvlite(), options=_options(tmp_path)) as console:
        assert any(said in problem for problem in console.app.problems), console.app.problems
        await console.shows("your settings refused: bad.tcss:")
        assert _height_of_keys(console) == 2


async def test_a_theme_file_is_read_again_while_it_is_worn(tmp_path: Path):
    (tmp_path / "themes").mkdir()
    theme = tmp_path / "themes" / "mine.toml"
    theme.write_text(THEME.format(accent="#57cfc0"))
    async with opened(csvlite(), options=_options(tmp_path), theme="mine") as console:
        assert console.app.palette.theme.roles["accent"] == "#57cfc0"
        theme.write_text(THEME.format(accent="#ffcf80"))
        await console.until(lambda: console.app.palette.theme.roles["accent"] == "#ffcf80")
        theme.write_text(THEME.format(accent="yellow"))
        await console.shows("your settings refused: mine.toml: accent")
        assert console.app.palette.theme.roles["accent"] == "#ffcf80"


async def test_a_theme_that_changes_while_it_is_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "themes").mkdir()
    theme = tmp_path / "themes" / "mine.toml"
    theme.write_text(THEME.format(accent="#57cfc0"))
    saved = iter(["#5fcf80", "#6fcf80"])

    def read_and_saved(folder: Path) -> tuple[Mapping[str, Theme], Sequence[object]]:
        found = load_all(folder)
        if accent := next(saved, ""):
            theme.write_text(THEME.format(accent=accent))
        return found

    monkeypatch.setattr("tui.app.load_all", read_and_saved)
    async with opened(csvlite(), options=_options(tmp_path), theme="mine") as console:
        await console.until(lambda: console.app.palette.theme.roles["accent"] == "#6fcf80")
