"""List what a human may ask of a run; each command is accepted, or refused with a reason.

Commands come from outside (a console, a second shell, a program) and are judged in one place.
`worker` names a worker as `step/worker_1`; an empty `run` means the latest. A `ResolutionAction`
decides something about conflicts: one at a time, each of which undo reverts. Its texts and paths
keep bytes that are no UTF-8 by `surrogateescape`.
"""

from enum import StrEnum

from engine.limits import Limits
from engine.messages.asked import AnswerScope
from engine.plan.model import AgentChoice, PlannedStep, RetryMode
from engine.values import dataclass


@dataclass(frozen=True, kw_only=True)
class ChooseHunk:
    """Decide one hunk: target, incoming, both, both_reversed, base, neither or combined.

    A hunk is named by its key, or counted from 0 within its file.
    """

    path: str
    hunk: str | int
    choice: str


@dataclass(frozen=True, kw_only=True)
class WriteHunk:
    """Put this text in a hunk's place; `source` says where it came from if nobody typed it."""

    path: str
    hunk: str | int
    text: str
    source: str = ""


@dataclass(frozen=True, kw_only=True)
class PickedLine:
    """One line of one version of a hunk (`target`, `incoming` or `base`), counted from 0."""

    side: str
    at: int


@dataclass(frozen=True, kw_only=True)
class PickLines:
    """Make a hunk of single lines, in this order."""

    path: str
    hunk: str | int
    lines: tuple[PickedLine, ...]


@dataclass(frozen=True, kw_only=True)
class ChooseRest:
    """Decide every hunk that is still open and that the choice fits; in all files if none named."""

    choice: str
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ChooseWhole:
    """Decide a whole path: one of the options that its conflict offers."""

    path: str
    choice: str


@dataclass(frozen=True, kw_only=True)
class ChooseMode:
    """Decide the mode of a file: `100644` or `100755`."""

    path: str
    mode: str


@dataclass(frozen=True, kw_only=True)
class ChoosePlace:
    """Decide where a file that both sides moved is to lie: `target`, `incoming` or `both`."""

    path: str
    place: str


@dataclass(frozen=True, kw_only=True)
class SetFile:
    """Put this text at a path, conflicted or not; None deletes it."""

    path: str
    text: str | None
    mode: str = "100644"


@dataclass(frozen=True, kw_only=True)
class EditFile:
    """Take over what an editor made of a conflicted file's text; markers left are left open."""

    path: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Reopen:
    """Take back what is decided for a hunk, or for the whole path."""

    path: str
    hunk: str | int | None = None


@dataclass(frozen=True, kw_only=True)
class UndoChoice:
    """Take back the last choice."""


@dataclass(frozen=True, kw_only=True)
class RedoChoice:
    """Make the decision again that was taken back last."""


@dataclass(frozen=True, kw_only=True)
class Regenerate:
    """Make a generated file anew, by the manifest's command, from the result as it is decided."""

    path: str


@dataclass(frozen=True, kw_only=True)
class ForgetAnswer:
    """Never offer this remembered answer again."""

    key: str


@dataclass(frozen=True, kw_only=True)
class ConfirmAnswer:
    """Mark a remembered answer as looked at and right."""

    key: str


@dataclass(frozen=True, kw_only=True)
class AskAgent:
    """Ask an agent about a hunk; its answer comes as one more proposal, and is never applied.

    Attributes:
        agent: The name of an agent or adapter; empty for the one whose change it is.
        words: What the reviewer says beside the three texts and both prompts.
    """

    path: str
    hunk: str | int
    agent: str = ""
    words: str = ""


@dataclass(frozen=True, kw_only=True)
class FinishResolving:
    """Everything is decided: go on with exactly the tree that the decisions make.

    Attributes:
        is_despite_check: Land it even though the check of that tree failed, or was not run.
        seen: The tree that was on screen. Where the decisions make another one by now, because the
            target has moved, nothing goes on and the merge made again is shown.
    """

    is_despite_check: bool = False
    seen: str | None = None


ResolutionAction = (
    ChooseHunk
    | WriteHunk
    | PickLines
    | ChooseRest
    | ChooseWhole
    | ChooseMode
    | ChoosePlace
    | SetFile
    | EditFile
    | Reopen
    | UndoChoice
    | RedoChoice
    | Regenerate
    | ForgetAnswer
    | ConfirmAnswer
    | AskAgent
    | FinishResolving
)
"""Every act that can be done about the conflicts of a merge."""


BeginFrom = RetryMode
"""The start of a retried attempt, for those who send commands and know no plan."""


@dataclass(frozen=True, kw_only=True)
class Seen:
    """The change that a human looked at; plait refuses to act on another.

    Attributes:
        tree: The tree of the worker's change, or the beginning of its id; empty for no change.
        attempt: The attempt it came from; None where only the tree was named.
        result: The tree of the merge with the target, where that merge was on screen.
    """

    tree: str
    attempt: int | None = None
    result: str | None = None


@dataclass(frozen=True, kw_only=True)
class StopRun:
    """End every worker that has not settled."""

    run: str = ""
    is_kill: bool = False


@dataclass(frozen=True, kw_only=True)
class OfWorker:
    """Begin a command about one worker."""

    worker: str
    run: str = ""


@dataclass(frozen=True, kw_only=True)
class StopWorker(OfWorker):
    """End one worker: gracefully, or at once."""

    is_kill: bool = False


@dataclass(frozen=True, kw_only=True)
class RetryWorker(OfWorker):
    """Begin another attempt, with the reviewer's words and other limits if given.

    Attributes:
        mode: Where it begins; by default it goes on where there is feedback, else it is fresh.
        prompt: In place of what it was asked so far: a conversation goes on.
        agent: The name of an agent or adapter, or a choice made in Python.
        at: Begin from the files as they were at that time (seconds since 1970), or as lately
            before it as they were looked at.
        seen: What was on screen; None where nothing was.
    """

    seen: Seen | None = None
    mode: RetryMode | None = None
    feedback: str = ""
    prompt: str | None = None
    limits: Limits | None = None
    agent: str | AgentChoice | None = None
    at: float | None = None

    @property
    def begins(self) -> RetryMode:
        """Return where it begins: who says what to do better means the work that is there."""
        goes_on = bool(self.feedback) and self.at is None
        return self.mode or (RetryMode.CONTINUE if goes_on else RetryMode.FRESH)


@dataclass(frozen=True, kw_only=True)
class Pause:
    """Stop dispatching (no worker named), or freeze one worker's tree."""

    worker: str | None = None
    run: str = ""


@dataclass(frozen=True, kw_only=True)
class Resume:
    """Undo a pause."""

    worker: str | None = None
    run: str = ""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Answer what a worker asks: `allow`, `deny`, or words; no id means the oldest question.

    Attributes:
        is_for_run: Keep it for the whole run.
        scope: Keep it for these.
        pattern: Keep it for all questions that match, not for exactly this one.
        asked: The whole text that was read. A question with another text is not answered, and one
            that hides something is not allowed without it.
    """

    worker: str
    answer: str
    question: str | None = None
    is_for_run: bool = False
    scope: AnswerScope | None = None
    pattern: str = ""
    run: str = ""
    asked: str | None = None


@dataclass(frozen=True, kw_only=True)
class RevokeAnswer:
    """Drop an answer that was kept: who asks the same asks a human again."""

    number: int
    run: str = ""


@dataclass(frozen=True, kw_only=True)
class Steer:
    """Say something to a running agent."""

    worker: str
    text: str
    run: str = ""


@dataclass(frozen=True, kw_only=True)
class Interrupt(OfWorker):
    """Break off what the agent does now, without ending it."""


@dataclass(frozen=True, kw_only=True)
class Approve(OfWorker):
    """Mark a reviewed change as good; `Land` moves it."""

    seen: Seen | None = None


@dataclass(frozen=True, kw_only=True)
class Reject(OfWorker):
    """Give a change up; it stays on its ref."""

    seen: Seen | None = None


@dataclass(frozen=True, kw_only=True)
class Choose(OfWorker):
    """Choose one candidate of its step; the others are stopped or discarded."""

    seen: Seen | None = None


class Edits(StrEnum):
    """The treatment of uncommitted edits that are in the way of a landing.

    `refuse` goes back to the review. `carry` lands, and keeps the edits on top, uncommitted.
    `commit` makes them a commit of the user's on the target, and lands on top of it. `wait` lands
    once they are out of the way.
    """

    REFUSE = "refuse"
    CARRY = "carry"
    COMMIT = "commit"
    WAIT = "wait"


@dataclass(frozen=True, kw_only=True)
class LandWish:
    """A human's wish for how to land a change.

    Attributes:
        to: The branch; the run's target where there is none.
        style: How it becomes history; as the run says where there is none.
        is_despite_check: It lands although the check is known to fail on its tree.
        edits: What is done about edits of the user's in its way.
        result: The only tree that may land, because the human looked at it; None for any.
    """

    to: str | None = None
    style: str | None = None
    is_despite_check: bool = False
    edits: Edits = Edits.REFUSE
    result: str | None = None


@dataclass(frozen=True, kw_only=True)
class Land(OfWorker):
    """Move a change onto the target branch."""

    seen: Seen | None = None
    to: str | None = None
    style: str | None = None
    is_despite_check: bool = False
    edits: Edits = Edits.REFUSE

    @property
    def wish(self) -> LandWish:
        """Return how to land it: as the fields say, and only the result that was looked at."""
        return LandWish(
            to=self.to,
            style=self.style,
            is_despite_check=self.is_despite_check,
            edits=Edits(self.edits),
            result=self.seen.result if self.seen else None,
        )


@dataclass(frozen=True, kw_only=True)
class UndoLanding(OfWorker):
    """Take a landing back; the change waits for review again."""


@dataclass(frozen=True, kw_only=True)
class SetCap:
    """Change how many workers may hold a slot."""

    cap: int
    run: str = ""


@dataclass(frozen=True, kw_only=True)
class SetLimits:
    """Change a worker's limits, also while it runs."""

    worker: str
    limits: Limits
    run: str = ""


@dataclass(frozen=True, kw_only=True)
class AddStep:
    """Add a step to a live run."""

    step: PlannedStep
    run: str = ""


@dataclass(frozen=True, kw_only=True)
class AddWorker:
    """Add one more worker like the step's first to a live run."""

    step: str
    run: str = ""
    agent: str | None = None


Command = (
    StopRun
    | StopWorker
    | RetryWorker
    | Pause
    | Resume
    | Answer
    | Steer
    | Interrupt
    | Approve
    | Reject
    | Choose
    | Land
    | UndoLanding
    | SetCap
    | RevokeAnswer
    | SetLimits
    | AddStep
    | AddWorker
)
"""Every command; the class of each has its fields."""


@dataclass(frozen=True)
class Accepted:
    """The command was accepted; `note` says what happens now."""

    note: str = ""


class RefusalKind(StrEnum):
    """The reason for a refusal, for programs.

    `rule`: it cannot be done as things stand. `changed`: the change is not the one that was seen.
    """

    RULE = "rule"
    CHANGED = "changed"


@dataclass(frozen=True)
class Refused:
    """The command was refused, with a reason; `hint` says what you can do."""

    reason: str
    hint: str = ""
    choices: tuple[str, ...] = ()
    kind: RefusalKind = RefusalKind.RULE


@dataclass(frozen=True, kw_only=True)
class Conflicted:
    """The change conflicts with its target, so a human must resolve it; nothing moved."""

    worker: str
    paths: tuple[str, ...]


Reply = Accepted | Refused
"""The reply to a command."""
