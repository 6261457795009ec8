"""After every attempt, changes of what is not its own are reported, and accuse who made them."""

import fcntl
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from shutil import rmtree
from threading import Event, Thread
from typing import IO, Any

import anyio
import anyio.to_thread
import pytest

from engine.api import Engine
from engine.messages import commands as c
from engine.messages.events import OutputAppended, OutsideChanged, Told
from engine.messages.logs import LogKind
from engine.messages.results import Badge
from engine.phases import Phase
from tests.support.engine_runs import Place
from tests.support.needs import need
from tests.support.repositories import RepositoryBuilder

pytestmark = pytest.mark.anyio

CALM = "echo hi > new.txt"
HOOK = "mkdir -p {git}/hooks && echo evil > {git}/hooks/post-checkout && echo 1 > hooked.txt"
USERS_OWN = """
cd {repo} && echo more >> a.txt && git -c user.name=u -c user.email=u@x commit -qam more
git config branch.main.remote origin && git config branch.main.merge refs/heads/main
git branch side && echo scratch > scratch.txt
"""
AS_LANDING = "case $PWD in */attempt_1) true;; *) " + HOOK + ";; esac"


@dataclass(frozen=True, kw_only=True)
class Seen:
    """The result of a worker: what it is accused of, what is only mentioned, and its landing."""

    violations: tuple[str, ...]
    mentioned: tuple[str, ...]
    remarks: str
    notes: str
    landing: c.Accepted | c.Refused
    phase: Phase
    error: str | None


class Ground(Place):
    """A user's repository, and an engine in it on one rung of file isolation."""

    def __init__(self, tmp_path: Path, rung: str) -> None:
        super().__init__(tmp_path)
        self.repository = RepositoryBuilder(tmp_path / "repo")
        self.repository.commit({"a.txt": "a\n"})
        self.project = self.repository.path
        self.environment["PLAIT_SANDBOX"] = rung

    @property
    def common(self) -> Path:
        return self.project / ".git"

    def plan(self, deed: str, *steps: dict[str, Any], first: Any = (), **runtime: Any) -> Any:
        """One agent that does this, and another step's after it."""
        words = {"git": self.project / ".git", "repo": self.project}
        return {
            "runtime": runtime,
            "agents": {"a": {"adapter": "command", "argv": ["sh", "-ec", deed.format(**words)]}},
            "pipelines": [
                {
                    "name": "p",
                    "steps": [
                        {"name": "one", "agent": "a", "prompt": "x", **dict(first)},
                        *(dict(each, run=each["run"].format(**words)) for each in steps),
                    ],
                }
            ],
        }

    async def run(
        self, plan: Any, *, of: str = "one", meanwhile: Callable[[], None] | None = None
    ) -> Seen:
        """Run it to its end and try to land."""
        told: list[Told] = []
        async with self.engine() as engine, anyio.create_task_group() as tasks:
            is_at_work = anyio.Event()
            tasks.start_soon(_listen, engine, told, is_at_work)
            run = await engine.start(plan)
            if meanwhile is not None:
                await is_at_work.wait()
                await anyio.to_thread.run_sync(meanwhile)
            await run.wait()
            worker = (await engine.view(run.id)).worker(f"{of}/worker_1")
            log = await engine.log(run.id, f"{of}/worker_1")
            landing = await engine.command(c.Land(worker=f"{of}/worker_1"))
            await engine.wait_idle()
            phase = (await engine.view(run.id)).worker(f"{of}/worker_1").phase
            tasks.cancel_scope.cancel()
        assert (Badge.VIOLATION in worker.badges) == bool(worker.violations)
        outside = [
            each.event
            for each in told
            if isinstance(each.event, OutsideChanged) and each.event.worker == f"{of}/worker_1"
        ]
        return Seen(
            violations=worker.violations,
            mentioned=tuple(path for each in outside for path in each.paths),
            remarks=" ".join(each.remark for each in outside),
            notes=" ".join(line.text for line in log.lines if line.kind is LogKind.NOTE),
            landing=landing,
            phase=phase,
            error=worker.error,
        )


async def _listen(engine: Engine, told: list[Told], is_at_work: anyio.Event) -> None:
    async for each in engine.events():
        told.append(each)
        if isinstance(each.event, OutputAppended):
            is_at_work.set()


def names(paths: tuple[str, ...]) -> set[str]:
    return {Path(path).name for path in paths}


@pytest.fixture
def bare(tmp_path: Path) -> Ground:
    """Return where nothing keeps an agent from anything."""
    return Ground(tmp_path, "none")


@pytest.fixture
def fenced(tmp_path: Path) -> Ground:
    """Return where a sandbox does."""
    need("bubblewrap")
    return Ground(tmp_path, "bwrap")


async def test_a_hook_written_by_an_agent_is_named_and_stops_the_landing(bare: Ground):
    seen = await bare.run(bare.plan(HOOK))
    assert "post-checkout" in names(seen.violations)
    assert isinstance(seen.landing, c.Refused)
    assert "post-checkout" in seen.landing.reason


async def test_an_agent_that_keeps_to_its_tree_violates_nothing(bare: Ground):
    seen = await bare.run(bare.plan(CALM, first={"check": "test -e new.txt"}))
    assert (seen.violations, seen.mentioned, seen.phase) == ((), (), Phase.LANDED)


async def test_a_plain_folder_in_a_repository_is_looked_after_as_well(bare: Ground):
    seen = await bare.run(bare.plan(HOOK, isolation_strategy="directory"))
    assert "post-checkout" in names(seen.violations)


@pytest.mark.parametrize("check", [HOOK, AS_LANDING], ids=["of its own tree", "to be landed"])
async def test_a_check_is_agent_written_code_and_is_looked_after(bare: Ground, check: str):
    filled = check.format(git=bare.project / ".git")
    seen = await bare.run(bare.plan(CALM + USERS_OWN, first={"check": filled}))
    assert seen.phase is Phase.REVIEWING
    assert isinstance(seen.landing, c.Refused) == (check == HOOK)
    log = partial(bare.repository.git, "log", "--format=%s", "main")
    assert (await anyio.to_thread.run_sync(log)).splitlines()[0] == "more"


async def test_what_the_user_does_meanwhile_is_mentioned_and_accuses_nobody(bare: Ground):
    seen = await bare.run(bare.plan(CALM + USERS_OWN))
    assert seen.violations == ()
    assert {"main", "side", "a.txt", "scratch.txt"} <= names(seen.mentioned)
    assert "plait cannot know if it was the worker or you" in seen.remarks
    assert "scratch.txt" in seen.notes or "more (" in seen.notes
    assert isinstance(seen.landing, c.Accepted)


async def test_what_a_keeper_wrote_of_another_attempt_is_written_once(bare: Ground):
    alter = "for f in {git}/plait/runs/*/one/worker_1/attempt_1/recording; do echo x >> $f; done"
    tree = "echo x > ../../../one/worker_1/attempt_1/new.txt"
    deed = f"{alter}; {tree}; echo 2 > two.txt"
    second = {"name": "two", "dependencies": ["one"], "run": deed}
    seen = await bare.run(bare.plan(CALM, second), of="two")
    assert (names(seen.violations), names(seen.mentioned)) == ({"recording"}, {"new.txt"})


@pytest.mark.parametrize("site", ["local", "child"])
async def test_what_is_written_in_a_tree_at_rest_is_mentioned_at_every_site(
    bare: Ground, site: str
) -> None:
    deed = "echo x > ../../../one/worker_1/attempt_1/new.txt; echo 2 > two.txt"
    second = {"name": "two", "dependencies": ["one"], "run": deed}
    plan = bare.plan(CALM, second, sites={"default": site})
    seen = await bare.run(plan, of="two")
    assert (seen.violations, names(seen.mentioned)) == ((), {"new.txt"})
    assert "plait cannot know if it was the worker or you" in seen.remarks


async def test_the_note_of_how_things_were_cannot_be_done_away_with(bare: Ground):
    away = "rm {git}/plait/runs/*/one/worker_1/attempt_1/before.json"
    seen = await bare.run(bare.plan(f"{away} && {HOOK}"))
    assert names(seen.violations) == {"before.json"}


async def test_behind_a_sandbox_a_changed_configuration_is_somebody_elses_doing(fenced: Ground):

    def configure() -> None:
        fenced.repository.git("config", "core.hooksPath", "/somewhere")
        fenced.open_gate("go")

    deed = f"echo ready; {fenced.waits_at('go')}; {CALM}"
    plan = fenced.plan(deed, sandbox={"paths": [f"{fenced.outside}"]})
    seen = await fenced.run(plan, meanwhile=configure)
    assert (seen.violations, names(seen.mentioned)) == ((), {"config"})
    assert "its sandbox cannot write there" in seen.remarks
    assert isinstance(seen.landing, c.Accepted)


async def test_setup_agent_and_check_all_begin_where_files_and_git_are_required(fenced: Ground):
    plan = fenced.plan(
        CALM, first={"check": "test -e new.txt -a -e made"}, require=["files", "git"]
    )
    plan["workspace"] = {"setup": "touch made && echo made > .gitignore"}
    seen = await fenced.run(plan)
    assert (seen.error, seen.phase) == (None, Phase.LANDED)


async def test_a_hole_into_the_repository_makes_what_changes_there_a_violation(fenced: Ground):
    (fenced.common / "hooks").mkdir(exist_ok=True)
    for hole, expected in ((fenced.common / "hooks", {"post-checkout"}), (fenced.common, set())):
        plan = fenced.plan(f"({HOOK}) || {CALM}", sandbox={"paths": [f"{hole}:rw"]})
        seen = await fenced.run(plan)
        assert (names(seen.violations), seen.mentioned) == (expected, ()), seen.error


def half_made(ground: Ground, *, is_whole: bool = False) -> Path:
    """Return what git has written of a worktree when another worker begins."""
    ground.repository.git("config", "extensions.worktreeConfig", "true")
    (ground.common / "config.worktree").write_text("[core]\n\tbare = false\n[user]\n\tname = u\n")
    entry = ground.common / "worktrees" / "another"
    entry.mkdir(parents=True)
    (entry / "gitdir").write_text(f"{ground.tmp_path}/another/.git\n")
    if is_whole:
        (entry / "commondir").write_text("../..\n")
    return entry


@pytest.mark.parametrize(
    ("common", "settings", "accused"),
    [
        ("../..", "[user]\n\tname = u\n", set()),
        ("../..", "[core]\n[user]\n\tname = u\n", set()),
        ("../../../elsewhere", "[user]\n\tname = u\n", {"commondir"}),
        ("../..", "[core]\n\thooksPath = /evil\n", {"config.worktree"}),
        ("../..", "[user]\n\tname = u\n[core]\n\tfsmonitor = e\n", {"config.worktree"}),
    ],
)
async def test_only_what_git_writes_of_a_worktree_that_is_being_made_accuses_nobody(
    bare: Ground, common: str, settings: str, accused: set[str]
):
    entry = half_made(bare)

    def finish() -> None:
        (entry / "commondir").write_text(f"{common}\n")
        (entry / "config.worktree").write_text(settings)
        bare.open_gate("go")

    plan = bare.plan(f"echo ready; {bare.waits_at('go')}; {CALM}")
    seen = await bare.run(plan, meanwhile=finish)
    assert names(seen.violations) == accused


@pytest.mark.parametrize(("half", "accused"), [("", set()), ("/elsewhere/.git\n", {"gitdir"})])
@pytest.mark.parametrize("is_whole", [False, True])
async def test_a_file_of_a_worktree_that_git_had_made_and_not_written_accuses_nobody(
    bare: Ground, half: str, accused: set[str], *, is_whole: bool
):
    entry = half_made(bare, is_whole=is_whole)
    whole = (entry / "gitdir").read_text()
    (entry / "gitdir").write_text(half)

    def finish() -> None:
        (entry / "gitdir").write_text(whole)
        (entry / "commondir").write_text("../..\n")
        bare.open_gate("go")

    plan = bare.plan(f"echo ready; {bare.waits_at('go')}; {CALM}")
    seen = await bare.run(plan, meanwhile=finish)
    assert names(seen.violations) == accused


@pytest.mark.parametrize(
    ("where", "accused"),
    [
        ("r1/fix/worker_2/attempt_1/.git", set()),
        ("r1/fix/worker_2/attempt_1/config", {"gitdir"}),
        ("../.git", {"gitdir"}),
        ("/elsewhere/.git", {"gitdir"}),
    ],
)
async def test_an_entry_that_git_gives_to_the_next_worktree_accuses_nobody(
    bare: Ground, where: str, accused: set[str]
):
    entry = half_made(bare, is_whole=True)

    def give() -> None:
        linked = next((bare.common / "worktrees").glob("attempt_*/gitdir")).read_text().strip()
        workspaces = Path(linked).parents[4]
        (entry / "gitdir").write_text(f"{workspaces / where}\n")
        bare.open_gate("go")

    plan = bare.plan(f"echo ready; {bare.waits_at('go')}; {CALM}")
    seen = await bare.run(plan, meanwhile=give)
    assert names(seen.violations) == accused


@pytest.mark.parametrize("goes", [True, False], ids=["goes on", "stays"])
async def test_a_worktree_that_an_engine_just_removes_accuses_nobody(bare: Ground, *, goes: bool):
    """Entries come and go under a lock: what is found half gone is looked at again under it."""
    entry = half_made(bare, is_whole=True)

    def remove_half() -> None:
        held = (bare.common / "plait" / "git.lock").open("a")
        fcntl.flock(held, fcntl.LOCK_EX)
        (entry / "commondir").unlink()
        bare.open_gate("go")
        Thread(target=partial(remove_rest, held)).start()

    def remove_rest(held: IO[str]) -> None:
        while sum(each.resolve() == Path(held.name) for each in descriptors()) < 2:
            Event().wait(0.01)
        if goes:
            rmtree(entry)
        held.close()

    plan = bare.plan(f"echo ready; {bare.waits_at('go')}; {CALM}")
    seen = await bare.run(plan, meanwhile=remove_half)
    assert names(seen.violations) == (set() if goes else {"commondir"})


def descriptors() -> list[Path]:
    return [each for each in Path("/proc/self/fd").iterdir() if os.path.lexists(each)]


async def test_workers_that_come_and_go_beside_each_other_accuse_nobody(bare: Ground):
    others = ({"name": f"s{n}", "run": CALM, "concurrency": 4} for n in range(3))
    runtime = {"max_concurrent_workers": 4, "isolation_strategy": "worktree"}
    plan = bare.plan(CALM, *others, first={"concurrency": 4}, **runtime)
    async with bare.engine() as engine:
        run = await engine.start(plan)
        await run.wait()
        workers = (await engine.view(run.id)).workers
    assert len(workers) > 4
    assert {worker.violations for worker in workers} == {()}
