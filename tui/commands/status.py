"""`plait status` and `plait runs`: how a run stands, and which runs there are."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from engine.errors import EngineError
from engine.messages.questions import ListRuns, ReadRun
from engine.messages.results import (
    Badge,
    Change,
    LoginView,
    Outcome,
    RunView,
    StepView,
    Verdict,
    WorkerView,
)
from engine.phases import Phase
from tui.commands.base import EXIT_OK, add_repo, in_loop, put, put_json, say
from tui.commands.quick import KEPT, kept_name, surroundings
from tui.commands.shells import from_journals, looked_at, reached, told, trial_in
from tui.words.clean import asked_head, clean, clean_name
from tui.words.figures import UNKNOWN, clock, cost, cost_of, some, tokens, used
from tui.words.said import (
    mind_text,
    passed_text,
    present_change,
    tool_text,
    undone_text,
    unshown_in,
)
from tui.words.served import served_text

if TYPE_CHECKING:
    from engine.api import OpenTry, RunSummary
    from engine.messages.timing import AttemptTimes
    from tui.commands.shells import Kept


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take the run, and how to tell it."""
    add_repo(parser)
    if parser.get_default("command") == "status":
        parser.add_argument("run_id", nargs="?", default="", metavar="RUN")
        about = "show where the time of each attempt went"
        parser.add_argument("--profile", action="store_true", help=about)
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def run(args: argparse.Namespace) -> int:
    """Look, without changing anything."""
    is_whole = args.command == "runs" or not (args.run_id or args.profile)
    code = from_journals(act(args), args.repo, kept_as=_kept_as(args) if is_whole else None)
    return in_loop(partial(act, args)) if code is None else code


def _kept_as(args: argparse.Namespace) -> Kept:
    return kept_name(args.command, is_json=args.json), surroundings()


def leave_answers(folder: str) -> None:
    """Keep what both commands would say, for whoever asks first when an engine has gone."""
    for command in KEPT:
        words = {"command": command, "repo": folder, "run_id": "", "profile": False, "json": False}
        args = argparse.Namespace(**words)
        with suppress(EngineError, OSError):  # whoever asks hears what is wrong
            from_journals(act(args), folder, kept_as=_kept_as(args), is_said=False)


async def act(args: argparse.Namespace) -> int:
    """Look, in an event loop."""
    if args.command == "runs":
        return await _runs(args)
    return await (_profile if args.profile else _status)(args)


async def _status(args: argparse.Namespace) -> int:
    trial = await trial_in(args.repo)
    if trial is not None and not args.json:
        from tui.commands.trying import try_line  # noqa: PLC0415  only a try that is on pays for it

        say(try_line(trial))
    async with looked_at(args.repo) as (port, has_lived):
        if not args.run_id and not await port.ask(ListRuns()):
            say("no run here yet; `plait run` starts one")
            return EXIT_OK
        view = await port.ask(ReadRun(args.run_id))
    if not has_lived and any(worker.is_live for worker in view.workers):
        async with reached(args.repo) as (port, has_lived):  # one may just be starting, or leaving
            view = await port.ask(ReadRun(view.run))
    await told(partial(_tell, view, trial, is_json=args.json))
    if not has_lived and any(worker.is_live for worker in view.workers):
        say(f"no engine runs it: `plait resume {view.run}` or the console continues it")
    return EXIT_OK


def _tell(view: RunView, trial: OpenTry | None, *, is_json: bool) -> None:
    put_json(_status_json(view, trial)) if is_json else put(status_text(view))


def _status_json(view: RunView, trial: OpenTry | None) -> dict[str, object]:
    from engine.api import view_json  # noqa: PLC0415  people read text

    return {**view_json(view), "trying": _try_json(trial)}


def _try_json(trial: OpenTry | None) -> dict[str, object] | None:
    """A try that is on as plain data; None where none is."""
    if trial is None:
        return None
    from engine.merge.packing import pack  # noqa: PLC0415  only a try that is on pays for it

    return {
        "run": trial.result.run,
        "worker": trial.result.worker,
        "attempt": trial.result.attempt,
        "tree": trial.result.tree,
        "worktree": trial.worktree,
        "since": trial.since,
        "is_whole": trial.is_whole,
        "put_aside": [pack(path) for path in trial.aside],
        "edits": trial.edits,
    }


def status_text(view: RunView) -> str:
    """A run in lines for people."""
    word = "waits for you" if view.is_waiting else _outcome(view.outcome, view.workers)
    spent = cost_of(view.workers)
    paused = ", paused" if view.is_paused else ""
    total = f", {spent}" if spent != UNKNOWN else ""
    lines = [f"run {view.run} ({clean(view.name)}): {word}{paused}{total}"]
    if view.trouble is not None:
        since = datetime.fromtimestamp(view.trouble.since).astimezone()
        lines.append(f"stalled since {since:%H:%M:%S}: {clean(view.trouble.what)}")
        lines.append(clean(view.trouble.help))
    if view.history is not None:
        since = datetime.fromtimestamp(view.history.since).astimezone()
        lines.append(f"shared history delayed since {since:%H:%M:%S}: {clean(view.history.what)}")
        lines.append(clean(view.history.help))
    for step in view.steps:
        lines.append(f"{step.name}: {_outcome(step.outcome, step.workers)}")
        lines += [f"  {_worker_line(worker, step)}" for worker in step.workers]
    return "\n".join([*lines, *map(_login_line, view.logins)])


def _outcome(outcome: Outcome, workers: Sequence[WorkerView]) -> str:
    """Return its outcome; that can be decided while some are still at work."""
    if outcome is Outcome.PENDING:
        return _standing(workers)
    live = sum(worker.is_live for worker in workers)
    return f"{outcome}, {live} still at work" if live else str(outcome)


def _standing(workers: Sequence[WorkerView]) -> str:
    """Return what goes on where nothing is decided yet."""
    if any(worker.phase.holds_slot for worker in workers):
        return "running"
    if any(worker.needs_you for worker in workers):
        return "waits for you"
    is_begun = any(worker.attempt for worker in workers)
    return "waits to continue" if is_begun else "has not started"


def _login_line(login: LoginView) -> str:
    """Return what a login has used today, of how much, and until when its agents wait."""
    budgets = [cost(login.budget_usd)] if login.budget_usd is not None else []
    if login.budget_tokens is not None:
        budgets.append(f"{tokens(login.budget_tokens)} tokens")
    within = f" (daily budget: {', '.join(budgets)})" if budgets else ""
    line = f"{', '.join(map(clean, login.agents))} today: {used(login.use)}{within}"
    if login.held_until is None:
        return line
    until = datetime.fromtimestamp(login.held_until).astimezone()
    return f"{line}; its agents wait until {until:%Y-%m-%d %H:%M}"


def _worker_line(worker: WorkerView, step: StepView) -> str:
    parts = [f"{worker.worker:<26} {worker.phase:<11}"]
    if worker.label:
        parts.append(f"[{clean_name(worker.label)}]")
    if worker.site:
        parts.append(f"at {clean(worker.site)}")
    if worker.attempt > 1:
        parts.append(f"attempt {worker.attempt}")
    if worker.cause:
        parts.append(str(worker.cause))
    if Badge.PAUSED in worker.badges:
        parts.append("paused")
    told = [*_came_to(worker, step), *_doing(worker), *_costs(worker), *_serves(worker)]
    return "  ".join([*parts, *told])


def _serves(worker: WorkerView) -> list[str]:
    """Return how its program is that is served, if one is."""
    return [f"its program {served_text(worker.served)}"] if worker.served else []


def _doing(worker: WorkerView) -> list[str]:
    """Return its model and what it is at, while it works."""
    if worker.phase is not Phase.RUNNING:
        return []
    now = time.time()
    seen = worker.so_far
    so_far = f"{_figures(seen)} so far" if seen and seen.files else ""
    kept = f"checkpoint at {clock(worker.checkpoint_at, now)}" if worker.checkpoint_at else ""
    told = (worker.model, so_far, kept, tool_text(worker, now), mind_text(worker))
    return [first_line(text) for text in told if text]


def _came_to(worker: WorkerView, step: StepView) -> list[str]:
    """Return what it asks, why it failed, how it ended without a change, or its change."""
    if worker.questions:
        asked = worker.questions[0]
        danger = f" (dangerous: {asked.danger})" if asked.danger else ""
        return [f"asks{danger}: {asked_head(asked.text)}"]
    known = (undone_text(worker), worker.error, worker.ending, passed_text(worker, step))
    if said := next(filter(None, known), ""):
        return [first_line(said)]
    change = present_change(worker)
    if change and change.head:
        return [_change(change, worker.verdict)]
    return []


def _change(change: Change, verdict: Verdict | None) -> str:
    figures = _figures(change)
    return f"{figures}  {verdict}" if verdict else figures


def _figures(change: Change) -> str:
    unshown = unshown_in(change)
    lines = f"{some(change.files, 'file')} +{change.insertions} -{change.deletions}"
    return f"{lines} ({unshown})" if unshown else lines


def _costs(worker: WorkerView) -> list[str]:
    """The cost of a worker, and of each of its attempts where there were several."""
    if not worker.usage.usd:
        return []
    each = ", ".join(cost(usage.usd) for usage in worker.attempt_usages)
    return [f"{cost(worker.usage.usd)}{f' ({each})' if len(worker.attempt_usages) > 1 else ''}"]


def first_line(text: str) -> str:
    """The first line of a foreign text, safe for a terminal."""
    return clean(text.strip().split("\n", 1)[0])


async def _profile(args: argparse.Namespace) -> int:
    from engine.messages.timing import ReadTimes  # noqa: PLC0415  few ask for that

    async with looked_at(args.repo) as (port, _):
        times = await port.ask(ReadTimes(args.run_id))
    await told(partial(_tell_times, times, is_json=args.json))
    return EXIT_OK


def _tell_times(times: Sequence[AttemptTimes], *, is_json: bool) -> None:
    if is_json:
        put_json([asdict(one) for one in times])
        return
    from tui.words.timing import times_text  # noqa: PLC0415  few ask for that

    put(times_text(times))


async def _runs(args: argparse.Namespace) -> int:
    async with looked_at(args.repo) as (port, _):
        history = await port.ask(ListRuns())
    await told(partial(_tell_runs, history, is_json=args.json))
    return EXIT_OK


def _tell_runs(history: Sequence[RunSummary], *, is_json: bool) -> None:
    if is_json:
        put_json([_summary_json(summary) for summary in history])
        return
    for summary in history:
        began = datetime.fromtimestamp(summary.started).astimezone().strftime("%Y-%m-%d %H:%M")
        verdict = summary.verdict or ""
        put(f"{summary.id}  {began}  {summary.standing:<10} {verdict:<9} {clean(summary.name)}")


def _summary_json(summary: RunSummary) -> dict[str, object]:
    return {
        "run": summary.id,
        "name": summary.name,
        "started": summary.started,
        "standing": str(summary.standing),
        "outcome": summary.verdict,
    }
