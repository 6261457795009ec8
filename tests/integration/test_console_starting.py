"""Runs are started from the console: by keys, on a real engine, with the values of `plait run`."""

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread
from textual.widgets import Input

from engine.api import Engine, plan_for_prompts
from engine.messages.questions import ListRuns
from engine.phases import Phase
from tests.support.consoles import Console, Reachable, opened
from tests.support.engine_runs import Place
from tests.support.repositories import RepositoryBuilder
from tui.app import Options
from tui.kit.composer import Composer
from tui.kit.starting import Starter

pytestmark = [pytest.mark.anyio, pytest.mark.long]
MANIFEST = """
runtime: {max_concurrent_workers: 4}
agents:
  quick:
    adapter: scripted
    script: {steps: [{write: {path: new.txt, text: "{prompt}"}}, {result: done}]}
  other:
    adapter: scripted
    script: {steps: [{result: "nothing to do"}]}
pipelines:
  - {name: day, steps: [{name: dig, agent: other, prompt: dig, concurrency: 2}]}
  - {name: night, steps: [{name: nap, agent: other, prompt: sleep}]}
"""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    found = Place(tmp_path)
    RepositoryBuilder(found.project).commit({"a.txt": "one\n", "plait.yaml": MANIFEST})
    return found


@asynccontextmanager
async def console_on(
    place: Place, size: tuple[int, int] = (100, 32), **env: str
) -> AsyncIterator[tuple[Console, Engine]]:
    """A console on a real engine of the place, before its first run."""
    options = Options(
        is_plain=False,
        has_truecolor=True,
        folder=place.project,
        memory=place.tmp_path / "console.json",
    )
    async with place.engine() as engine:
        port: Any = Reachable(engine)
        async with opened(port=port, options=options, size=size) as console:
            if env:
                starter = Starter(place.project, {**place.environment, **env})
                console.app.session.starter = starter
            yield console, engine


def composer(console: Console) -> Composer:
    found = console.app.screen
    assert isinstance(found, Composer)
    return found


async def to_field(console: Console, name: str) -> None:
    """Go to a field of the form by the key that leads from field to field."""
    for _ in range(12):
        if console.app.focused and console.app.focused.id == name:
            return
        await console.press("tab")
    raise AssertionError(f"no field {name} in {console.text}")


async def starts(console: Console) -> None:
    """Press enter, and once more where this machine gives something to be weighed first."""

    def is_over() -> bool:
        return not isinstance(console.app.screen, Composer)

    await console.press("enter")
    await console.until(lambda: is_over() or "enter again starts it" in console.text)
    if not is_over():
        await console.press("enter")
        await console.until(is_over)


async def fill(console: Console, name: str, text: str) -> None:
    await to_field(console, name)
    line = console.app.focused
    assert isinstance(line, Input)
    line.value = ""
    await console.type(text)


async def test_a_path_behind_an_at_sign_is_completed_in_the_prompt(place: Place):
    for name in ("src/reader.py", "src/writer.py"):
        (place.project / name).parent.mkdir(exist_ok=True)
        (place.project / name).touch()
    async with console_on(place) as (console, _):
        await console.shows("✓ quick")
        await console.do("start")
        await console.shows("What should be done?")
        await console.press(*"mend @wri")
        await console.shows("tab src/writer.py")
        await console.press("tab", *"now")
        assert composer(console).prompt.text == "mend @src/writer.py now"
        await console.until(lambda: "tab src/" not in console.text)
        await console.press("tab")
        assert console.app.focused is not composer(console).prompt


async def test_a_prompt_is_started_from_the_empty_screen_and_its_run_is_seen(place: Place):
    async with console_on(place) as (console, engine):
        await console.shows("S ", "AGENTS", "✓ quick", "enforced")
        await console.do("start")
        await console.shows("What should be done?", "quick")
        await console.press(*"say hi")
        await fill(console, "candidates", "2")
        await console.shows("will run", "2 workers of quick", "you choose one", "each")
        await starts(console)
        await console.shows("say-hi/worker_1", "say-hi/worker_2", "REVIEW")
        run = (await engine.port.ask(ListRuns()))[0].id
        view = await engine.view(run)
        assert [worker.agent for worker in view.workers] == ["quick", "quick"]
        assert {worker.prompt for worker in view.workers} == {"say hi"}
        assert console.app.session.run_id == run


@pytest.mark.parametrize("key", ["S", "n", "N", "o", "enter"])
async def test_every_key_that_fingers_try_on_the_empty_screen_opens_the_form(
    place: Place, key: str
):
    async with console_on(place) as (console, _):
        await console.press(key)
        await console.shows("What should be done?")


async def test_values_are_those_of_the_command_line(place: Place):
    async with console_on(place) as (console, engine):
        await console.do("start")
        await console.shows("quick")
        await console.press(*"look")
        await to_field(console, "agent")
        await console.press("right")
        await console.shows("← other →")
        await fill(console, "check", "test -e a.txt")
        await fill(console, "minutes", "7")
        await to_field(console, "permissions")
        await console.press("right", "right")
        await console.shows("permissions ask", "time 7:00", "check: test -e a.txt")
        await starts(console)
        await console.shows("look/worker_1")
        view = await engine.view((await engine.port.ask(ListRuns()))[0].id)
        worker = view.workers[0]
        assert (worker.agent, worker.limits.time_seconds) == ("other", 420)
        assert view.steps[0].check == "test -e a.txt"


async def test_the_form_and_the_page_before_it_say_the_same_of_what_is_enforced(place: Place):
    async with console_on(place) as (console, _):
        await console.shows("THIS MACHINE", "not enforced network")
        await console.do("start")
        await console.shows("quick")
        await console.press("x")
        await console.shows("enforced", "not enforced network")  # it is open where nobody says more


async def test_a_check_that_nobody_named_is_said_to_be_none_where_one_can_be_typed(place: Place):
    async with console_on(place, (80, 24)) as (console, _):
        await console.do("start")
        await console.press("x")
        none = "nothing is checked, unless you type one"
        await console.shows(f"no check was found: {none}", "permissions auto; nothing is checked")
        await fill(console, "check", "true")
        await console.until(lambda: none not in console.text)
        await console.shows("; check: true")
        await to_field(console, "manifest")
        await fill(console, "check", "")
        await to_field(console, "manifest")
        await console.press("right")
        await console.shows("as in the manifest")


async def test_a_pipeline_of_a_manifest_is_started(place: Place):
    async with console_on(place) as (console, engine):
        await console.do("start")
        await console.shows("a prompt")
        await to_field(console, "manifest")
        await console.press("right")
        await console.shows("plait.yaml: day", "2 workers of other")
        assert not composer(console).prompt.display
        await console.press("right")
        await console.shows("plait.yaml: night", "1 worker of other")
        await starts(console)
        await console.shows("nap/worker_1")
        assert [run.name for run in await engine.port.ask(ListRuns())] == ["night"]


async def test_only_the_field_that_hears_the_arrows_shows_them(place: Place):
    async with console_on(place) as (console, _):
        await console.do("start")
        await console.shows("quick")
        await console.keys("tab", "tab")
        await console.shows("← quick →")
        assert console.text.count("←") == 1


async def test_what_is_wrong_is_said_and_nothing_is_started_or_lost(place: Place):
    async with console_on(place) as (console, engine):
        await console.do("start")
        await console.shows("quick")
        await console.press("enter")
        await console.shows("there is no prompt")
        await console.press(*"do it")
        await fill(console, "candidates", "many")
        await console.press("enter")
        await console.shows("✗ 'many' is not a number of candidates", "do it")
        await fill(console, "candidates", "1")
        await fill(console, "base", "no-such-branch")
        await console.press("enter")
        await console.shows("✗", "no-such-branch")
        assert isinstance(console.app.screen, Composer)
        assert not await engine.port.ask(ListRuns())


async def test_an_agent_that_is_not_installed_is_refused_with_its_install_line(place: Place):
    (place.project / "plait.yaml").unlink()
    (place.outside / "git").symlink_to(shutil.which("git") or "")
    empty = {"PATH": str(place.outside), "HOME": str(place.outside)}
    place.environment |= empty
    async with console_on(place, **empty) as (console, engine):
        await console.do("start")
        await console.shows("claude  ✗ not installed")
        await console.press(*"do it")
        await console.shows("✗ not here", "npm install -g @anthropic-ai/claude-code")
        await console.press("enter")
        await console.shows("is not installed: there is no program claude", "Install it: npm")
        assert not await engine.port.ask(ListRuns())


async def test_edits_that_no_worker_sees_are_told_before_the_start(place: Place):
    async with console_on(place) as (console, engine):
        (place.project / "a.txt").write_text("two\n")
        await console.do("start")
        await console.shows("quick")
        await console.press(*"go")
        await console.shows("⚠", "a.txt")
        await starts(console)
        await console.shows("go/worker_1")
        assert len(await engine.port.ask(ListRuns())) == 1


async def test_a_closed_form_keeps_what_was_written_also_beside_another_screen(place: Place):
    async with console_on(place) as (console, _):
        await console.do("go_runs")
        await console.do("start")
        await console.shows("quick")
        await console.press(*"first", "ctrl+j", *"second", "escape")
        await console.until(lambda: not isinstance(console.app.screen, Composer))
        await console.do("start")
        await console.shows("first", "second")


async def test_what_was_started_is_brought_back_by_up_also_in_another_console(place: Place):
    async with console_on(place) as (console, engine):
        for prompt in ("older", "newer"):
            await console.do("start")
            await console.shows("quick")
            await console.press(*prompt)
            await fill(console, "candidates", "2" if prompt == "older" else "1")
            await starts(console)
        runs = await engine.port.ask(ListRuns())
        assert len(runs) == 2
    async with console_on(place) as (console, _):
        await console.do("start")
        await console.shows("↑")
        for key, prompt, candidates in (
            ("up", "newer", "1"),
            ("up", "older", "2"),
            ("up", "older", "2"),
            ("down", "newer", "1"),
            ("down", "", "1"),
        ):
            await console.press(key)
            wanted = composer(console).wanted()
            assert (wanted.prompt, wanted.candidates) == (prompt, candidates)


async def test_a_run_that_the_command_line_started_can_be_started_again(place: Place):
    async with console_on(place) as (console, engine):
        make = partial(plan_for_prompts, ["by hand"], ["other:2"], folder=place.project)
        plan = await to_thread.run_sync(make)
        await engine.start(plan)
        await console.shows("by-hand/worker_2")
        await console.do("start")
        await console.press("up")
        wanted = composer(console).wanted()
        assert (wanted.prompt, wanted.agent, wanted.candidates) == ("by hand", "other", "2")


async def test_the_editor_writes_the_prompt(place: Place, monkeypatch: pytest.MonkeyPatch):
    editor = place.tmp_path / "editor"
    editor.write_text("#!/bin/sh\nprintf ' and more' >> \"$1\"\n")
    editor.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(editor))
    async with console_on(place) as (console, _):
        monkeypatch.setattr(type(console.app), "suspend", _no_suspend)
        await console.do("start")
        await console.shows("quick")
        await console.press(*"this", "ctrl+g")
        await console.until(lambda: composer(console).prompt.text == "this and more")


def _no_suspend(_: object) -> Any:
    """A console without a terminal has none to give away."""
    return nullcontext()


async def test_a_console_that_only_watches_starts_nothing(place: Place):
    options = Options(is_plain=False, folder=place.project)
    async with place.engine() as engine:
        port: Any = Reachable(engine)
        async with opened(port=port, options=options, read_only=True) as console:
            await console.do("start")
            assert "this console only watches" in console.message


async def test_a_console_without_a_folder_says_where_runs_are_started(place: Place):
    async with place.engine() as engine:
        port: Any = Reachable(engine)
        async with opened(port=port, options=Options(is_plain=False)) as console:
            await console.do("start")
            assert "cannot start runs" in console.message


async def test_a_step_joins_the_run_that_is_on_screen(place: Place):
    async with console_on(place, size=(120, 36)) as (console, engine):
        await console.do("start")
        await console.shows("quick")
        await console.press(*"first")
        await starts(console)
        await console.shows("first/worker_1", "REVIEW")
        run = (await engine.port.ask(ListRuns()))[0].id
        await console.do("add_step")
        await console.shows("Add a step", "independent of its steps")
        assert "permissions" not in console.text
        await console.press(*"first")
        await starts(console)
        await console.shows("first-2/worker_1")
        await console.do("add_step")
        await console.press(*"third")
        await to_field(console, "into")
        await console.press("right")
        await console.shows("first", "builds on it")
        await starts(console)
        view = await engine.view(run)
        steps = {step.name: step.dependencies for step in view.steps}
        assert steps == {"first": (), "first-2": (), "third": ("first",)}
        assert len(await engine.port.ask(ListRuns())) == 1


async def test_where_no_run_goes_on_no_step_joins(place: Place):
    async with console_on(place) as (console, _):
        await console.do("add_step")
        await console.shows("no run is active; S starts one")


async def test_a_manifest_that_lies_elsewhere_is_opened_by_its_path(place: Place):
    away = place.tmp_path / "away" / "plan.yaml"
    away.parent.mkdir()
    away.write_text(
        MANIFEST.replace("day", "elsewhere").replace("dig", "delve").rpartition("  - ")[0]
    )
    async with console_on(place, size=(140, 36)) as (console, engine):
        await console.do("start")
        await console.shows("quick")
        await console.press(*str(away.with_name("gone.yaml")))
        await console.shows("away/gone.yaml: No")
        composer(console).prompt.text = str(away)
        await console.shows("2 workers of other")
        await starts(console)
        view = await engine.view((await engine.port.ask(ListRuns()))[0].id)
        assert [step.name for step in view.steps] == ["delve"]


_GH = """#!/bin/sh
case "$1 $2" in
"issue list") echo '[{"number": 12, "title": "Quotes break"}, {"number": 7, "title": "Slow"}]';;
"issue view") [ "$3" = 12 ] || { echo "no issue $3" >&2; exit 1; }
  echo '{"title": "Quotes break", "body": "Mend the reader.", "url": "https://x.test/12"}';;
esac
"""


def _stand_in_for_gh(place: Place, monkeypatch: pytest.MonkeyPatch, script: str = _GH) -> None:
    """Put a program on the PATH that answers as GitHub's own does: that one needs its server."""
    program = place.tmp_path / "bin" / "gh"
    program.parent.mkdir()
    program.write_text(script)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")


async def test_an_issue_becomes_the_prompt(place: Place, monkeypatch: pytest.MonkeyPatch):
    _stand_in_for_gh(place, monkeypatch)
    async with console_on(place) as (console, _):
        await console.do("start")
        await console.shows("quick")
        await console.press("#")
        await console.shows("tab #12 Quotes break", "#7 Slow")
        await console.press("tab")
        wanted = "Quotes break (#12)\n\nMend the reader.\n\nhttps://x.test/12"
        await console.until(lambda: composer(console).prompt.text == wanted)
        composer(console).prompt.text = ""
        await console.press("#", "9", "9", "tab")
        await console.shows("gh: no issue 99")
        assert composer(console).prompt.text == "#99"


async def test_without_gh_an_issue_says_how_to_get_it(
    place: Place, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PATH", str(place.tmp_path / "none"))
    async with console_on(place) as (console, _):
        await console.do("start")
        await console.press("#", "1")
        await console.shows("gh is not installed. https://cli.github.com")


async def test_one_worker_that_lands_is_seen_through_from_the_form(place: Place):
    async with console_on(place) as (console, engine):
        await console.do("start")
        await console.shows("quick")
        await console.press(*"hello", "enter")
        await console.shows("REVIEW")
        await console.do("diff")
        await console.shows("hello")
        await console.do("yes")
        await console.do("land")
        await console.until(
            lambda: all(w.phase is Phase.LANDED for w in console.app.session.run.workers)  # type: ignore[union-attr]
        )
        assert (place.project / "new.txt").read_text() == "hello"
        del engine
