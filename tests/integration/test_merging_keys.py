"""Count the keys that realistic conflicts take, from the first screen to merged files."""

from collections.abc import Callable
from pathlib import Path

import pytest

from engine.api import OwnMerge, ReviewPort
from tests.support.consoles import Console, opened
from tests.support.key_cases import CASES, Case
from tests.support.repositories import RepositoryBuilder
from tui.app import Options
from tui.keys import default_keymap
from tui.screens.review.screen import ReviewScreen

pytestmark = pytest.mark.anyio
DOCS = Path(__file__).parents[2] / "docs" / "merging.md"
BY_PATH = {path: case for case in CASES for path in (case.path, case.renamed) if path}


class Reachable(ReviewPort):
    """A port as the console's driver knows it."""

    is_gone = False


@pytest.fixture
def built(tmp_path: Path) -> RepositoryBuilder:
    """A merge that git left with all the conflicts."""
    made = RepositoryBuilder(tmp_path / "project")
    _commit(made, lambda case: case.base, "start")
    made.git("checkout", "-q", "-b", "side")
    _commit(made, lambda case: case.incoming, "their work")
    made.git("checkout", "-q", "main")
    for case in CASES:
        if case.renamed:
            made.git("mv", case.path, case.renamed)
    _commit(made, lambda case: case.target, "my work", is_renamed=True)
    assert made.try_git("merge", "side").returncode == 1
    return made


def _commit(
    made: RepositoryBuilder,
    text_of: Callable[[Case], str | None],
    message: str,
    *,
    is_renamed: bool = False,
) -> None:
    texts = {(is_renamed and case.renamed) or case.path: text_of(case) for case in CASES}
    for path, text in texts.items():
        if text is None:
            made.git("rm", "-q", "--ignore-unmatch", path)
    made.commit({path: text for path, text in texts.items() if text is not None}, message)


async def test_common_conflicts_take_one_key_each_and_the_next_comes_by_itself(
    built: RepositoryBuilder, monkeypatch: pytest.MonkeyPatch
):
    merge = await OwnMerge.begin(built.path, built.environment)
    options = Options(begins_on="review", is_alone=True, is_plain=False)
    async with opened(port=Reachable(merge), options=options) as console:  # type: ignore[arg-type]
        screen = console.screen
        assert isinstance(screen, ReviewScreen)
        await console.until(lambda: screen.pane.shown is not None)
        assert {file.path for file in screen.pane.shown.files} <= BY_PATH.keys()  # type: ignore[union-attr]
        assert screen.pane.open_count == len(CASES)
        for left in range(len(CASES) - 1, -1, -1):
            await _decide(console, screen, monkeypatch)
            assert screen.pane.open_count == left
            assert left == 0 or screen.pane.matter.is_open  # type: ignore[union-attr]
        await console.shows("L writes it to your files")
        await console.do("land")
    for case in CASES:
        file = built.path / (case.renamed or case.path)
        assert (file.read_text() if file.exists() else None) == case.wanted, case.what


async def _decide(console: Console, screen: ReviewScreen, patch: pytest.MonkeyPatch) -> None:
    """Press the keys of the conflict that is on screen, and no others."""
    case = BY_PATH[screen.pane.raw_path]

    async def edited(*_: object, **__: object) -> tuple[str, str]:
        return case.wanted or "", ""

    patch.setattr("tui.screens.review.texts.edit_text", edited)
    await console.do(*case.keys)


def test_the_manual_has_the_count():
    keymap = default_keymap()
    rows = ["| conflict | keys |", "|---|---|"]
    for case in CASES:
        keys = [f"`{keymap.shown(f'review.{idea}')}`" for idea in case.keys]
        then = ", then in your editor" if "edit_all" in case.keys else ""
        rows.append(f"| {case.what} | {' '.join(keys)}{then} |")
    assert "\n".join(rows) in DOCS.read_text("utf-8"), "\n".join(rows)
