"""Answer each kind of question to an engine.

Nothing in this module changes anything but what `ANSWERS` leads to elsewhere: a run that nobody
works on is read from its journal.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import anyio
import anyio.to_thread

from engine.core.report import report
from engine.errors import EngineError, WorkspaceError
from engine.ids import AttemptId, RunId
from engine.messages import merging as m
from engine.messages import questions as q
from engine.messages.diffs import ChangeDiff
from engine.messages.logs import LogChunk
from engine.messages.results import EngineView, Entrance, Machine, RunReport, RunView
from engine.review.comparing import DiffWanted
from engine.run import merge_answers
from engine.run.runs import Runs
from engine.run.view import view_of
from engine.work.cleaning import bring_back, clean, trash_items
from engine.work.entering import entrance
from engine.work.replay import log_from, read_log


async def snapshot(runs: Runs, question: q.ReadEngine) -> EngineView:
    """Return everything a console shows at this moment."""
    del question
    tools = runs.tools
    capacity = await tools.site.host.capacity()
    return EngineView(
        repository=str(tools.project),
        runs=tuple(runs.viewed(live) for live in runs.living.values()),
        machine=Machine(
            cores=capacity.cores,
            memory_mb=capacity.memory_mb,
            memory_available_mb=capacity.memory_available_mb,
            disk_free_mb=capacity.disk_free_mb,
        ),
        at=tools.clock.now(),
    )


async def read_run(runs: Runs, question: q.ReadRun) -> RunView:
    """Return one run as it stands, living or read from its journal."""
    live = runs.find(question.run)
    if live is not None:
        return runs.viewed(live)
    return view_of(await runs.read_state(question.run), {})


async def read_report(runs: Runs, question: q.ReadReport) -> RunReport:
    """Return a run's results so far, living or read from its journal."""
    return report(await runs.state(question.run))


async def list_runs(runs: Runs, question: q.ListRuns) -> tuple[q.RunSummary, ...]:
    """Return every run of the repository, newest first."""
    del question
    return tuple(await runs.summaries())


async def worker_log(runs: Runs, question: q.ReadLog) -> LogChunk:
    """Return a worker's log from a line on; read old lines anew.

    Raises:
        WorkspaceError: There is no such worker, or no such attempt of it.
    """
    tools, after = runs.tools, question.after
    state, found = await runs.seen_worker(question.run, question.worker)
    if not 0 <= (question.attempt or 0) <= found.attempt.number:
        raise WorkspaceError(f"{found.id} has had no attempt {question.attempt}")
    if not (number := question.attempt or found.attempt.number):
        return LogChunk(next_offset=after)
    read = partial(read_log, tools, state, AttemptId(state.run, found.id, number))
    kept = live.logbooks if (live := runs.living.get(state.run)) else {}
    logbook = kept.get((found.id, number)) or await read()
    logbook = kept.setdefault((found.id, number), logbook)  # or begun by now
    logbook.last_read = tools.clock.monotonic()
    return await log_from(logbook, after, question.most, read)


async def read_diff(runs: Runs, question: q.ReadDiff) -> ChangeDiff:
    """Return what a worker's attempt has changed.

    Raises:
        WorkspaceError: There is no such worker, or nothing of it to compare.
    """
    state, found = await runs.seen_worker(question.run, question.worker)
    wanted = DiffWanted(
        attempt=question.attempt or found.attempt.number,
        against=question.against,
        context=question.context,
    )
    return await runs.tools.workshops.of(state.plan).diff(state, found, wanted)


async def enter_sandbox(runs: Runs, question: q.EnterSandbox) -> Entrance:
    """Return how to start a program inside a worker's sandbox.

    Raises:
        WorkspaceError: There is no such worker, or no way in.
    """
    state, found = await runs.seen_worker(question.run, question.worker)
    return await entrance(runs.tools, state, found)


async def start_plan(runs: Runs, question: q.StartPlan) -> str:
    """Begin a run; return its id."""
    return (await runs.begin(question.plan)).run


async def resume_run(runs: Runs, question: q.ResumeRun) -> str:
    """Resume a run that was interrupted; return its id."""
    return (await runs.resume(RunId(question.run))).run


async def clean_up(runs: Runs, question: q.CleanUp) -> tuple[q.CleanItem, ...]:
    """Remove every workspace that is provably not needed; return all, with the reasons."""
    states = []
    for summary in await runs.summaries():
        with suppress(EngineError):
            live = runs.living.get(summary.id)
            states.append(live.state if live else await runs.read_state(summary.id))
    return tuple(await clean(runs.tools, states, dry_run=question.dry_run))


async def list_trash(runs: Runs, question: q.ListTrash) -> tuple[q.TrashItem, ...]:
    """Return what was removed and can be brought back."""
    del question
    return tuple(await anyio.to_thread.run_sync(trash_items, runs.tools.layout.trash))


async def restore_trash(runs: Runs, question: q.RestoreTrash) -> str:
    """Bring something back from the trash; return its path."""
    return await bring_back(runs.tools.repo, runs.tools.layout.trash, question.name)


async def wait_idle(runs: Runs, question: q.WaitIdle) -> None:
    """Return when nothing goes on in any run but what waits for a human."""
    del question
    await runs.wait_idle()


ANSWERS: Mapping[type[q.Ask[Any]], Callable[[Runs, Any], Awaitable[Any]]] = {
    q.ReadEngine: snapshot,
    q.ReadRun: read_run,
    q.ReadReport: read_report,
    q.ListRuns: list_runs,
    q.ReadLog: worker_log,
    q.ReadDiff: read_diff,
    q.EnterSandbox: enter_sandbox,
    q.StartPlan: start_plan,
    q.ResumeRun: resume_run,
    q.CleanUp: clean_up,
    q.ListTrash: list_trash,
    q.RestoreTrash: restore_trash,
    q.WaitIdle: wait_idle,
    m.ReadConflicts: merge_answers.read_conflicts,
    m.DecideConflict: merge_answers.decide_conflict,
    m.CheckWorker: merge_answers.check_worker,
    m.CheckTogether: merge_answers.check_together,
    m.PlanLandings: merge_answers.plan_landings,
    m.ListCandidates: merge_answers.list_candidates,
    m.CompareWorkers: merge_answers.compare_workers,
    m.ListMoments: merge_answers.list_moments,
    m.LeaveOutHunks: merge_answers.leave_out_hunks,
    m.WeaveHunks: merge_answers.weave_hunks,
}
"""What answers each kind of question. A test holds that the types agree."""


async def answer(runs: Runs, question: q.Ask[q.A]) -> q.A:
    """Answer a question.

    Raises:
        EngineError: It cannot be answered, and why.
    """
    found: q.A = await ANSWERS[type(question)](runs, question)
    return found
