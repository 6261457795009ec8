"""Script the world behind a console under test: views, logs, a port that answers with them."""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import anyio

from engine.errors import WorkspaceError
from engine.limits import Dimension, Enforcement, Level, LimitHit, Limits, Usage
from engine.messages import merging as m
from engine.messages import questions as q
from engine.messages.asked import Question
from engine.messages.commands import Accepted, Command, Reply, ResolutionAction, Seen
from engine.messages.deeds import Deed
from engine.messages.diffs import ChangeDiff, FileSides
from engine.messages.events import OutputAppended, Told
from engine.messages.explaining import ExplainCandidates
from engine.messages.logs import LogChunk, LogKind, LogLine, LogLines
from engine.messages.merging import CandidateTable, ConflictView, FileText, PlannedLanding, Wove
from engine.messages.questions import RunSummary
from engine.messages.results import (
    Badge,
    Change,
    CheckResult,
    Clash,
    EngineView,
    Entrance,
    Machine,
    Outcome,
    RunView,
    StepView,
    WorkerView,
    verdict_of,
)
from engine.messages.served import Served
from engine.messages.statistics import CountAttempts, Figures
from engine.phases import Phase, StopCause

NOW = 1_800_000_000.0
"""The time at which every scripted view plays."""

_LIMITS = Limits(memory_mb=1024, cpu_percent=100, time_seconds=1800, budget_usd=2.0, pids=256)
_HELD = (
    Enforcement(
        dimension=Dimension.FILES, level=Level.ENFORCED, mechanism="bwrap", value="own worktree"
    ),
    Enforcement(dimension=Dimension.NETWORK, level=Level.ENFORCED, mechanism="bwrap", value="off"),
    Enforcement(
        dimension=Dimension.MEMORY, level=Level.ENFORCED, mechanism="cgroup2", value="1024 MB"
    ),
    Enforcement(dimension=Dimension.CPU, level=Level.ENFORCED, mechanism="cgroup2", value="100%"),
    Enforcement(dimension=Dimension.PIDS, level=Level.ENFORCED, mechanism="cgroup2", value="256"),
    Enforcement(
        dimension=Dimension.DISK,
        level=Level.SAMPLED,
        mechanism="keeper",
        value="20 GB",
        reason="this file system has no quotas",
        fix="mount it with project quotas",
    ),
)


def worker(name: str, phase: Phase, **more: object) -> WorkerView:
    """A worker with everything that a real one would have."""
    step = name.partition("/")[0]
    known: dict[str, object] = {
        "agent": "claude",
        "attempt": 1,
        "attempts_allowed": 3,
        "hears": "now",
        "phase_since": NOW - 48,
        "limits": _LIMITS,
        "enforcement": _HELD,
        "branch": f"plait/2f1c/{name}",
    }
    view = WorkerView(worker=name, step=step, phase=phase, **{**known, **more})  # type: ignore[arg-type]
    said = verdict_of(view.check, is_stale=view.is_check_stale, has_claimed=view.claimed_done)
    return replace(view, verdict=view.verdict or said)


def _design() -> StepView:
    landed = worker(
        "design/worker_1",
        Phase.LANDED,
        worked_s=151.0,
        outcome=Outcome.SUCCESS,
        usage=Usage(usd=0.18),
        change=Change(head="a1", files=1, insertions=64),
    )
    return StepView(name="design", dependencies=(), outcome=Outcome.SUCCESS, workers=(landed,))


def _implement() -> StepView:
    first = worker(
        "implement/worker_1",
        Phase.RUNNING,
        attempt_since=NOW - 252,
        tool="edit src/csvlite/reader.py:88",
        last_lines=(
            "I will start with the scanner; the fault shows only when a block ends inside quotes.",
            "$ pytest -q tests/test_reader.py",
            "41 passed, 1 failed in 3.1 s",
            "FAILED test_nested_quotes",
            "find() starts on the quote itself.",
        ),
        lately=(
            Deed(
                at=NOW - 231,
                kind=LogKind.SAYS,
                text="I will start with the scanner; the fault shows only when a block ends "
                "inside quotes.",
            ),
            Deed(at=NOW - 201, kind=LogKind.TOOL, text="Edit  src/csvlite/scanner.py  +31 -4"),
            Deed(
                at=NOW - 94,
                kind=LogKind.TOOL,
                text="Bash  pytest -q tests/test_reader.py",
                result="exit 1, 3.1 s",
                error="FAILED test_nested_quotes",
                tail=("FAILED test_nested_quotes", "41 passed, 1 failed in 3.1 s"),
                count=212,
            ),
            Deed(at=NOW - 40, kind=LogKind.THOUGHT, text="The quote is found twice."),
            Deed(at=NOW - 2, kind=LogKind.SAYS, text="find() starts on the quote itself."),
        ),
        usage=Usage(
            active_s=250.0,
            memory_mb=410,
            usd=0.42,
            input_tokens=28_000,
            output_tokens=3_200,
            cpu_seconds=40,
            processes=14,
            disk_mb=88,
        ),
        so_far=Change(files=8, insertions=88, deletions=20),
        clashes=(Clash(other="port/worker_3", paths=("src/csvlite/io.py",), hunks=2),),
        prompt="Fix the quoted-field bug as planned.\nKeep the reader's interface.",
        last_output_at=NOW - 2,
        check=CheckResult(command="pytest -q", passed=False, summary="1 failed, 41 passed"),
    )
    second = worker(
        "implement/worker_2",
        Phase.RUNNING,
        attempt_since=NOW - 200,
        questions=(
            Question(
                id="q1",
                text="python -m pip install hypothesis\nI want property tests for nested quotes. "
                "It is not installed.",
                asked_at=NOW - 62,
                is_permission=True,
            ),
        ),
        usage=Usage(memory_mb=310, usd=0.31, input_tokens=20_000, output_tokens=1_400),
        last_lines=("$ python -c 'import hypothesis'", "ModuleNotFoundError: hypothesis"),
    )
    third = worker(
        "implement/worker_3",
        Phase.BACKING_OFF,
        agent="codex",
        retry_at=NOW + 42,
        phase_since=NOW - 78,
        last_lines=(
            "$ pytest -q",
            "FAILED test_block_edge[1]",
            "FAILED test_block_edge[2]",
            "attempt 2 is told: the check's output, its own diff",
        ),
        usage=Usage(usd=0.31, input_tokens=21_000, output_tokens=0),
        change=Change(files=2, insertions=41, deletions=3),
    )
    return StepView(
        name="implement",
        dependencies=("design",),
        outcome=Outcome.PENDING,
        workers=(first, second, third),
        policy="all",
        merge="choose",
        check="python -m pytest -q",
    )


def _port() -> StepView:
    first = worker(
        "port/worker_1",
        Phase.REVIEWING,
        is_radar_seen=True,
        label="io.py",
        usage=Usage(usd=0.33),
        change=Change(head="b1", tree="b1b1b1b1", files=3, insertions=41, deletions=17),
        check=CheckResult(command="pytest", passed=True, summary="214 tests"),
    )
    second = worker(
        "port/worker_2",
        Phase.FAILED,
        label="cli.py",
        cause=StopCause.MEMORY,
        attempt=2,
        attempts_allowed=2,
        phase_since=NOW - 220,
        usage=Usage(usd=0.29),
        limit_hit=LimitHit(dimension=Dimension.MEMORY, allowed=1024, seen=1031, unit="MB"),
        error="in pytest -q tests/test_cli.py",
        outcome=Outcome.FAILED,
        change=Change(files=2, insertions=12, deletions=4),
    )
    third = worker(
        "port/worker_3",
        Phase.RUNNING,
        label="sniff.py",
        attempt_since=NOW - 230,
        attempts_allowed=2,
        tool="pytest -q tests/test_sniff.py",
        last_lines=(
            "$ grep 'Sniffer' src/ tests/",
            "collected 38 items",
            "................F......  60%",
        ),
        usage=Usage(
            active_s=228.0,
            memory_mb=922,
            usd=0.27,
            input_tokens=18_000,
            output_tokens=900,
            cpu_seconds=90,
        ),
        so_far=Change(files=2, insertions=40, deletions=3),
        clashes=(Clash(other="implement/worker_1", paths=("src/csvlite/io.py",), hunks=2),),
        enforcement=tuple(
            replace(held, level=Level.SAMPLED) if held.dimension is Dimension.MEMORY else held
            for held in _HELD
        ),
    )
    return StepView(
        name="port",
        dependencies=("design",),
        outcome=Outcome.PENDING,
        workers=(first, second, third),
        policy="settled",
        merge="each",
    )


def _tests() -> StepView:
    waiting = worker("tests/worker_1", Phase.WAITING, attempt=0, usage=Usage())
    return StepView(
        name="tests",
        dependencies=("implement", "port"),
        outcome=Outcome.PENDING,
        workers=(waiting,),
    )


def csvlite(**more: object) -> EngineView:
    """The run of the pictures: eight workers, three of which need a human."""
    run = RunView(
        run="2f1c",
        name="fix",
        outcome=Outcome.PENDING,
        started_at=NOW - 422,
        target="main",
        steps=(_design(), _implement(), _port(), _tests()),
    )
    machine = Machine(
        cores=2, cpu_used=1.6, memory_mb=8192, memory_available_mb=6700, disk_free_mb=21000
    )
    known: dict[str, object] = {
        "repository": "csvlite",
        "runs": (run,),
        "machine": machine,
        "at": NOW,
    }
    return EngineView(**{**known, **more})  # type: ignore[arg-type]


def many(count: int) -> EngineView:
    """A run of so many workers in every phase."""
    phases = [
        Phase.RUNNING,
        Phase.QUEUED,
        Phase.REVIEWING,
        Phase.RUNNING,
        Phase.LANDED,
        Phase.CHECKING,
        Phase.CONFLICTED,
        Phase.PREPARING,
        Phase.CANCELLED,
        Phase.RUNNING,
    ]
    workers = tuple(
        worker(
            f"port/worker_{index + 1}",
            phases[index % len(phases)],
            label=f"module_{index + 1}.py",
            attempt_since=NOW - 10 * index,
            tool=f"edit src/csvlite/module_{index + 1}.py",
            last_lines=(f"reading module_{index + 1}", "$ pytest -q", f"{index} passed"),
            usage=Usage(memory_mb=100 + index * 40, usd=0.01 * index, cpu_seconds=index),
            conflicts=("src/a.py",),
        )
        for index in range(count)
    )
    step = StepView(
        name="port", dependencies=(), outcome=Outcome.PENDING, workers=workers, merge="each"
    )
    view = csvlite()
    return replace(view, runs=(replace(view.runs[0], steps=(step,)),))


def changed(view: EngineView, name: str, **more: object) -> EngineView:
    """The view with one worker of its first run changed."""
    run = view.runs[0]
    steps = tuple(
        replace(
            step,
            workers=tuple(
                replace(w, **more) if w.worker == name else w  # type: ignore[arg-type]
                for w in step.workers
            ),
        )
        for step in run.steps
    )
    return replace(view, runs=(replace(run, steps=steps), *view.runs[1:]))


def log_lines(count: int, start: float = NOW - 250) -> tuple[LogLine, ...]:
    """A log of that many lines, of every kind."""
    kinds = [
        (LogKind.SAYS, "I will start with the scanner; line {}."),
        (LogKind.TOOL, "edit src/csvlite/reader.py:{}"),
        (LogKind.TOOL_END, "+9 -4"),
        (LogKind.OUTPUT, "collected {} items"),
        (LogKind.ERROR, "FAILED tests/test_reader.py::test_{}"),
    ]
    return tuple(
        LogLine(at=start + index, kind=kinds[index % 5][0], text=kinds[index % 5][1].format(index))
        for index in range(count)
    )


_ANSWERED_BY: Mapping[type[q.Ask[Any]], str] = {
    q.ReadEngine: "snapshot",
    q.ReadRun: "view",
    q.ListRuns: "history",
    CountAttempts: "figures",
    q.ReadLog: "log",
    q.ReadDiff: "diff",
    q.EnterSandbox: "enter",
    q.ServeWorker: "serve",
    m.ReadConflicts: "conflicts",
    m.DecideConflict: "resolve",
    m.CheckWorker: "check",
    m.PlanLandings: "landing_order",
    m.ListCandidates: "candidates",
    m.CompareWorkers: "compare",
    m.LeaveOutHunks: "leave_out",
    m.EditChange: "edit",
    q.ReadSides: "sides",
    m.ReadText: "text",
    m.ReadComposite: "composite",
    m.ReadRisks: "risks",
    ExplainCandidates: "explain",
    m.WeaveHunks: "weave",
}


@dataclass
class FakePort:
    """A port with a scripted view: commands are written down, and answered as a test says."""

    shown: EngineView
    logs: dict[str, tuple[LogLine, ...]] = field(default_factory=dict)
    diffs: dict[str, ChangeDiff] = field(default_factory=dict)
    sides_of: dict[str, FileSides] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    entrances: dict[str, Entrance] = field(default_factory=dict)
    compared: list[tuple[str, int]] = field(default_factory=list)
    checks: dict[str, CheckResult] = field(default_factory=dict)
    closed: dict[str, RunView] = field(default_factory=dict)
    past: list[RunSummary] = field(default_factory=list)
    counted: Callable[[CountAttempts], tuple[Figures, ...]] = lambda _: ()
    answer: Callable[[Command], Reply] = lambda _: Accepted()
    commands: list[Command] = field(default_factory=list)
    snapshots: int = 0
    logs_read: int = 0
    is_gone: bool = False
    chunk: int = 500
    _news: list[Told] = field(default_factory=list)
    _moved: anyio.Event = field(default_factory=anyio.Event)

    async def command(self, command: Command) -> Reply:
        self._fail_if_gone()
        self.commands.append(command)
        return self.answer(command)

    async def events(self, after_seq: int = 0, *, show: object = None) -> AsyncIterator[Told]:
        del show
        sent = 0
        while True:
            self._fail_if_gone()
            for told in self._news[sent:]:
                sent += 1
                if told.seq is None or told.seq > after_seq:
                    yield told
            await self._moved.wait()

    async def ask(self, question: q.Ask[Any]) -> Any:
        """Answer by the method that the table names, with the question's own fields."""
        return await getattr(self, _ANSWERED_BY[type(question)])(**vars(question))

    async def snapshot(self) -> EngineView:
        self._fail_if_gone()
        self.snapshots += 1
        return self.shown

    async def figures(self, **asked: Any) -> tuple[Figures, ...]:
        self._fail_if_gone()
        return self.counted(CountAttempts(**asked))

    async def log(
        self,
        run: str,
        worker: str,
        attempt: int | None,
        after: int = 0,
        *,
        most: int | None = None,
    ) -> LogChunk:
        del run, attempt, most
        self._fail_if_gone()
        self.logs_read += 1
        lines = self.logs.get(worker, ())[after : after + self.chunk]
        return LogChunk(lines=LogLines.of(lines), next_offset=after + len(lines))

    async def diff(
        self,
        run: str,
        worker: str,
        attempt: int | None = None,
        *,
        against: str = "",
        context: int = 3,
    ) -> ChangeDiff:
        del run, attempt
        self._fail_if_gone()
        self.compared.append((against, context))
        if worker not in self.diffs:
            raise WorkspaceError("there is no change yet")
        return self.diffs[worker]

    async def enter(self, run: str, worker: str) -> Entrance:
        del run
        self._fail_if_gone()
        if worker not in self.entrances:
            raise WorkspaceError(f"{worker} has no workspace now")
        return self.entrances[worker]

    async def serve(self, run: str, worker: str) -> Served:
        self._fail_if_gone()
        raise WorkspaceError(f"run {run} names no program to serve for {worker}")

    async def leave_out(
        self, run: str, worker: str, hunks: Sequence[str], *, seen: Seen | None = None
    ) -> Change:
        del run, seen
        self._fail_if_gone()
        if worker not in self.diffs:
            raise WorkspaceError("another builds on it")
        self.tell(view=changed(self.shown, worker, left_out=tuple(hunks)))
        return Change(head="left")

    async def text(self, run: str, worker: str, path: str) -> FileText:
        del run, worker
        self._fail_if_gone()
        if path not in self.texts:
            raise WorkspaceError(f"{path} is not text, so an editor cannot keep it intact")
        return FileText(path=path, text=self.texts[path])

    async def sides(
        self,
        run: str,
        worker: str,
        paths: tuple[str, ...],
        attempt: int | None = None,
        *,
        against: str = "",
    ) -> tuple[FileSides, ...]:
        del run, worker, attempt, against
        self._fail_if_gone()
        return tuple(self.sides_of[path] for path in paths if path in self.sides_of)

    async def edit(
        self, run: str, worker: str, file: FileText, *, seen: Seen | None = None
    ) -> Change:
        del run, seen
        self._fail_if_gone()
        self.texts[file.path] = file.text or ""
        self.tell(view=changed(self.shown, worker, edited=(file.path,)))
        return Change(head="edited")

    async def check(
        self, run: str, worker: str, *, is_own: bool = False, seen: Seen | None = None
    ) -> CheckResult:
        del run, is_own, seen
        self._fail_if_gone()
        if worker not in self.checks:
            raise WorkspaceError("its tree is not decided yet")
        return self.checks[worker]

    async def view(self, run: str = "") -> RunView:
        self._fail_if_gone()
        if run not in self.closed:
            raise WorkspaceError(f"there is no run {run}")
        return self.closed[run]

    async def history(self) -> list[RunSummary]:
        self._fail_if_gone()
        return self.past

    async def conflicts(self, run: str, worker: str, path: str = "") -> ConflictView:
        del run, path
        self._fail_if_gone()
        raise WorkspaceError(f"{worker} has no conflicts to resolve")

    async def candidates(self, run: str, step: str) -> CandidateTable:
        del run
        self._fail_if_gone()
        raise WorkspaceError(f"{step} has no candidates")

    async def landing_order(self, run: str, workers: Sequence[str]) -> tuple[PlannedLanding, ...]:
        del run, workers
        self._fail_if_gone()
        return ()

    async def compare(self, run: str, one: str, other: str) -> ChangeDiff:
        return await self.diff(run, other, against=one)

    async def resolve(self, run: str, worker: str, action: ResolutionAction) -> ConflictView:
        del action
        return await self.conflicts(run, worker)

    async def weave(
        self,
        run: str,
        step: str,
        hunks: Sequence[str],
        *,
        seen: Mapping[str, Seen] | None = None,
    ) -> Wove:
        del run, hunks, seen
        self._fail_if_gone()
        raise WorkspaceError(f"{step} has no candidates")

    async def wait_idle(self) -> None:
        return

    def tell(self, *news: Told, view: EngineView | None = None) -> None:
        """Something happened: a new view, and events that say so."""
        self.shown = view or self.shown
        if not news:
            appended = OutputAppended(worker="implement/worker_1", attempt=1, offset=0)
            news = (Told(run="2f1c", at=NOW, event=appended),)
        self._news += news
        self._moved.set()
        self._moved = anyio.Event()

    def _fail_if_gone(self) -> None:
        if self.is_gone:
            raise ConnectionError("the socket is closed")


@contextmanager
def gone(port: FakePort) -> Iterator[None]:
    """The engine cannot be reached for a while."""
    port.is_gone = True
    port.tell()
    yield
    port.is_gone = False


APPROVED = frozenset({Badge.APPROVED})
