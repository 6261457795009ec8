"""Answer each kind of question to an engine.

`ANSWERS` names the function for each kind. A run that nobody works on is read from its journal.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from anyio import lowlevel, move_on_after, to_thread

from engine.core import effects as e
from engine.core import facts as f
from engine.core.report import report
from engine.core.state import RunState, Worker
from engine.errors import EngineBug, EngineError, StoreError, WorkspaceError
from engine.ids import RunId
from engine.merge import OutsideAnswer
from engine.messages import commands as c
from engine.messages import merging as m
from engine.messages import questions as q
from engine.messages import screens as s
from engine.messages.diffs import ChangeDiff, FileSides
from engine.messages.explaining import ExplainCandidates
from engine.messages.helping import AskAside, FormatTexts, MakeFile
from engine.messages.logs import LogChunk
from engine.messages.results import (
    Change,
    CheckResult,
    EngineView,
    Entrance,
    Machine,
    RunReport,
    RunView,
    Trying,
)
from engine.messages.served import Served, ServedLog
from engine.messages.statistics import CountAttempts, Figures
from engine.messages.timing import AttemptTimes, EngineCosts, ReadCosts, ReadTimes
from engine.phases import Phase
from engine.review.comparing import TARGET, DiffWanted
from engine.review.in_hand import read_text_of
from engine.review.landing_results import Refusal
from engine.review.queue import landing_order
from engine.review.sight import require_seen
from engine.review.trying import try_in
from engine.run.alternatives import (
    ask_aside,
    compare_workers,
    desk_of,
    explain_candidates,
    format_texts_aside,
    list_candidates,
    make_file_aside,
    read_composite,
    read_risks,
    weave_hunks,
)
from engine.run.judge import agent_named
from engine.run.live_run import LiveRun
from engine.run.moments import list_moments, make_checkpoint
from engine.run.runs import Runs
from engine.run.timing import read_times
from engine.run.view import view_of
from engine.work.asking import ask_agent
from engine.work.checking import Checking
from engine.work.cleaning import clean
from engine.work.costs import engine_costs
from engine.work.entering import entrance
from engine.work.helping import make_file
from engine.work.replay import log_from
from engine.work.screens import type_into, view_of_screen
from engine.work.serving import serve

_NEWS_S = 10.0
"""So long an answer about a served program waits for news."""


async def snapshot(runs: Runs, question: q.ReadEngine) -> EngineView:
    """Return everything a console shows at this moment."""
    del question
    tools = runs.tools
    capacity = await tools.sites.near.host.capacity()
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
        trying=await to_thread.run_sync(_trying, tools.layout.root),
    )


def _trying(plait_dir: Path) -> Trying | None:
    """Return the result that is tried; nothing where its note cannot be read."""
    with suppress(StoreError):
        if trial := try_in(plait_dir):
            return Trying(
                run=trial.result.run,
                worker=trial.result.worker,
                worktree=trial.worktree,
                is_whole=trial.is_whole,
            )
    return None


async def read_run(runs: Runs, question: q.ReadRun) -> RunView:
    """Return one run as it stands, living or read from its journal."""
    live = runs.find(question.run and await runs.name_of(question.run))
    if live is not None:
        return runs.viewed(live)
    state = await runs.read_state(question.run)
    return view_of(state, {}, served=runs.tools.served.of(state.run))


async def read_report(runs: Runs, question: q.ReadReport) -> RunReport:
    """Return a run's results so far, living or read from its journal."""
    return report(await runs.state(question.run))


async def times_of_run(runs: Runs, question: ReadTimes) -> tuple[AttemptTimes, ...]:
    """Return where the time of each attempt of a run went."""
    name = RunId(await runs.name_of(question.run))
    return await to_thread.run_sync(read_times, runs.tools.store, runs.tools.layout, name)


async def costs(runs: Runs, question: ReadCosts) -> EngineCosts:
    """Return what this engine itself uses."""
    del question
    return await to_thread.run_sync(engine_costs, runs.tools.layout.runs, runs.tools.clock.now())


async def list_runs(runs: Runs, question: q.ListRuns) -> tuple[q.RunSummary, ...]:
    """Return every run of the repository, newest first."""
    del question
    return tuple(await runs.summaries())


async def count_attempts(runs: Runs, question: CountAttempts) -> tuple[Figures, ...]:
    """Return what the attempts of many runs come to.

    Raises:
        StoreError: Their history cannot be opened or asked.
    """
    return await runs.tools.count(question)


async def worker_log(runs: Runs, question: q.ReadLog) -> LogChunk:
    """Return a worker's log from a line on; read old lines anew.

    Raises:
        WorkspaceError: There is no such worker, or no such attempt of it.
    """
    tools, after = runs.tools, question.after
    state, found = await runs.seen_worker(question.run, question.worker)
    logbook, read = await runs.logbook(state, found, question.attempt)
    if logbook is None:
        return LogChunk(next_offset=after)
    logbook.last_read = tools.clock.monotonic()
    return await log_from(logbook, after, question.most, read)


async def read_screen(runs: Runs, question: s.ReadScreen) -> s.ScreenView:
    """Return what is new on the terminal of a worker's agent.

    Raises:
        WorkspaceError: There is no such worker or attempt, or its agent has no terminal.
    """
    state, found = await runs.seen_worker(question.run, question.worker)
    logbook, _ = await runs.logbook(state, found, question.attempt)
    if logbook is None or logbook.screen is None:
        raise WorkspaceError(f"the agent of {found.id} has no terminal")
    is_newest = logbook.attempt == found.attempt.number
    is_live = is_newest and runs.watch_of(state, found) is not None
    return view_of_screen(logbook.screen, question.known, is_live=is_live)


async def type_in(runs: Runs, question: s.TypeInto) -> bool:
    """Type into the terminal of a worker's agent.

    Raises:
        WorkspaceError: There is no such worker.
    """
    state, found = await runs.seen_worker(question.run, question.worker)
    host = runs.tools.sites.of(state, found.id).host
    return await type_into(host, runs.watch_of(state, found), question.text, question.size)


async def read_diff(runs: Runs, question: q.ReadDiff) -> ChangeDiff:
    """Return what a worker's attempt has changed.

    Raises:
        WorkspaceError: There is no such worker, or nothing of it to compare.
    """
    state, found = await runs.seen_worker(question.run, question.worker)
    wanted = await _wanted(runs, state, found, question)
    wanted = replace(wanted, context=question.context)
    return await runs.tools.workshops.of(state.plan).diff(state, found, wanted)


async def read_sides(runs: Runs, question: q.ReadSides) -> tuple[FileSides, ...]:
    """Return files of a worker's attempt whole, as they were and as they are.

    Raises:
        WorkspaceError: There is no such worker, or nothing of it to compare.
    """
    state, found = await runs.seen_worker(question.run, question.worker)
    wanted = replace(await _wanted(runs, state, found, question), paths=question.paths)
    return await runs.tools.workshops.of(state.plan).sides(state, found, wanted)


async def _wanted(
    runs: Runs, state: RunState, found: Worker, question: q.ReadDiff | q.ReadSides
) -> DiffWanted:
    return DiffWanted(
        attempt=question.attempt or found.attempt.number,
        against=question.against,
        decided=await _decided_tree(runs, state, found) if question.against == TARGET else "",
    )


async def _decided_tree(runs: Runs, state: RunState, w: Worker) -> str:
    """Return the tree that the decisions about conflicts make; empty while any is open."""
    if w.phase is not Phase.CONFLICTED:
        return ""
    view = await desk_of(runs, state).conflicts(state, w.id)
    return view.tree or ""


async def enter_sandbox(runs: Runs, question: q.EnterSandbox) -> Entrance:
    """Return how to start a program inside a worker's sandbox.

    Raises:
        WorkspaceError: There is no such worker, or no way in.
    """
    state, found = await runs.seen_worker(question.run, question.worker)
    return await entrance(runs.tools, state, found)


async def serve_worker(runs: Runs, question: q.ServeWorker) -> Served:
    """Start a worker's program for a human to look at.

    Raises:
        WorkspaceError: There is no such worker, no program, or nothing to start it on.
    """
    state, found = await runs.seen_worker(question.run, question.worker)
    live = runs.living.get(state.run)
    if live is not None:
        runs.note_command(live, "Serve", str(found.id))
    return await serve(runs.tools, runs.tasks, state, found, live=live)


async def stop_serving(runs: Runs, question: q.StopServing) -> bool:
    """End the program that was started for a worker.

    Raises:
        WorkspaceError: There is no such worker.
    """
    state, found = await runs.seen_worker(question.run, question.worker)
    return await runs.tools.served.stop(state.run, found.id)


async def read_served(runs: Runs, question: q.ReadServed) -> ServedLog:
    """Return what a served program wrote, once there is news of it or a while has passed.

    Raises:
        WorkspaceError: There is no such worker.
    """
    state, found = await runs.seen_worker(question.run, question.worker)
    await lowlevel.checkpoint()  # whoever asks again and again must not keep it from working
    program = runs.tools.served.find(state.run, found.id)
    if program is None:
        return ServedLog()
    with move_on_after(_NEWS_S):
        while program.view == question.seen and program.count <= question.after:
            await program.changed()
    return ServedLog(served=program.view, lines=program.since(question.after), count=program.count)


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
    sites = await runs.tools.sites.every()
    return tuple([item for site in sites for item in await site.trashed()])


async def restore_trash(runs: Runs, question: q.RestoreTrash) -> str:
    """Bring something back from the trash; return its path."""
    sites = runs.tools.sites
    for site in await sites.every():
        if any(item.id == question.name for item in await site.trashed()):
            return await site.restore(question.name)
    return await sites.near.restore(question.name)


async def wait_idle(runs: Runs, question: q.WaitIdle) -> None:
    """Return when nothing goes on in any run but what waits for a human."""
    del question
    await runs.wait_idle()


async def read_conflicts(runs: Runs, question: m.ReadConflicts) -> m.ConflictView:
    """Return a worker's conflicts and decisions; with one file's text if it is named.

    Raises:
        WorkspaceError: There is no such worker, or it has no conflicts.
    """
    state, found = await runs.seen_worker(question.run, question.worker)
    view = await desk_of(runs, state).conflicts(state, found.id, question.path)
    if live := runs.living.get(state.run):
        runs.ahead.begin(live, found.id)  # the merge may have been made again
    return view


async def decide_conflict(runs: Runs, question: m.DecideConflict) -> m.ConflictView:
    """Decide something about a worker's conflicts, or go on when all is decided.

    Raises:
        WorkspaceError: It cannot be done, and why; nothing was changed.
    """
    live, found = await runs.worker(question.worker, run=question.run)
    action = question.action
    if isinstance(action, c.AskAgent):
        return await _ask_agent(runs, live, found, action)
    if isinstance(action, c.Regenerate):
        return await _regenerate(runs, live, found, action)
    view = await desk_of(runs, live.state).resolve(live, found.id, action)
    runs.ahead.decided(live, found.id, view)
    if isinstance(action, c.FinishResolving):
        runs.note_command(live, "FinishResolving", str(found.id))
    return view


async def _ask_agent(runs: Runs, live: LiveRun, w: Worker, action: c.AskAgent) -> m.ConflictView:
    """Ask an agent about a hunk; its answer is published when it comes."""
    choice = live.state.agent_of(w.id)
    if action.agent:
        choice = agent_named(live.state, action.agent)
    if choice is None:
        raise WorkspaceError(
            f"there is no agent {action.agent!r}" if action.agent else f"{w.id} has no agent",
            hint="Name one of the manifest's agents, or an adapter.",
        )
    desk = desk_of(runs, live.state)
    inquiry, view = await desk.ask(live, w.id, action, by=choice.name)

    async def listen() -> None:
        found: OutsideAnswer | str
        try:
            found = await ask_agent(runs.tools, live.state, w, choice=choice, inquiry=inquiry)
        except EngineBug:
            raise
        except (EngineError, OSError) as error:
            found = f"{choice.name}: {error}"
        await desk.answered(live, w.id, inquiry.key, found)

    runs.tasks.start_soon(listen, failed=partial(live.note_failure, w.id))
    return view


async def _regenerate(runs: Runs, live: LiveRun, w: Worker, action: c.Regenerate) -> m.ConflictView:
    """Make a generated file anew from what is decided, and decide it by that."""
    desk = desk_of(runs, live.state)
    wanted = await desk.regeneration(live.state, w.id, action.path)
    made = await make_file(runs.tools, live, w, wanted)
    return await desk.regenerated(live, w.id, wanted, made)


async def check_worker(runs: Runs, question: m.CheckWorker) -> CheckResult:
    """Run the check again: on the exact tree that would land now, or on the worker's own.

    Raises:
        ChangeMoved: The change is not the one that was seen, or became another meanwhile.
        WorkspaceError: There is nothing to check, or the tree is not decided yet.
    """
    live, w = await runs.worker(question.worker, run=question.run)
    require_seen(w, question.seen)
    if w.phase not in {Phase.REVIEWING, Phase.CONFLICTED}:
        raise WorkspaceError(f"{w.id} is {w.phase}: there is no finished work to check")
    if live.state.plan.step(w.id.step).check is None:
        raise WorkspaceError(f"{w.id.step} has no check", hint="Give its step a `check:`.")
    checking = Checking(live, runs.tools, e.RunCheck(**w.who))
    async with runs.tools.landing:
        found = await runs.tools.workshops.of(live.state.plan).landings.check_again(
            live.state, w, checking, is_own=question.is_own
        )
    if isinstance(found, Refusal):
        raise WorkspaceError(found.reason)
    checked = c.Seen(tree=(w.change.tree or "") if w.change else "", attempt=w.attempt.number)
    require_seen(live.state.workers[w.id], checked)  # else it says nothing of what is there now
    live.feed(
        f.Rechecked(
            **w.about(runs.tools.clock.now()), check=found, is_for_landing=not question.is_own
        )
    )
    return found


async def read_result(runs: Runs, question: m.ReadResult) -> m.MergedResult:
    """Return what landing a worker now would give.

    Raises:
        ChangeMoved: The change is not the one that was seen.
        WorkspaceError: There is no such result, and why.
    """
    state, w = await runs.seen_worker(question.run, question.worker)
    require_seen(w, question.seen)
    found = await runs.tools.workshops.of(state.plan).landings.result(state, w)
    if isinstance(found, Refusal):
        hint = f"`plait land {w.id}` records the conflicts; then `plait resolve` resolves them."
        raise WorkspaceError(found.reason, hint=hint)
    return found


async def check_together(runs: Runs, question: m.CheckTogether) -> m.BatchCheck:
    """Run the check once, on what the target would be with all these changes that fit.

    Where it passes, each of them lands on just these trees without being checked alone; the
    commits say that they were checked together.

    Raises:
        WorkspaceError: One has nothing to land, or they have different checks.
    """
    found = [await runs.worker(worker, run=question.run) for worker in question.workers]
    if not found:
        return m.BatchCheck()
    live = found[0][0]
    ids = [w.id for _, w in found]
    commands = {live.state.plan.step(worker.step).check for worker in ids}
    if len(commands) > 1:
        raise WorkspaceError("these workers have different checks: check them one by one")
    batch = await desk_of(runs, live.state).batch(live.state, ids)
    fits = tuple(map(str, batch.trees))
    if not fits or commands == {None}:
        return m.BatchCheck(fits=fits, tree=batch.tree or None)
    w = live.state.workers[ids[0]]
    checker = Checking(live, runs.tools, e.RunCheck(**w.who))
    async with runs.tools.landing:
        check = await runs.tools.workshops.of(live.state.plan).landings.check_commit(
            live.state, batch.commit, batch.tree, checker
        )
    if isinstance(check, Refusal):
        raise WorkspaceError(check.reason)
    is_told = check.passed or len(fits) == 1  # a batch that fails says nothing of each
    for worker, tree in batch.trees.items() if is_told else ():
        is_exact = tree == batch.tree
        own = replace(check, tree=tree, batch=None if is_exact else batch.tree, is_exact=is_exact)
        attempt = live.state.workers[worker].attempt.number
        live.feed(f.Rechecked(worker=worker, attempt=attempt, check=own, at=runs.tools.clock.now()))
    return m.BatchCheck(fits=fits, tree=batch.tree, check=check)


async def plan_landings(runs: Runs, question: m.PlanLandings) -> tuple[m.PlannedLanding, ...]:
    """Return the order in which workers are to land, with the conflicts expected of each.

    Raises:
        WorkspaceError: One of them has nothing to land, or nowhere.
    """
    found = [await runs.seen_worker(question.run, worker) for worker in question.workers]
    if not found:
        return ()
    state = found[0][0]
    workers = [state.workers[w.id] for _, w in found]
    target = state.plan.runtime.target or ""
    repo = desk_of(runs, state).repo
    return await landing_order(repo, state, workers, target=target, by=question.by)


async def leave_out_hunks(runs: Runs, question: m.LeaveOutHunks) -> Change:
    """Leave exactly these hunks behind when a change lands; return what is left.

    Raises:
        ChangeMoved: The change is not the one that was seen.
        WorkspaceError: It cannot be done now, or there is no such hunk.
    """
    live, w = await runs.worker(question.worker, run=question.run)
    desk = desk_of(runs, live.state)
    left = await desk.leave_out(live, w.id, question.hunks, seen=question.seen)
    runs.note_command(live, "LeaveOut", str(w.id))
    return left


async def edit_change(runs: Runs, question: m.EditChange) -> Change:
    """Put another text into a file of a change that waits for review; return what would land.

    Raises:
        ChangeMoved: The change is not the one that was seen.
        WorkspaceError: It cannot be done now, or nothing would be left.
    """
    live, w = await runs.worker(question.worker, run=question.run)
    desk = desk_of(runs, live.state)
    change = await desk.edit(live, w.id, question.file, seen=question.seen)
    runs.note_command(live, "Edit", str(w.id))
    return change


async def read_text(runs: Runs, question: m.ReadText) -> m.FileText:
    """Return a file of what would land of a worker.

    Raises:
        WorkspaceError: There is no such worker or file, or it is no text.
    """
    state, found = await runs.seen_worker(question.run, question.worker)
    desk = desk_of(runs, state)
    if found.phase is not Phase.CONFLICTED:
        return await read_text_of(desk.repo, found, question.path)
    return await desk.merged_text(state, found.id, question.path)


ANSWERS: Mapping[type[q.Ask[Any]], Callable[[Runs, Any], Awaitable[Any]]] = {
    q.ReadEngine: snapshot,
    q.ReadRun: read_run,
    q.ReadReport: read_report,
    q.ListRuns: list_runs,
    ReadTimes: times_of_run,
    ReadCosts: costs,
    q.ReadLog: worker_log,
    s.ReadScreen: read_screen,
    s.TypeInto: type_in,
    q.ReadDiff: read_diff,
    q.ReadSides: read_sides,
    q.EnterSandbox: enter_sandbox,
    q.ServeWorker: serve_worker,
    q.StopServing: stop_serving,
    q.ReadServed: read_served,
    q.StartPlan: start_plan,
    q.ResumeRun: resume_run,
    q.CleanUp: clean_up,
    q.ListTrash: list_trash,
    q.RestoreTrash: restore_trash,
    q.WaitIdle: wait_idle,
    CountAttempts: count_attempts,
    m.ReadConflicts: read_conflicts,
    m.DecideConflict: decide_conflict,
    m.CheckWorker: check_worker,
    m.ReadResult: read_result,
    m.CheckTogether: check_together,
    m.PlanLandings: plan_landings,
    m.ListCandidates: list_candidates,
    m.CompareWorkers: compare_workers,
    m.ListMoments: list_moments,
    m.MakeCheckpoint: make_checkpoint,
    m.LeaveOutHunks: leave_out_hunks,
    m.EditChange: edit_change,
    m.ReadText: read_text,
    m.ReadComposite: read_composite,
    m.ReadRisks: read_risks,
    ExplainCandidates: explain_candidates,
    MakeFile: make_file_aside,
    FormatTexts: format_texts_aside,
    AskAside: ask_aside,
    m.WeaveHunks: weave_hunks,
}
"""The function that answers each kind of question. A test holds that the types agree."""
