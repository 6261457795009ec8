"""Sentences about one worker: on its card, in its row, on the message line."""

import re
from collections.abc import Callable, Sequence

from engine.limits import KINDS, Dimension, Enforcement, Level
from engine.messages.logs import LogKind
from engine.messages.results import Badge, Change, StepView, Verdict, WorkerView
from engine.phases import Phase, StopCause
from tui.ink import TEXT, Ink, Role, Row, Span, width_of, words
from tui.words.clean import LONGEST, clean_name
from tui.words.cutting import cut_command
from tui.words.figures import MINUS, NEARLY, clock, lasting, memory, remaining, some, tokens

_LIMITS = {kind.cause: kind.called for kind in KINDS.values()}
_CAUSES = {
    StopCause.USER: "by you",
    StopCause.FAIL_FAST: "its step failed fast",
    StopCause.RACE_LOST: "another worker was faster",
    StopCause.NOT_CHOSEN: "another candidate was chosen",
    StopCause.BASE_GONE: "its base is gone",
    StopCause.SHUTDOWN: "the engine shut down",
    StopCause.STALLED: "no progress for too long",
    StopCause.KEEPER_LOST: "its keeper was lost; its work is kept",
    StopCause.HOST_LOST: "its host was lost",
    StopCause.CHECK: "the check failed",
    StopCause.NO_CHANGE: "it changed nothing",
    StopCause.DONE: "its work was done, but its program did not exit",
    StopCause.AGENT: "the agent reported an error",
    StopCause.SETUP: "the workspace could not be set up",
}


def limit_name(cause: StopCause | None) -> str:
    """The limit that a cause names; empty where it is none."""
    return _LIMITS.get(cause, "") if cause else ""


def cause_text(worker: WorkerView) -> str:
    """Say why it was stopped or failed, in a few words."""
    if worker.cause is None:
        return worker.error or "the cause is unknown"
    limit = limit_name(worker.cause)
    return f"stopped at its {limit}" if limit else _CAUSES[worker.cause]


def why_failed(worker: WorkerView, step: StepView) -> str:
    """Say why it failed, in a few words; of a command, with which exit code."""
    if not step.command or worker.cause is not StopCause.AGENT:
        return cause_text(worker)
    return f"its command failed{_with_code(worker)}"


def passed_text(worker: WorkerView, step: StepView) -> str:
    """Say that the command of its step passed and left nothing to merge; empty where it did not."""
    is_passed = bool(step.command) and worker.phase is Phase.FINISHED
    return f"passed{_with_code(worker)}" if is_passed else ""


def _with_code(worker: WorkerView) -> str:
    return "" if worker.exit_code is None else f" with exit code {worker.exit_code}"


def level_of(worker: WorkerView, dimension: Dimension) -> Enforcement | None:
    """Return how a dimension holds for this worker, if its engine said so."""
    return next((held for held in worker.enforcement if held.dimension is dimension), None)


def wall_level(worker: WorkerView, dimension: Dimension) -> Level:
    """The level of a dimension; none where nothing is known to hold."""
    held = level_of(worker, dimension)
    return held.level if held else Level.NONE


def widest_value(worker: WorkerView) -> int:
    """Return the cells that the values of its limits take, for a column of them."""
    return max((width_of(held.value or held.mechanism) for held in worker.enforcement), default=0)


def hit_figure(worker: WorkerView) -> str:
    """The limit that was hit, as its figure: `1.0G`."""
    hit = worker.limit_hit
    if hit is None:
        return ""
    if hit.dimension in {Dimension.MEMORY, Dimension.DISK} and hit.unit.lower() in {"mb", "mib"}:
        return memory(hit.allowed)
    if hit.dimension is Dimension.TIME:
        return lasting(hit.allowed)
    return f"{hit.allowed:g} {hit.unit}".strip()


def telling(text: str) -> str:
    """A text without the lines that only decorate it."""
    return "\n".join(line for line in text.split("\n") if any(map(str.isalnum, line)))


def change_text(worker: WorkerView, *, is_shown: bool = False) -> Row:
    """Say how much it changed, and what of it no diff shows: `8 files +88 -20 1 binary`.

    Where the diff itself is shown, that says what it lacks. Of a worker that works it is the
    change so far.
    """
    change = present_change(worker)
    if change is None:
        return ()
    row: list[Span] = [Span(some(change.files, "file"), TEXT)]
    if lines := line_counts(change):
        row += [Span(" "), *lines]
    if not is_shown and (unshown := unshown_in(change)):
        row += [Span(" "), Span(unshown, Ink(Role.WAITING))]
    return tuple(row)


def line_counts(change: Change | None) -> Row:
    """Return the lines added and removed; nothing where no line differs."""
    if change is None:
        return ()
    added = Span(f"+{change.insertions}", Ink(Role.ADDED))
    removed = Span(f"{MINUS}{change.deletions}", Ink(Role.REMOVED))
    shown = [span for span in (added, removed) if span.text[1:] != "0"]
    return (shown[0], Span(" "), shown[1]) if len(shown) > 1 else tuple(shown)


_COLLECTED_LATER = frozenset({Phase.PREPARING, Phase.RUNNING, Phase.STOPPING, Phase.COLLECTING})


def present_change(worker: WorkerView) -> Change | None:
    """Return its change; of an attempt that is not collected yet, the one that was seen last."""
    return worker.so_far if worker.phase in _COLLECTED_LATER else worker.change


def unshown_in(change: Change) -> str:
    """Say what of a change no diff shows, in a few words; nothing where all is shown."""
    parts = [f"{change.binary} binary"] if change.binary else []
    return ", ".join([*parts, "diff cut"] if change.is_cut else parts)


def verdict_text(worker: WorkerView) -> str:
    """Say how far its success is proved, in the words of the engine's verdicts."""
    check = worker.check
    if check is not None and not check.passed:
        return "check failed on the exact tree" if check.is_exact else "check failed"
    unproved = "check not run" if check is None else "check stale"
    if worker.verdict is None or worker.verdict is Verdict.CLAIMED:
        return f"{worker.verdict}, {unproved}" if worker.verdict else unproved
    return str(worker.verdict)


def check_text(worker: WorkerView) -> Row:
    """Say what is proved of it, and what the check said."""
    check = worker.check
    verdict = verdict_text(worker)
    if check is None:
        return words(Span("· ", Ink(Role.MUTED)), verdict)
    mark = Span("✓ ", Ink(Role.DONE)) if check.passed else Span("✗ ", Ink(Role.FAILED))
    if check.passed and worker.is_check_stale:
        mark = Span("· ", Ink(Role.WAITING))
    row = [mark, Span(verdict, TEXT)]
    if check.summary and check.summary not in {"passed", "failed"}:
        row.append(Span(f"{',' if check.passed else ':'} {check.summary}", TEXT))
    if worker.is_check_stale and not check.passed:
        row += [Span(" "), Span("stale", Ink(Role.WAITING, bold=True))]
    return tuple(row)


def tool_text(worker: WorkerView, now: float) -> str:
    """Return the tool that runs now, behind the time for which it has been running.

    A title that begins with the tool's name says both.
    """
    said = _tool_said(worker.tool or "")
    if not said or worker.tool_since is None:
        return said
    return f"{lasting(now - worker.tool_since)} {said}"


def _tool_said(tool: str) -> str:
    name, _, title = tool.partition("  ")
    has_name = title.casefold().startswith(name.casefold())
    return title if title and has_name else f"{name} {title}".rstrip()


_OF_AGENT = frozenset({LogKind.SAYS, LogKind.THOUGHT, LogKind.TOOL})


def doing_text(worker: WorkerView, now: float) -> str:
    """Return what it does, else what it said or did last; output where nothing else is known."""
    if tool := tool_text(worker, now):
        return tool
    told = (
        deed for deed in reversed(worker.lately) if deed.kind in _OF_AGENT and deed.text.strip()
    )
    deed = next(told, None)
    if deed is None:
        return worker.last_lines[-1] if worker.last_lines else ""
    if deed.kind is LogKind.TOOL:
        return ", ".join(filter(None, (" ".join(_tool_said(deed.text).split()), deed.result)))
    return deed.text.strip().split("\n")[0]


def mind_text(worker: WorkerView) -> str:
    """Say how full its context is, and how often its model has answered."""
    parts = []
    if worker.context is not None:
        share = f" of {tokens(worker.context_window)}" if worker.context_window else ""
        parts.append(f"context {tokens(worker.context)}{share}")
    if worker.turns:
        parts.append(some(worker.turns, "turn"))
    return ", ".join(parts)


def left_row(worker: WorkerView) -> Row:
    """Return what is left of its time and of its budgets, where it has some and tells its use.

    Tokens out of a cache do not count, and it is not known here how many they are.
    """
    if worker.phase is not Phase.RUNNING:
        return ()
    used, limits = worker.own_usage, worker.limits
    shown = (
        _left(used.active_s, limits.time_seconds, remaining),
        _left(used.usd, limits.budget_usd, lambda usd: f"${max(usd, 0.0):.2f}"),
        _left(used.tokens, limits.budget_tokens, lambda n: f"≥{tokens(int(max(n, 0)))} tokens"),
    )
    row = [span for left in shown if left for span in (Span(", "), left)]
    return words("left  ", *row[1:]) if row else ()


def _left(used: float | None, limit: float | None, text: Callable[[float], str]) -> Span | None:
    """Return what is left of a limit, hot where that is little."""
    if used is None or not limit:
        return None
    is_little = used / limit >= NEARLY
    return Span(text(limit - used), Ink(Role.LIMIT, bold=True) if is_little else TEXT)


_BAD_ENDING = re.compile(r"exit [1-9]|fail|error|denied", re.IGNORECASE)


def is_bad_ending(result: str) -> bool:
    """Return whether the short result of a tool tells that it failed."""
    return _BAD_ENDING.search(result) is not None


def question_text(worker: WorkerView) -> str:
    """Return the first line of what it asks, or as much of it as any row could show."""
    return worker.questions[0].text.split("\n", 1)[0][:LONGEST] if worker.questions else ""


def now_text(
    worker: WorkerView, step: StepView, now: float, cells: int, *, is_counted: bool = False
) -> str:
    """Say what goes on, for a row of a table: one phrase without colors.

    A row that counts what was changed elsewhere has it counted once.
    """
    if is_counted and worker.phase is Phase.REVIEWING:
        return _verdict(worker)
    if worker.questions and not worker.phase.is_settled:
        return cut_command(question_text(worker), cells)
    phrase = _PHRASES.get(worker.phase)
    if phrase:
        return phrase(worker, step)
    return badge_text(worker, now) or cut_command(doing_text(worker, now), cells)


def _failure_text(worker: WorkerView, step: StepView) -> str:
    figure = hit_figure(worker)
    if worker.cause is StopCause.AGENT and (said := telling(worker.error or "")):
        first = said.split("\n")[0]
        return first.removeprefix("the command ended with ") if step.command else first
    return f"{limit_name(worker.cause)}, {figure}" if figure else cause_text(worker)


def _settled_text(worker: WorkerView, _: StepView) -> str:
    return cause_text(worker) if worker.cause else ""


_PHRASES: dict[Phase, Callable[[WorkerView, StepView], str]] = {
    Phase.FAILED: _failure_text,
    Phase.CONFLICTED: lambda worker, _: conflict_text(worker),
    Phase.REVIEWING: lambda worker, _: _review_text(worker),
    Phase.BACKING_OFF: lambda worker, _: (
        f"attempt {worker.attempt + 1} of {worker.attempts_allowed}"
    ),
    Phase.WAITING: lambda _, step: (
        f"for {', '.join(step.dependencies)}" if step.dependencies else ""
    ),
    Phase.QUEUED: lambda _, __: "for a free slot",
    Phase.CANCELLED: _settled_text,
    Phase.DISCARDED: _settled_text,
    Phase.SKIPPED: _settled_text,
    Phase.FINISHED: lambda worker, step: (
        worker.ending or passed_text(worker, step) or "nothing to merge"
    ),
    Phase.LANDED: lambda worker, _: "".join(span.text for span in change_text(worker)),
}


def edits_text(worker: WorkerView) -> str:
    """The files whose edits keep it from landing: the first one, and how many more."""
    first, *more = worker.in_the_way
    return f"{first} and {some(len(more), 'file')} more" if more else first


def undone_text(worker: WorkerView) -> str:
    """Say that its landing was undone, and by whom; empty where it was not."""
    if worker.undone is None:
        return ""
    by, target = clean_name(worker.undone.by), clean_name(worker.undone.target)
    return f"{by} undid its landing on {target}" if by else f"its landing on {target} was undone"


def conflict_text(worker: WorkerView) -> str:
    """Say where it conflicts: the file, or how many."""
    files = some(len(worker.conflicts), "file")
    return f"in {worker.conflicts[0]}" if len(worker.conflicts) == 1 else f"in {files}"


def _verdict(worker: WorkerView) -> str:
    """Say what its check said."""
    is_stale = worker.is_check_stale and worker.check and not worker.check.passed
    return f"{verdict_text(worker)}{' (stale)' if is_stale else ''}"


def _review_text(worker: WorkerView) -> str:
    verdict, change = _verdict(worker), worker.change
    if change and change.insertions:
        verdict += f" +{change.insertions}"
    if change and change.deletions:
        verdict += f" {MINUS}{change.deletions}"
    if change and (unshown := unshown_in(change)):
        verdict += f" {unshown}"
    return verdict


_HEARD = {
    "now": "it reads this between its tools",
    "after_turn": "it reads this after its turn",
    "by_resume": "it reads this when it resumes, after its current task",
    "no": "it reads nothing while it works; its next attempt gets this",
}


def how_heard(workers: Sequence[WorkerView]) -> str:
    """Say when the agents read a message."""
    ways = {_HEARD.get(worker.hears, "it reads this as soon as it can") for worker in workers}
    return ways.pop() if len(ways) == 1 else "each reads this as soon as it can"


def badge_text(worker: WorkerView, now: float) -> str:
    """The badge that matters most right now, as words; empty where there is none."""
    if Badge.NEEDS_LOGIN in worker.badges:
        return "needs a login"
    if Badge.RATE_LIMITED in worker.badges:
        until = worker.rate_limited_until
        return f"rate limit until {clock(until, now)[:5]}" if until else "rate limit"
    if Badge.STALLED in worker.badges:
        since = worker.last_output_at
        return f"stalled, no output for {lasting(now - since)}" if since else "stalled"
    if Badge.BASE_OUTDATED in worker.badges:
        return "its base is outdated"
    return ""


def badge_row(worker: WorkerView, now: float) -> Row:
    """The badge row of a tile: a badge, else a predicted clash; empty where there is neither."""
    if Badge.VIOLATION in worker.badges:
        path = worker.violations[0] if worker.violations else "something outside its worktree"
        return (Span("▲ ", Ink(Role.FAILED, bold=True)), Span(f"touched {path}", Ink(Role.FAILED)))
    text = badge_text(worker, now)
    if text:
        limited = Badge.RATE_LIMITED in worker.badges
        mark, role = ("≤", Role.LIMIT) if limited else ("…", Role.WAITING)
        return (Span(f"{mark} ", Ink(role, bold=True)), Span(text, Ink(role, bold=True)))
    return clash_row(worker)


def clash_row(worker: WorkerView) -> Row:
    """A predicted conflict with another worker."""
    if not worker.clashes:
        return ()
    clash = worker.clashes[0]
    ink = Ink(Role.CLASH)
    file = clash.paths[0].rpartition("/")[2] if clash.paths else ""
    where = f" in {file}" if file else ""
    return words(Span("≈ clash ", ink), Span(clash.other, TEXT), where)
