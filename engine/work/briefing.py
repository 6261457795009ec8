"""Brief a worker: fill its prompt, and tell it what happened to the attempt before."""

from collections.abc import Sequence
from datetime import UTC, datetime

from engine.core.outcome import offers
from engine.core.state import RunState, Worker
from engine.ids import WorkerId
from engine.messages.diffs import ChangeDiff
from engine.messages.logs import LogKind, LogLine
from engine.plan.model import RetryMode
from engine.plan.prompts import StepOutput, fill, prompt_values

TOLD_CHECK_OUTPUT = 8 * 1024
TOLD_DIFF = 16 * 1024
TOLD_STORY = 4 * 1024
_TOLD_AS = {
    LogKind.SAYS: "",
    LogKind.OUTPUT: "",
    LogKind.TOOL: "used a tool: ",
    LogKind.ERROR: "failed: ",
    LogKind.YOU: "got the message: ",
}


def prompt_for(state: RunState, worker: WorkerId) -> str:
    """Return the prompt: a later one of the human's, else the plan's with values filled in."""
    asked = state.workers[worker].next.prompt
    if asked is not None:
        return asked
    step = state.plan.step(worker.step)
    planned = state.planned(worker)
    outputs = {
        upstream.name: output
        for upstream in state.plan.steps
        if (output := _output_of(state, upstream.name)) is not None
    }
    values = prompt_values(step, planned, run=state.run, outputs=outputs)
    return fill(planned.prompt, values)


def _output_of(state: RunState, step: str) -> StepOutput | None:
    """Return a step's output: the chosen worker's words; of several, each under its name."""
    offered = offers(state, state.plan.step(step))
    if not offered:
        return None
    workers = [state.workers[worker] for worker, _ in offered]
    if len(workers) == 1:
        return StepOutput(output=_said(workers[0]), branch=workers[0].begun.branch or "")
    text = "\n\n".join(f"{w.id}:\n{_said(w)}" for w in workers)
    return StepOutput(output=text, branch=" ".join(w.begun.branch or "" for w in workers).strip())


def _said(w: Worker) -> str:
    return w.attempt.ended.text if w.attempt.ended else ""


def wants_prior_diff(w: Worker) -> bool:
    """Return whether an attempt that begins anew should see the change before it."""
    was_told = bool(w.next.failure or w.next.words) and w.next.start is None
    return was_told and w.next.previous is not None and w.change is not None


def wants_story(w: Worker) -> bool:
    """Return whether the attempt goes on with an agent that has no memory of it."""
    is_interrupted = w.next.mode is RetryMode.RESUME and not w.next.is_turn
    return is_interrupted and w.session.id is None and w.next.previous is not None


def story_of(lines: Sequence[LogLine]) -> str:
    """Return the end of what an attempt said and did, for its successor."""
    told = [f"- {_TOLD_AS[line.kind]}{line.text}" for line in lines if line.kind in _TOLD_AS]
    text = "\n".join(told)
    return text if len(text) <= TOLD_STORY else f"[…]{text[-TOLD_STORY:]}"


def feedback_for(w: Worker, prior: ChangeDiff | None = None, story: str = "") -> str:
    """Return feedback on the last attempt: its failure, its change, the reviewer's words."""
    parts = []
    if start := w.next.start:
        then = datetime.fromtimestamp(start.at, UTC).isoformat(" ", "seconds")
        was = f"Your files are as attempt {start.attempt} of this work left them at {then}."
        parts.append(f"{was} They do not include what it did later.")
    if story:
        parts.append(f"Before it was interrupted, the previous attempt did this:\n{story}")
    if w.next.failure:
        number = w.attempt.number
        parts.append(f"This is attempt {number}. The previous attempt failed: {w.next.failure}")
    if w.next.check_output:
        parts.append(f"The check said:\n{w.next.check_output[-TOLD_CHECK_OUTPUT:]}")
    if w.next.output_tail:
        parts.append(f"The last thing it said was:\n{w.next.output_tail}")
    if prior is not None and prior.files:
        parts.append(f"It had changed this:\n{_patch(prior)}")
    if w.next.words:
        parts.append(f"The reviewer says:\n{w.next.words}")
    return "\n\n".join(parts)


def _patch(change: ChangeDiff) -> str:
    lines: list[str] = []
    for file in change.files:
        lines.append(f"--- {file.path} ({file.kind})")
        for hunk in file.hunks:
            lines.append(f"@@ {hunk.where}".rstrip())
            lines += [f"{line.sign}{line.text}" for line in hunk.lines]
    text = "\n".join(lines).encode(errors="surrogateescape").decode(errors="replace")
    return text if len(text) <= TOLD_DIFF else f"{text[:TOLD_DIFF]}\n[… cut here]"
