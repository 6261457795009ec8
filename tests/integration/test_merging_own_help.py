"""The user's own merges get the manifest's help: files made anew, formatters, an agent; no run."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
import yaml

from engine.api import Engine, own_help
from engine.errors import EngineError, MechanismMissing, WorkspaceError
from engine.messages import commands as c
from engine.messages.merging import ConflictView
from engine.messages.questions import ListRuns
from engine.review.alone.own import OwnMerge
from tests.support.engine_runs import Place, scripted
from tests.support.repositories import RepositoryBuilder

pytestmark = pytest.mark.anyio
SORTED = "sort -u deps > deps.lock"
UPPER = "tr a-z A-Z"
ANSWER = "WHY: the words of both\n<<<ANSWER\nboth words\nANSWER>>>"
LINES = "".join(f"line {n}\n" for n in range(1, 21))
START = {"deps": "b\n", "deps.lock": "b\n", "code": LINES}
MINE = {
    "deps": "b\nmine\n",
    "deps.lock": "b\nmine\n",
    "code": LINES.replace("line 9\n", "mine 9\n"),
}
THEIRS = {"deps": "b\nz\n", "deps.lock": "b\nz\n", "code": LINES.replace("line 9\n", "theirs 9\n")}
KINDS = {
    "merge": ("merge", "side"),
    "rebase": ("rebase", "side"),
    "cherry-pick": ("cherry-pick", "side"),
    "stash": ("stash", "pop"),
}


class Own(Place):
    """A repository of the user's with a manifest, and a merge of it that conflicts."""

    manifest_text = ""

    def __init__(self, tmp_path: Path) -> None:
        super().__init__(tmp_path)
        self.built = RepositoryBuilder(self.project)
        self.environment = {**self.environment, **self.built.environment}

    def says(self, review: object, **more: object) -> None:
        self.manifest_text = yaml.safe_dump({"review": review, **more})

    def begin(self, doing: str = "merge", *, tracks: bool = True) -> None:
        start = {**START, "plait.yaml": self.manifest_text} if tracks else START
        self.built.commit(start, "start")
        self.built.git("checkout", "-q", "-b", "side")
        self.built.commit(THEIRS, "their work")
        self.built.git("checkout", "-q", "main")
        if doing == "stash":
            for path, text in THEIRS.items():
                (self.project / path).write_text(text)
            self.built.git("stash")
        self.built.commit(MINE, "my work")
        assert self.built.try_git(*KINDS[doing]).returncode

    async def opened(self) -> OwnMerge:
        merge = await OwnMerge.begin(self.project, self.environment)
        if given := await own_help(self.project, self.environment):
            merge.take_help(given)
        return merge

    async def is_clean(self) -> bool:
        """Nothing that was made for help is left, and no run was begun."""
        state = anyio.Path(self.environment["PLAIT_STATE_HOME"])
        left = [one async for one in state.rglob("aside*")]
        left += [one async for one in anyio.Path(self.project, ".git/plait/runs").glob("*")]
        async with Engine.open(self.project, environment=self.environment) as engine:
            return not left and not await engine.port.ask(ListRuns())


@pytest.fixture
def own(tmp_path: Path) -> Own:
    return Own(tmp_path)


@pytest.mark.parametrize("doing", KINDS)
async def test_a_lock_file_is_made_anew_from_the_decided_rest(own: Own, doing: str):
    own.says({"regenerate": {"*.lock": SORTED}})
    own.begin(doing)
    merge = await own.opened()
    with pytest.raises(WorkspaceError, match="generated from other files: resolve"):
        await merge.resolve(c.Regenerate(path="deps.lock"))
    await merge.resolve(c.ChooseRest(choice="both", paths=("deps", "code")))
    assert (await merge.conflicts()).file("deps.lock").regenerate == SORTED
    view = await merge.resolve(c.Regenerate(path="deps.lock"))
    assert (view.is_resolved, view.file("deps.lock").made_by) == (True, SORTED)
    again = await own.opened()  # it is written down like any other decision
    view = await again.conflicts()
    assert view.is_resolved
    done = await again.resolve(c.FinishResolving())
    assert done.is_finished
    assert (own.project / "deps.lock").read_text() == "b\nmine\nz\n"
    assert await own.is_clean()


FOREIGN = yaml.safe_dump({"review": {"regenerate": {"*.lock": "touch foreign"}}})
SERIES = {
    "am": ("am", "-q", "-3", "../series"),
    "cherry-pick": ("cherry-pick", "main~1..theirs"),
    "rebase": ("rebase", "-q", "theirs"),
}


@pytest.mark.parametrize("doing", SERIES)
@pytest.mark.parametrize("own_rules", [{"regenerate": {"*.lock": SORTED}}, None])
async def test_a_series_of_foreign_patches_brings_no_command(
    own: Own, doing: str, own_rules: object
):
    """The first patch brings a manifest, and the second one conflicts."""
    git = own.built.git
    if own_rules:
        own.says(own_rules)
    own.built.commit({**START, "plait.yaml": own.manifest_text} if own_rules else START, "start")
    git("checkout", "-q", "-b", "theirs")
    own.built.commit({"plait.yaml": FOREIGN}, "a manifest")
    own.built.commit({"code": "theirs\n"}, "a conflict")
    git("checkout", "-q", "main")
    own.built.commit({"code": "mine\n"}, "my work")
    git("format-patch", "-q", "--output", "../series", "main~1..theirs")
    assert own.built.try_git(*SERIES[doing]).returncode

    given = await own_help(own.project, own.environment)

    assert "foreign" in (own.project / "plait.yaml").read_text()  # what stands in the folder
    rules = given.rules.regenerate if given else None
    # `git am` keeps no note of where it began that another command could not replace.
    assert (given is not None) is (own_rules is not None and doing != "am")
    assert "touch" not in str(rules)


@pytest.mark.needs("bubblewrap")
async def test_a_command_runs_in_the_sandbox_and_touches_nothing_of_the_users(own: Own):
    target = own.project / "touched"
    own.says({"regenerate": {"*.lock": f"touch {target} 2>&1; {SORTED}"}})
    own.begin()
    merge = await own.opened()
    await merge.resolve(c.ChooseRest(choice="both", paths=("deps", "code")))
    before = own.built.git("status", "--porcelain")
    await merge.resolve(c.Regenerate(path="deps.lock"))
    assert own.built.git("status", "--porcelain") == before
    assert not target.exists()


async def test_what_a_killed_engine_left_is_no_run_and_goes_with_the_next_help(own: Own):
    own.says({"regenerate": {"*.lock": SORTED}})
    own.begin()
    left = anyio.Path(own.project, ".git/plait/runs/aside-0a1b2c/.check/rooms")
    await left.mkdir(parents=True)
    async with Engine.open(own.project, environment=own.environment) as engine:
        assert not await engine.port.ask(ListRuns())
    merge = await own.opened()
    await merge.resolve(c.ChooseRest(choice="both", paths=("deps", "code")))
    await merge.resolve(c.Regenerate(path="deps.lock"))
    assert await own.is_clean()


async def test_no_command_runs_where_less_holds_than_the_manifest_requires(own: Own):
    own.says({"regenerate": {"*.lock": SORTED}}, runtime={"require": ["files"]})
    own.environment["PLAIT_SANDBOX"] = "none"
    own.begin()
    merge = await own.opened()
    await merge.resolve(c.ChooseRest(choice="both", paths=("deps", "code")))
    with pytest.raises(MechanismMissing, match="files"):
        await merge.resolve(c.Regenerate(path="deps.lock"))


async def test_a_command_that_fails_says_so_and_decides_nothing(own: Own):
    own.says({"regenerate": {"*.lock": "echo no luck; exit 3"}})
    own.begin()
    merge = await own.opened()
    await merge.resolve(c.ChooseRest(choice="both", paths=("deps", "code")))
    with pytest.raises(EngineError, match="exit code 3: no luck"):
        await merge.resolve(c.Regenerate(path="deps.lock"))
    assert not (await merge.conflicts()).file("deps.lock").is_resolved
    assert await own.is_clean()


@pytest.mark.parametrize("doing", ["merge", "rebase"])
async def test_what_a_merge_brings_in_names_no_command(own: Own, doing: str):
    own.says({"regenerate": {"*.lock": SORTED}})
    own.built.commit(START, "start")
    own.built.git("checkout", "-q", "-b", "side")
    own.built.commit({**THEIRS, "plait.yaml": own.manifest_text}, "their work")
    own.built.git("checkout", "-q", "main")
    own.built.commit(MINE, "my work")
    assert own.built.try_git(doing, "side").returncode
    assert (own.project / "plait.yaml").exists()
    assert await own_help(own.project, own.environment) is None
    merge = await own.opened()
    await merge.resolve(c.ChooseRest(choice="both", paths=("deps", "code")))
    with pytest.raises(WorkspaceError, match="nothing can be run for this merge"):
        await merge.resolve(c.Regenerate(path="deps.lock"))


async def test_a_manifest_that_git_does_not_know_counts(own: Own):
    own.says({"regenerate": {"*.lock": SORTED}})
    own.begin(tracks=False)
    (own.project / "plait.yaml").write_text(own.manifest_text)
    given = await own_help(own.project, own.environment)
    assert given is not None
    assert given.rules.command_for("deps.lock") == SORTED


async def _helped(merge: OwnMerge, found: Callable[[ConflictView], object]) -> ConflictView:
    """Return the view once help has made it so."""
    send, receive = anyio.create_memory_object_stream[ConflictView](100)
    with anyio.fail_after(60), send, receive:
        async with merge.helped(send.send_nowait):
            async for view in receive:
                if found(view):
                    return view
    raise AssertionError


async def test_the_formatter_proposes_ahead(own: Own):
    own.says({"format": {"code": UPPER}})
    both = {"code": LINES.upper()}
    own.built.commit({**START, "plait.yaml": own.manifest_text}, "start")
    own.built.git("checkout", "-q", "-b", "side")
    own.built.commit({"code": LINES.replace("line 9\n", "theirs 9\n")}, "their work")
    own.built.git("checkout", "-q", "main")
    own.built.commit(both, "reformatted")
    assert own.built.try_git("merge", "side").returncode
    merge = await own.opened()
    view = await _helped(merge, lambda view: view.file("code").hunks)
    texts = [one.text for hunk in view.file("code").hunks for one in hunk.proposals]
    assert any("THEIRS 9" in (text or "") for text in texts), texts


@pytest.mark.parametrize("is_ahead", [True, False])
async def test_an_agent_proposes_and_decides_nothing(own: Own, is_ahead: bool):  # noqa: FBT001 - a parameter of pytest's
    cost = {"usage": {"usd": 0.02, "input_tokens": 100, "output_tokens": 10}}
    helper = scripted(cost, {"result": ANSWER})
    own.says(
        {"assist": {"agent": "helper", "budget": {"requests": 1 if is_ahead else 9}}},
        agents={"helper": helper},
    )
    own.begin()
    merge = await own.opened()
    if is_ahead:
        view = await _helped(merge, lambda view: view.assist and view.assist.answers)
        assert (view.assist.requests, round(view.assist.usd, 4)) == (1, 0.02)
    else:
        hunk = (await merge.conflicts()).file("code").hunks[0]
        view = await merge.resolve(c.AskAgent(path="code", hunk=hunk.key))
    found = [
        (one.text, one.reason)
        for file in view.files
        for hunk in file.hunks
        for one in hunk.proposals
        if "helper" in one.reason
    ]
    assert found == [("both words\n", "proposed by helper: the words of both")]
    assert view.decisions == 0
    assert not view.is_resolved
    assert await own.is_clean()


def test_a_shell_makes_a_file_anew_in_ones_own_merge(own: Own):
    own.says({"regenerate": {"*.lock": SORTED}})
    own.begin()
    words = ("review", "--both", "deps", "code", "--regenerate", "--json")
    done = subprocess.run(
        [sys.executable, "-m", "tui.cli", *words],
        cwd=own.project,
        env={**own.environment, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["is_finished"]
    assert (own.project / "deps.lock").read_text() == "b\nmine\nz\n"
