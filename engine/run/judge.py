"""Judge a command: it becomes facts, or is refused with a reason."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from engine.agents.contract import Steering
from engine.agents.permitting import command_in
from engine.agents.registry import adapters, heard
from engine.core import facts as f
from engine.core import run_facts as rf
from engine.core.outcome import candidates, must_land_first
from engine.core.state import RunState, Worker, dependents
from engine.ids import WOVEN, WorkerId, meant
from engine.messages import commands as c
from engine.messages.asked import Question, is_allowing
from engine.messages.results import Badge, Moment, Outcome
from engine.phases import HOLDING, Phase, StopCause
from engine.plan.model import AgentChoice, PlannedStep, RetryMode
from engine.review.moments import clock_time, moment_at
from engine.review.sight import is_seen, refused_unseen
from engine.speaking import speaker
from engine.spec.nearest import unmeant
from engine.values import dataclass

_RETRIABLE = frozenset(
    {
        Phase.REVIEWING,
        Phase.CONFLICTED,
        Phase.BACKING_OFF,
        Phase.FAILED,
        Phase.CANCELLED,
        Phase.DISCARDED,
        Phase.SKIPPED,
        Phase.FINISHED,
    }
)


_WAITING_FOR_REVIEW = frozenset({Phase.REVIEWING, Phase.CONFLICTED})


@dataclass(frozen=True)
class Ruling:
    """The verdict on a command."""

    facts: tuple[f.Fact, ...]
    note: str


Verdict = Ruling | c.Refused
_AGENTS = "Name an agent of the manifest, or one that `plait agents` lists."
_IS_STOPPED = c.Refused("the run was stopped", hint="Resume it first.")


def judge(
    state: RunState, command: c.Command, *, at: float, moments: Sequence[Moment] = ()
) -> Verdict:
    """Return the facts that carry a command out, or why not; a retry may name a moment."""
    name = getattr(command, "worker", None)
    if name is None:
        return _RUN_COMMANDS[type(command)](state, command, at)
    found = find_worker(state, name)
    if isinstance(found, c.Refused):
        return found
    # Asked in the turn that makes the facts: no new change can slip in between.
    if not is_seen(found, getattr(command, "seen", None)):
        return refused_unseen(found)
    about = found.about(at)
    verdict = _WORKER_COMMANDS[type(command)](state, found, command, about)
    if isinstance(command, c.RetryWorker) and isinstance(verdict, Ruling):
        return _from_moment(verdict, command, moments)
    return verdict


def find_worker(state: RunState, name: str) -> Worker | c.Refused:
    """Return the worker a name means: `step/worker_1`, an unambiguous tail, or a label."""
    name = name.removeprefix(f"{state.run}/").partition("@")[0]
    with suppress(ValueError):
        if exact := state.workers.get(WorkerId.parse(name)):
            return exact
    found = meant({worker: state.label_of(worker) for worker in state.workers}, name)
    if len(found) == 1:
        return state.workers[found[0]]
    reason, hint = unmeant(name, found, state.workers)
    return c.Refused(reason, hint=hint, choices=tuple(map(str, found or state.workers)))


def _not_now(w: Worker, deed: str) -> c.Refused:
    return c.Refused(f"{w.id} is {w.phase}: {deed}")


def _stop(_: RunState, w: Worker, command: c.StopWorker, about: f.About) -> Verdict:
    if w.phase.is_settled:
        return _not_now(w, "there is nothing to stop")
    note = "killed with all its processes" if command.is_kill else "asked to stop; its work is kept"
    return Ruling((f.StopRequested(**about, is_kill=command.is_kill),), note)


_BEGINS = {
    RetryMode.FRESH: "fresh: without its earlier work and session",
    RetryMode.CONTINUE: "continues with its earlier work, and its session where it can",
    RetryMode.RESUME: "resumes where it stopped",
}


def _retry(state: RunState, w: Worker, command: c.RetryWorker, about: f.About) -> Verdict:
    if w.phase not in _RETRIABLE:
        return _not_now(w, "only a worker that has ended can be retried")
    lost = _is_decided_without(state, w.id)
    if lost is not None:
        return lost
    agent = command.agent
    if isinstance(agent, str):
        agent = agent_named(state, agent)
        if agent is None:
            return c.Refused(f"there is no agent {command.agent!r}", hint=_AGENTS)
    fact = f.RetryRequested(
        **about,
        mode=command.begins,
        feedback=command.feedback,
        prompt=command.prompt,
        limits=command.limits and command.limits.over(state.limits_of(w.id)),
        agent=agent,
        is_alone=True,
    )
    note = f"attempt {w.attempt.number + 1}, {_BEGINS[command.begins]}{_of_siblings(state, w.id)}"
    return Ruling((fact,), note)


def _of_siblings(state: RunState, worker: WorkerId) -> str:
    """Say what happens to siblings that fail-fast stopped; nothing if it stopped none."""
    if not state.steps[worker.step].has_failed_fast:
        return ""
    others = [w for w in state.workers_of(worker.step) if w.id != worker]
    stopped = sum(w.cause is StopCause.FAIL_FAST for w in others)
    failed = [str(w.id) for w in others if w.outcome is Outcome.FAILED]
    if not stopped:
        return ""
    who = "the worker" if stopped == 1 else f"the {stopped} workers"
    begin = "starts" if stopped == 1 else "start"
    when = f"it and {', '.join(failed)} have succeeded" if failed else "it has succeeded"
    return f"; {who} stopped by fail-fast {begin} again once {when}"


def _from_moment(ruling: Ruling, command: c.RetryWorker, moments: Sequence[Moment]) -> Verdict:
    """Return the ruling; a retry that names a moment begins from there."""
    if command.at is None:
        return ruling
    start = moment_at(moments, command, command.at)
    if isinstance(start, c.Refused):
        return start
    facts = [replace(one, start=start) for one in ruling.facts if isinstance(one, f.RetryRequested)]
    note = f"{ruling.note}, from attempt {start.attempt} as it was {clock_time(start.at)}"
    return Ruling(tuple(facts), note)


def _is_decided_without(state: RunState, worker: WorkerId) -> c.Refused | None:
    """Refuse another attempt that would stop at once: its step has all it needs."""
    step = state.plan.step(worker.step)
    chosen = state.steps[step.name].chosen
    if chosen is not None and chosen != worker and _succeeded(state.workers[chosen]):
        return c.Refused(f"{chosen} is chosen", hint=f"Reject {chosen} first.")
    successes = sum(
        _succeeded(other) for other in state.workers_of(step.name) if other.id != worker
    )
    if step.policy.is_won(successes, len(step.workers)):
        return c.Refused(
            f"{step.name} has all the successes it needs; plait would stop another attempt at once"
        )
    return None


def _succeeded(w: Worker) -> bool:
    return w.outcome is Outcome.SUCCESS


def agent_named(state: RunState, name: str) -> AgentChoice | None:
    """Return the agent of that name among the run's, or an adapter of that name."""
    for agent in state.plan.agents:
        if agent.name == name:
            return agent
    return AgentChoice(name=name, adapter=name) if name in adapters() else None


def _answer(state: RunState, w: Worker, command: c.Answer, about: f.About) -> Verdict:
    if not w.attempt.questions:
        return _not_now(w, "it has no question")
    wanted = command.question or w.attempt.questions[0].id
    asked = next((q for q in w.attempt.questions if q.id == wanted), None)
    if asked is None or command.asked not in {None, asked.text}:
        return c.Refused(f"{w.id} no longer asks this", hint="Look at what it asks now.")
    if asked.is_permission and (refused := _not_allowed(state, w, asked, command)):
        return refused
    is_kept = command.is_for_run or command.scope is not None
    if asked.needs_human and is_kept and not command.pattern:
        return c.Refused(
            "this answer cannot be kept: plait knows the request only from a terminal, or it is "
            "for several commands",
            hint="Answer it once.",
        )
    fact = f.HumanAnswered(
        **about,
        question=wanted,
        answer=command.answer,
        is_for_run=command.is_for_run,
        scope=command.scope,
        pattern=command.pattern if command.scope else "",
    )
    return Ruling((fact,), f"{w.id} gets the answer {command.answer!r}")


def _not_allowed(
    state: RunState, w: Worker, asked: Question, command: c.Answer
) -> c.Refused | None:
    """Refuse to allow another command than the client runs, or a request that nobody has read."""
    is_kept = command.is_for_run or command.scope is not None
    if command_in(command.answer):
        if not asked.is_editable:
            agent = state.agent_of(w.id)
            who = agent.name if agent else "this agent"
            return c.Refused(
                f"{who} cannot run an edited command",
                hint="Deny it with words: `deny: run this instead`.",
            )
        if is_kept:
            return c.Refused("an edited command can only be allowed once, not for the run")
    if not asked.is_hiding or not is_allowing(command.answer):
        return None
    if is_kept:
        return c.Refused("it hides characters, so it can only be allowed once, not for the run")
    if command.asked is None:
        return c.Refused(
            f"the request of {w.id} hides characters",
            hint="The console's Inbox shows them. Read the request there, then allow it.",
        )
    return None


_ON_THEIR_WAY = {
    Steering.NOW: "the message is on its way",
    Steering.AFTER_TURN: "it reads this after its current turn",
    Steering.BY_RESUME: "it reads this when it resumes, after its current task",
    Steering.NO: "it reads nothing while it works; its next attempt gets this",
}


def _steer(state: RunState, w: Worker, command: c.Steer, about: f.About) -> Verdict:
    if w.phase is not Phase.RUNNING:
        return _not_now(w, "it reads no messages; retry it with feedback instead")
    agent = state.agent_of(w.id)
    note = _ON_THEIR_WAY[heard(agent) if agent is not None else Steering.NO]
    return Ruling((f.AgentSteered(**about, text=command.text),), note)


def _interrupt(_: RunState, w: Worker, _command: c.Interrupt, about: f.About) -> Verdict:
    if w.phase is not Phase.RUNNING:
        return _not_now(w, "there is nothing to interrupt")
    return Ruling((f.AgentInterrupted(**about),), "its turn is interrupted")


def _approve(_: RunState, w: Worker, _command: c.Approve, about: f.About) -> Verdict:
    if w.phase is not Phase.REVIEWING:
        return _not_now(w, "there is nothing to approve")
    if Badge.APPROVED in w.badges:
        return Ruling((), "it is approved already")
    return Ruling((f.ApprovalNoted(**about),), "approved; land it when you are ready")


def _reject(_: RunState, w: Worker, _command: c.Reject, about: f.About) -> Verdict:
    if w.phase not in {Phase.REVIEWING, Phase.CONFLICTED}:
        return _not_now(w, "there is nothing to reject")
    return Ruling((f.Rejected(**about),), "rejected; the change stays on its ref")


def _choose(state: RunState, w: Worker, _command: c.Choose, about: f.About) -> Verdict:
    step = state.plan.step(w.id.step)
    if not step.has_candidates:
        return c.Refused(f"{step.name} has no candidates to choose between")
    if w.id not in candidates(state, step):
        return _not_now(w, "it has no finished change to choose")
    if state.steps[step.name].chosen is not None:
        chosen = state.steps[step.name].chosen
        return c.Refused(f"{chosen} is chosen already", hint=f"Reject {chosen} first.")
    return Ruling(
        (f.Chosen(**about),), "chosen; the others are stopped, and stay on their branches"
    )


def _land(state: RunState, w: Worker, command: c.Land, about: f.About) -> Verdict:
    if w.phase is Phase.LANDING:
        return c.Refused(f"{w.id} is landing already")
    if w.phase is not Phase.REVIEWING or w.outcome is not Outcome.SUCCESS:
        return _not_now(w, "there is nothing to land")
    below = must_land_first(state, w.id)
    if below:
        names = ", ".join(map(str, below))
        return c.Refused(
            f"{w.id} is stacked on {names}", hint=f"Land {names} first.", choices=(names,)
        )
    if Badge.VIOLATION in w.badges:
        return c.Refused(
            f"{w.id} changed files outside its tree: {', '.join(w.attempt.violations)}",
            hint=f"See what changed there. Its work is on {w.begun.branch}, for you to merge"
            " by hand.",
        )
    fact = f.Approved.of(command.wish, about)
    return Ruling((fact,), "merging, checking, then moving the target")


def _undo(state: RunState, w: Worker, _command: c.UndoLanding, about: f.About) -> Verdict:
    if w.landing.is_undone:
        return Ruling((), f"the landing of {w.id} is undone already")
    if w.phase is not Phase.LANDED or w.landing.prepared is None:
        return _not_now(w, "there is no landing to undo")
    above = [
        str(other.id)
        for other in state.workers.values()
        if other.phase is Phase.LANDED and (w.id, w.attempt.number) in other.attempt.bases
    ]
    if above:
        names = ", ".join(above)
        return c.Refused(f"{names} landed on top of {w.id}", hint=f"Undo {names} first.")
    return Ruling((f.UndoRequested(**about, by=speaker()),), f"undoing the landing of {w.id} …")


def _set_limits(state: RunState, w: Worker, command: c.SetLimits, about: f.About) -> Verdict:
    limits = command.limits.over(state.limits_of(w.id))
    return Ruling(
        (f.LimitsSet(**about, limits=limits),),
        "the limits apply from now on, and to later attempts",
    )


def _pause(state: RunState, _command: c.Pause, at: float) -> Verdict:
    if state.is_paused:
        return c.Refused("the run is paused already")
    return Ruling((rf.PauseRequested(at=at),), "no new worker starts; running workers continue")


def _resume(state: RunState, _command: c.Resume, at: float) -> Verdict:
    is_held = state.is_paused or state.stop is not None
    facts: tuple[f.Fact, ...] = (rf.ResumeRequested(at=at),) if is_held else ()
    facts += tuple(
        f.BackoffElapsed(**w.about(at)) for w in state.workers.values() if _wants_login(w)
    )
    return Ruling(facts, "continues") if facts else c.Refused("the run is not paused")


def _pause_worker(_: RunState, w: Worker, _command: c.Pause, about: f.About) -> Verdict:
    if w.phase is not Phase.RUNNING:
        return _not_now(w, "only a running agent can be paused")
    return Ruling((f.WorkerPaused(**about),), "frozen")


def _resume_worker(_: RunState, w: Worker, _command: c.Resume, about: f.About) -> Verdict:
    if _wants_login(w):
        return Ruling((f.BackoffElapsed(**about),), "continues with the current login")
    if Badge.PAUSED not in w.badges:
        return _not_now(w, "it is not paused")
    return Ruling((f.WorkerResumed(**about),), "continues")


def _wants_login(w: Worker) -> bool:
    return w.phase is Phase.BACKING_OFF and Badge.NEEDS_LOGIN in w.badges


def _stop_run(state: RunState, command: c.StopRun, at: float) -> Verdict:
    phases = {w.phase for w in state.workers.values()}
    if all(phase.is_settled for phase in phases):
        return c.Refused("there is nothing to stop: every worker has settled")
    if all(phase.is_settled or phase in _WAITING_FOR_REVIEW for phase in phases):
        return c.Refused(
            "no worker is running; changes that wait for review stay",
            hint="Land them, or discard them with `plait reject`.",
        )
    return Ruling(
        (rf.RunStopRequested(is_kill=command.is_kill, at=at, stops_landings=True),),
        "stopping everything that runs",
    )


def _revoke(state: RunState, command: c.RevokeAnswer, at: float) -> Verdict:
    if all(rule.number != command.number for rule in state.rules):
        return c.Refused(f"there is no rule {command.number}", hint="`plait rules` lists them.")
    return Ruling(
        (rf.AnswerRevoked(number=command.number, at=at),), f"rule {command.number} is revoked"
    )


def _set_cap(_: RunState, command: c.SetCap, at: float) -> Verdict:
    if command.cap < 1:
        return c.Refused("at least one worker must be allowed", hint="Pause the run instead.")
    workers = "1 worker" if command.cap == 1 else f"{command.cap} workers"
    return Ruling((rf.CapSet(cap=command.cap, at=at),), f"up to {workers} at once")


def _add_step(state: RunState, command: c.AddStep, at: float) -> Verdict:
    new = command.step
    if new.name in state.steps:
        return c.Refused(f"there is a step {new.name!r} already")
    ids = [planned.id for planned in new.workers]
    if not ids or len(set(ids)) < len(ids) or {one.step for one in ids} != {new.name}:
        return c.Refused(f"{new.name!r} has no workers, or workers named after another step")
    if state.stop is not None:
        return _IS_STOPPED
    unknown = [name for name in command.step.dependencies if name not in state.steps]
    if unknown:
        return c.Refused(f"this run has no step {' and no step '.join(unknown)}")
    return Ruling((rf.StepAdded(step=command.step, at=at),), "added")


def _add_worker(state: RunState, command: c.AddWorker, at: float) -> Verdict:
    if command.step not in state.steps:
        return c.Refused(f"{command.step!r} is not a step of this run")
    if state.stop is not None:
        return _IS_STOPPED
    step = state.plan.step(command.step)
    last = next(p for p in reversed(step.workers) if p.id.index != WOVEN)
    agent = last.agent
    if command.agent is not None:
        agent = agent_named(state, command.agent)
        if agent is None:
            return c.Refused(f"there is no agent {command.agent!r}", hint=_AGENTS)
    label = agent.name if agent else last.label
    index = max(planned.id.index for planned in step.workers) + 1
    new = replace(last, id=WorkerId(step.name, index), agent=agent, label=label)
    refused = _is_decided_without(state, new.id) or _would_break_off(state, step)
    if refused is not None:
        return refused
    return Ruling((rf.WorkerAdded(planned=new, at=at),), f"{new.id} joins")


def _would_break_off(state: RunState, step: PlannedStep) -> c.Refused | None:
    """Refuse a joiner that would reopen the step and stop what builds on it."""
    if state.steps[step.name].has_failed_fast:
        return c.Refused(
            f"{step.name} has failed", hint="Retry one of its workers; the others follow."
        )
    at_work = [
        str(w.id)
        for above in dependents(state.plan, step.name)
        for w in state.workers_of(above.name)
        if w.phase in HOLDING or (w.phase is Phase.BACKING_OFF and w.history.ran)
    ]
    if not at_work:
        return None
    names, is_one = ", ".join(at_work), len(at_work) == 1
    return c.Refused(
        f"{names} already {'builds' if is_one else 'build'} on {step.name} and would be stopped",
        hint=f"Wait until {'it ends' if is_one else 'they end'}, or add another step.",
    )


_RUN_COMMANDS: dict[type[Any], Callable[[RunState, Any, float], Verdict]] = {
    c.StopRun: _stop_run,
    c.Pause: _pause,
    c.Resume: _resume,
    c.SetCap: _set_cap,
    c.RevokeAnswer: _revoke,
    c.AddStep: _add_step,
    c.AddWorker: _add_worker,
}
_WORKER_COMMANDS: dict[type[Any], Callable[[RunState, Worker, Any, f.About], Verdict]] = {
    c.StopWorker: _stop,
    c.RetryWorker: _retry,
    c.Answer: _answer,
    c.Steer: _steer,
    c.Interrupt: _interrupt,
    c.Approve: _approve,
    c.Reject: _reject,
    c.Choose: _choose,
    c.Land: _land,
    c.UndoLanding: _undo,
    c.SetLimits: _set_limits,
    c.Pause: _pause_worker,
    c.Resume: _resume_worker,
}
