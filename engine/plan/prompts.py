"""Prompts as templates: what fills their placeholders, and the hint that goes with them.

A value is put in as it is and never filled again, so that what one agent wrote cannot make another
one's prompt say anything but that.
"""

from collections.abc import Mapping, Sequence

from engine.plan.model import PlannedStep, PlannedWorker
from engine.spec.placeholders import placeholders, substitute
from engine.values import dataclass

LONGEST_VALUE = 64 * 1024
"""The most bytes one value puts into a prompt."""


@dataclass(frozen=True, kw_only=True)
class StepOutput:
    """The output of a finished step for those that wait for it: last message and branch."""

    output: str
    branch: str = ""


def fill(template: str, values: Mapping[str, str]) -> str:
    """The template with every known placeholder that has a value filled, in one pass.

    A value longer than 64 KiB is cut, and says so. `{{item}}` becomes the literal text `{item}`;
    all other braces stay.
    """

    def value_of(name: str) -> str | None:
        value = values.get(name)
        return None if value is None else cut(value)

    return substitute(template, value_of)


def cut(text: str, most: int = LONGEST_VALUE) -> str:
    """The text, or as much of its beginning as fits together with a line that says what is gone."""
    data = text.encode(errors="replace")
    if len(data) <= most:
        return text
    room = most - len(_CUT.format(bytes=len(data)).encode())
    kept = data[:room].decode(errors="ignore")
    return kept + _CUT.format(bytes=len(data) - len(kept.encode()))


_CUT = "\n[… cut here: {bytes} bytes more]"


def prompt_values(
    step: PlannedStep, worker: PlannedWorker, *, run: str, outputs: Mapping[str, StepOutput]
) -> dict[str, str]:
    """Return what fills the prompt of a worker; `outputs` has the steps it waits for, by name."""
    values = {
        "run": run,
        "step": step.name,
        "worker": str(worker.id),
        "replica": str(worker.id.index),
        "files": ", ".join(step.files),
    }
    if worker.item is not None:
        values["item"] = worker.item
    for name, given in outputs.items():
        values[f"steps.{name}.output"] = given.output
        values[f"steps.{name}.branch"] = given.branch
    return values


def command_environment(step: PlannedStep, worker: PlannedWorker, *, run: str) -> dict[str, str]:
    """Return the environment of a command step.

    Its command line is never filled: a value in a shell command is run by the shell, whatever it is
    quoted with.
    """
    environment = {
        "PLAIT_RUN": run,
        "PLAIT_STEP": step.name,
        "PLAIT_WORKER": str(worker.id),
        "PLAIT_REPLICA": str(worker.id.index),
    }
    return environment if worker.item is None else environment | {"PLAIT_ITEM": worker.item}


def hint_sentence(count: int) -> str:
    """The sentence that tells an agent how many sub-agents it may spawn."""
    return f"You may spawn up to {count} concurrent sub-agents or workers for this step."


def holding_sentence(folders: Sequence[str]) -> str:
    """The sentence that tells an agent that its worktree holds only a part of the repository."""
    named = ", ".join(f"`{folder}`" for folder in folders[:_MOST_NAMED])
    more = len(folders) - _MOST_NAMED
    named += f" and {more} more" if more > 0 else ""
    return (
        f"This worktree holds only some folders of the repository: {named or 'none'}. The other "
        "files are in git: read one with `git show HEAD:PATH`, or add its folder with "
        "`git sparse-checkout add FOLDER`. New files elsewhere need `git add --sparse`."
    )


_MOST_NAMED = 20

__all__ = [
    "LONGEST_VALUE",
    "StepOutput",
    "command_environment",
    "cut",
    "fill",
    "hint_sentence",
    "holding_sentence",
    "placeholders",
    "prompt_values",
]
