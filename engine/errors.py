"""Name every failure in which something could not even be tried.

    EngineError                 hint: one sentence saying what to do
    ├ SpecError                 the manifest is wrong (a group of SpecProblem, every one of them)
    ├ PlanError                 CyclicDependency · UnknownDependency · ConcurrencyWithMatrix
    ├ WorkspaceError            BranchTaken · WorktreeBusy · DirtyTarget
    ├ OutOfRoom
    ├ GitFailed                 argv, exit_code, stderr
    ├ AgentError                AgentNotFound
    ├ HostLost                  attempt, last_offset
    ├ NoSuchRun                 run
    ├ MechanismMissing          dimension, wanted, found, fix
    ├ StoreError                LockHeld
    └ EngineBug                 IllegalTransition · InvariantBroken: ours, never caught

A conflict is a value, an agent's failure is a fact, a refused command is a return value: none of
them is here.
"""

import os
from collections.abc import Sequence

from engine.legible import legible_name
from engine.values import dataclass


class EngineError(Exception):
    """plait could not even try something; `hint` says what you can do."""

    hint: str = ""

    def __init__(self, sentence: str, *, hint: str = "") -> None:
        super().__init__(sentence)
        self.hint = hint or self.hint


def whole_of(error: BaseException) -> str:
    """Return what an error says and its hint, as two sentences; its type where it says nothing."""
    said, hint = str(error), getattr(error, "hint", "")
    return (f"{said.removesuffix('.')}. {hint}" if hint else said) or type(error).__name__


@dataclass(frozen=True, kw_only=True)
class SpecProblem:
    """One thing wrong with a manifest, and where: lines and columns count from 1."""

    file: str
    line: int
    column: int
    key: str
    message: str
    nearest: str | None = None

    def __str__(self) -> str:
        nearest = f"; did you mean {self.nearest!r}?" if self.nearest else ""
        subject = f"{self.key}: " if self.key else ""
        return f"{self.file}:{self.line}:{self.column}: {subject}{self.message}{nearest}"


class SpecError(EngineError):
    """The manifest is wrong; `problems` holds every problem found, in order of place."""

    hint = "Correct these lines; `plait validate FILE` checks again without running anything."

    def __init__(self, problems: Sequence[SpecProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class PlanError(EngineError):
    """The manifest is well-formed, but no plan can be made from it."""


class CyclicDependency(PlanError):
    """Steps wait for each other in a circle; `steps` names it, the first one again at its end."""

    hint = "Remove one of the dependencies in the cycle."

    def __init__(self, steps: Sequence[str]) -> None:
        self.steps = tuple(steps)
        super().__init__(f"steps wait for each other: {' → '.join(self.steps)}")


class UnknownDependency(PlanError):
    """A step depends on one that is not there."""

    def __init__(self, step: str, dependency: str, nearest: str | None = None) -> None:
        self.step, self.dependency, self.nearest = step, dependency, nearest
        guess = f"; did you mean {nearest!r}?" if nearest else ""
        super().__init__(f"step {step!r} depends on {dependency!r}, which is not a step{guess}")


class ConcurrencyWithMatrix(PlanError):
    """A step names both replicas and a matrix."""

    hint = (
        "Keep `strategy.matrix` for one worker per item, or `concurrency` for replicas; not both."
    )

    def __init__(self, step: str) -> None:
        self.step = step
        super().__init__(f"step {step!r} has both `concurrency` and `strategy.matrix`")


class WorkspaceError(EngineError):
    """A workspace could not be made, filled or removed."""


class SiteGone(WorkspaceError):
    """The place where a worker lives cannot be reached any more."""


class SiteSilent(WorkspaceError):
    """The place where a worker lives does not answer now; what is there may go on."""


class ChangeMoved(WorkspaceError):
    """A human decided about a change, and it is another one by now; nothing was done."""


class BranchTaken(WorkspaceError):
    """A branch that is needed belongs to someone else."""

    def __init__(self, branch: str, *, why: str, hint: str) -> None:
        self.branch = branch
        super().__init__(f"the branch {branch!r} {why}", hint=hint)


class WorktreeBusy(WorkspaceError):
    """A worktree is in use by somebody."""

    def __init__(self, path: str, by: str) -> None:
        self.path, self.by = path, by
        super().__init__(f"the worktree {path} is in use by {by}")


class DirtyTarget(WorkspaceError):
    """The checked-out target has edits of the user's where the landing would write."""

    hint = "Commit or stash them first."

    def __init__(self, paths: Sequence[bytes]) -> None:
        self.paths = tuple(paths)
        shown = ", ".join(legible_name(os.fsdecode(path)) for path in self.paths[:5])
        more = f" and {len(self.paths) - 5} more" if len(self.paths) > 5 else ""  # noqa: PLR2004
        super().__init__(f"your own edits are in the way: {shown}{more}")


class GitFailed(EngineError):
    """A git command of ours ended badly."""

    def __init__(self, argv: Sequence[str], exit_code: int, stderr: str) -> None:
        self.argv, self.exit_code, self.stderr = tuple(argv), exit_code, stderr
        said = stderr.strip() or "nothing"
        super().__init__(f"`{' '.join(self.argv)}` ended with {exit_code} and said: {said}")


class OutOfRoom(EngineError):
    """Storage cannot be written, so what was tried is to be tried again later."""


class AgentError(EngineError):
    """An agent could not be started or understood."""


class AgentNotFound(AgentError):
    """No agent of that name, or its program is not installed."""

    def __init__(self, name: str, *, hint: str = "") -> None:
        self.name = name
        super().__init__(f"the agent {name!r} was not found", hint=hint)


class HostLost(EngineError):
    """The place where an attempt ran is gone; `last_offset` is how far its recording was read."""

    def __init__(self, attempt: str, last_offset: int) -> None:
        self.attempt, self.last_offset = attempt, last_offset
        super().__init__(
            f"the host of {attempt} is gone; plait read its output up to {last_offset}"
        )


class NoSuchRun(EngineError):
    """A run was named that is not there, or none was named and there is none.

    `several` are the runs that a title means, where that is more than one.
    """

    def __init__(self, run: str, several: tuple[str, ...] = ()) -> None:
        self.run, self.several = run, several
        said = f"there is no run {run!r}" if run else "there is no run"
        hint = "`plait runs` lists them." if run else "Start one: `plait run`."
        if several:
            said = f"{run!r} matches {len(several)} runs"
            hint = f"Name one of: {', '.join(several[:8])}"
        super().__init__(said, hint=hint)


class MechanismMissing(EngineError):
    """Something must be enforced, and this machine cannot."""

    def __init__(self, *, dimension: str, wanted: str, found: str, fix: str) -> None:
        self.dimension, self.wanted, self.found, self.fix = dimension, wanted, found, fix
        super().__init__(f"{dimension}: {wanted} is required, found {found}", hint=fix)


class StoreError(EngineError):
    """A database or file of ours cannot be read or written."""


class UnstorableValue(StoreError):
    """A value has no form in a file, so trying again does not help: its maker made a mistake."""


class LockHeld(StoreError):
    """Another engine has this repository; `pid` and `socket` are its own, as far as known."""

    hint = "Attach to it with `plait attach`, or end it first."

    def __init__(self, path: str, *, pid: int | None = None, socket: str | None = None) -> None:
        self.path, self.pid, self.socket = path, pid, socket
        who = "another engine" if pid is None else f"the engine with pid {pid}"
        where = f", which listens at {socket}" if socket else ""
        super().__init__(f"{path} is locked by {who}{where}")


class EngineBug(EngineError):
    """A mistake of ours. It carries the story that led here and is never caught."""

    hint = "This is a bug in plait. Report it with the text above."


class IllegalTransition(EngineBug):
    """A fact reached a worker in a phase that does not know it."""


class InvariantBroken(EngineBug):
    """The state of a run contradicts itself."""
