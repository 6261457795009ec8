"""Agents that give their commits parents of others, through a whole engine."""

from pathlib import Path
from typing import Any

import pytest

from engine.api import Engine, LandingOrder, Run, Wanted, pull_request
from engine.messages import commands as c
from engine.messages import events as ev
from engine.messages.merging import PlanLandings
from engine.messages.results import UndoneLanding
from engine.phases import Phase
from engine.speaking import this_process
from tests.support.engine_runs import scripted, wait_worker
from tests.support.merging_runs import MergingPlace, changed, land, reviewed, writes

pytestmark = pytest.mark.anyio
WHO, NEXT = "s1/worker_1", "s2/worker_1"


@pytest.fixture
def place(tmp_path: Path) -> MergingPlace:
    """A project whose branch `main` has come further than the base of the runs."""
    place = MergingPlace(tmp_path)
    built = place.built
    built.git("checkout", "-q", "-b", "feature")
    built.commit({"feature": "to be merged later\n"}, "feature")
    built.git("checkout", "-q", "main")
    built.commit({"landed": "landed before\n", "code": changed(12, "landed")}, "landed before")
    return place


def joining(parent: str, name: str = "new") -> dict[str, Any]:
    """An agent that adds a file, and commits its own tree with somebody else's as a parent."""
    joined = f"git commit-tree HEAD^{{tree}} -p HEAD -p {parent} -m join"
    words = f"git add -A && git commit -qm work && git reset -q --soft $({joined})"
    return scripted(
        {"write": {"path": name, "text": "new\n"}},
        {"shell": {"command": words, "must": True}},
        {"result": "done"},
    )


async def landed(engine: Engine, run: Run, worker: str) -> ev.Landed:
    async for told in engine.events(run=run.id):
        if isinstance(told.event, ev.Landed) and told.event.worker == worker:
            return told.event
    raise AssertionError("it did not land")


@pytest.mark.parametrize("style", ["merge", "squash", "rebase"])
@pytest.mark.parametrize("parent", ["main", "feature"])
async def test_a_commit_with_a_foreign_parent_lands_as_it_was_shown(
    place: MergingPlace, parent: str, style: str
):
    steps = {"name": "s1", "agent": joining(parent)}
    plan = place.manifest(steps, isolation_strategy="worktree", base="main~1")
    async with place.engine(within_s=60) as engine:
        run = await reviewed(engine, plan)
        shown = await engine.diff(run.id, WHO)
        does = await engine.diff(run.id, WHO, against="target")
        assert [file.path for file in shown.files] == ["new"]
        assert does.files == shown.files
        seen = (await engine.view(run.id)).worker(WHO)
        assert seen.change is not None
        assert any("lands as one commit" in said for said in seen.change.set_aside)
        (planned,) = await engine.port.ask(PlanLandings(run.id, [WHO], LandingOrder.PLAN))
        assert not planned.paths
        assert await land(engine, run, WHO, style=style) is Phase.LANDED
        note = (await landed(engine, run, WHO)).note
    assert ("one commit" in note) == (style != "squash")
    assert place.text("landed") == "landed before\n"
    assert place.text("code") == changed(12, "landed")
    assert place.text("new") == "new\n"
    assert len(place.built.git("rev-list", "--parents", "-1", "main").split()) == 2
    place.built.git("merge", "-q", "--no-edit", "feature")
    assert place.text("feature") == "to be merged later\n"


async def test_a_pull_request_never_says_that_a_foreign_branch_is_merged(place: MergingPlace):
    there = place.built.path.parent / "there.git"
    place.built.git("init", "-q", "--bare", str(there))
    place.built.git("remote", "add", "origin", str(there))
    steps = [
        {"name": "s1", "agent": joining("feature")},
        {"name": "s2", "agent": writes({"code": changed(1, "one")})},
    ]
    plan = place.manifest(*steps, isolation_strategy="worktree", base="main~1")
    async with place.engine(within_s=60) as engine:
        run = await reviewed(engine, plan)
        view = await engine.view(run.id)
    for worker in view.workers:
        assert worker.change is not None
        assert worker.branch is not None
        wanted = Wanted(branch=worker.branch, since=worker.change.base or "")
        publishing = await pull_request(place.project, wanted, place.environment)
        assert bool(publishing.request.commit) == (worker.worker == WHO)
        await publishing.push()
        sent = place.built.git("ls-remote", "origin", f"refs/heads/{worker.branch}").split()[0]
        assert place.built.rev(f"{sent}^{{tree}}") == worker.change.tree
        assert place.built.git("rev-parse", f"{sent}^@").split() == [worker.change.base]


async def test_what_was_undone_by_its_opposite_lands_again_whole(place: MergingPlace):
    """Counted from history all of it was merged already: it landed again with nothing in it."""
    steps = [{"name": name, "agent": writes({name: "new\n"})} for name in ("s1", "s2")]
    plan = place.manifest(*steps, isolation_strategy="worktree")
    async with place.engine(within_s=60) as engine:
        run = await reviewed(engine, plan)
        for worker in (WHO, NEXT):
            assert await land(engine, run, worker) is Phase.LANDED
        await engine.command(c.UndoLanding(worker=WHO, run=run.id))
        back = await wait_worker(engine, run, WHO, lambda w: w.phase is Phase.REVIEWING)
        assert back.undone == UndoneLanding(target="main", by=this_process().user)
        names = place.built.git("ls-tree", "--name-only", "main").split()
        assert ("s1" in names, "s2" in names) == (False, True)
        assert await land(engine, run, WHO) is Phase.LANDED
        assert (await engine.view(run.id)).worker(WHO).undone is None
    names = place.built.git("ls-tree", "--name-only", "main").split()
    assert {"s1", "s2"} <= {*names}


async def test_who_builds_on_a_foreign_parent_brings_it_nowhere(place: MergingPlace):
    steps = [
        {"name": "s1", "agent": joining("feature")},
        {"name": "s2", "agent": joining("HEAD~1", "more"), "dependencies": ["s1"]},
    ]
    plan = place.manifest(*steps, isolation_strategy="worktree", base="main~1")
    async with place.engine(within_s=60) as engine:
        run = await reviewed(engine, plan)
        assert [file.path for file in (await engine.diff(run.id, NEXT)).files] == ["more"]
        assert await land(engine, run, WHO) is Phase.LANDED
        assert await land(engine, run, NEXT, to="fresh") is Phase.LANDED
    names = place.built.git("ls-tree", "--name-only", "fresh").split()
    assert {"new", "more"} <= {*names}
    assert "feature" not in names
    place.built.git("checkout", "-q", "fresh")
    place.built.git("merge", "-q", "--no-edit", "feature")
    assert place.text("feature", "fresh") == "to be merged later\n"


@pytest.mark.parametrize("style", ["merge", "rebase"])
async def test_a_reviewer_is_told_before_that_a_users_commits_are_not_taken_along(
    place: MergingPlace, style: str
):
    """A straight line that goes on from a branch of the user's: a merge lands it as one commit."""
    words = "git reset -q --hard feature && git rm -q feature && echo n > n && git add -A"
    agent = scripted(
        {"shell": {"command": f"{words} && git commit -qm work", "must": True}}, {"result": "done"}
    )
    steps = {"name": "s1", "agent": agent}
    plan = place.manifest(
        steps, isolation_strategy="worktree", base="main~1", land={"style": style}
    )
    async with place.engine(within_s=60) as engine:
        run = await reviewed(engine, plan)
        seen = (await engine.view(run.id)).worker(WHO)
        assert seen.change is not None
        told = [
            said for said in seen.change.set_aside if "commits of other branches or tags" in said
        ]
        assert await land(engine, run, WHO) is Phase.LANDED
        note = (await landed(engine, run, WHO)).note
    assert bool(told) == (style == "merge") == ("one commit" in note)


@pytest.mark.parametrize("style", ["merge", "rebase", "squash"])
@pytest.mark.parametrize(
    ("said", "code", "is_kept"),
    [
        ("Plait-Check: passed: test ! -e bad", "utf-8", False),
        ("plait-check : passed: test ! -e bad", "utf-8", False),
        ("+AFA-lait-Check: passed: test ! -e bad", "utf-7", False),
        ("Plait-Check: passed: test ! -e bad", "no-such-code", False),
        ("Checked: passed", "utf-8", True),
        ("Checked: passed", "iso-8859-1", True),
    ],
)
async def test_no_message_of_an_agent_says_on_the_target_that_a_check_passed(
    place: MergingPlace, said: str, code: str, *, is_kept: bool, style: str
):
    """The last rows are the control: messages that speak for the agent stay as they are."""
    commit = f"git add -A && git -c i18n.commitEncoding={code} commit -qm 'work\n\n{said}'"
    words = f"echo 1 > bad && {commit} && git rm -q bad && echo 2 > new && {commit}"
    agent = scripted({"shell": {"command": words, "must": True}}, {"result": "done"})
    steps = {"name": "s1", "agent": agent, "check": "test ! -e bad"}
    plan = place.manifest(steps, isolation_strategy="worktree", land={"style": style})
    async with place.engine(within_s=60) as engine:
        run = await reviewed(engine, plan)
        seen = (await engine.view(run.id)).worker(WHO)
        assert seen.change is not None
        told = [one for one in seen.change.set_aside if "uses plait's trailers" in one]
        assert bool(told) == (not is_kept and style != "squash")
        assert await land(engine, run, WHO) is Phase.LANDED
        note = (await landed(engine, run, WHO)).note
    assert ("uses plait's trailers" in note) == (not is_kept and style != "squash")
    words = ("log", "-4", "--format=%(trailers:key=Plait-Check,valueonly)", "main")
    claims = place.built.git(*words).split("\n")
    assert [one for one in claims if one] == ["passed: test ! -e bad"]


async def test_a_target_that_its_user_took_away_is_made_anew_only_when_asked(place: MergingPlace):
    steps = {"name": "s1", "agent": writes({"new": "new\n"})}
    plan = place.manifest(steps, isolation_strategy="worktree")
    async with place.engine(within_s=60) as engine:
        run = await reviewed(engine, plan)
        place.built.git("branch", "-m", "main", "trunk")
        assert await land(engine, run, WHO) is Phase.REVIEWING
        said = (await engine.view(run.id)).worker(WHO).error or ""
        assert "the branch main no longer exists" in said
        assert place.built.git("branch", "--list", "main") == ""
        assert await land(engine, run, WHO, to="main") is Phase.LANDED
    assert place.text("new") == "new\n"


async def test_the_commits_of_a_landing_say_what_they_hold_in_whole_words(place: MergingPlace):
    """The agent commits a part of its work; plait commits the rest."""
    script = [
        {"write": {"path": "new", "text": "new\n"}},
        {"shell": {"command": "git add new && git commit -qm 'Add a file'", "must": True}},
        {"write": {"path": "more", "text": "more\n"}},
        {"result": "done"},
    ]
    prompt = "Add two files, the second of which nobody has ever asked for, misunderstandably"
    step = {"name": "s1", "agent": scripted(*script), "prompt": prompt}
    plan = place.manifest(step, isolation_strategy="worktree", land={"style": "merge"})
    async with place.engine(within_s=60) as engine:
        run = await reviewed(engine, plan)
        assert await land(engine, run, WHO) is Phase.LANDED
    assert place.built.git("log", "--format=%s", "main~1..main").splitlines() == [
        "s1/worker_1: Add two files, the second of which nobody has ever asked…",
        "Changes that s1/worker_1 did not commit",
        "Add a file",
    ]
    body = place.built.git("log", "-1", "--format=%b", "main^2").strip()
    assert body == "plait found them in its worktree after attempt 1."
