"""Messages for help with a merge outside a run: regenerate a file, format it, ask for a text.

The plan says how the sandbox is made; nothing of the merge crosses but what a command needs.
"""

from typing import ClassVar

from engine.messages.questions import Ask
from engine.plan.model import Plan
from engine.values import dataclass


@dataclass(frozen=True, kw_only=True)
class MadeFile:
    """The file that a command made."""

    content: bytes


@dataclass(frozen=True)
class MakeFile(Ask[MadeFile]):
    """Run a command on a tree in the sandbox, and take one file that it made.

    Attributes:
        tree: The files that the command finds; `parent` is the commit that they would stand on.
    """

    changes: ClassVar[bool] = True
    plan: Plan
    path: str
    command: str
    tree: str
    parent: str


@dataclass(frozen=True, kw_only=True)
class ThreeTexts:
    """The three versions of a file, and the command that formats it."""

    path: str
    command: str
    base: bytes
    target: bytes
    incoming: bytes


@dataclass(frozen=True)
class FormatTexts(Ask[tuple[ThreeTexts, ...]]):
    """Format files in the sandbox, on a commit's files; those that cannot be are left out."""

    changes: ClassVar[bool] = True
    plan: Plan
    commit: str
    files: tuple[ThreeTexts, ...]


@dataclass(frozen=True, kw_only=True)
class LastWords:
    """The last words of an agent, and what they cost; `problem` says why there are none."""

    text: str = ""
    problem: str = ""
    usd: float | None = None
    seconds: float = 0.0


@dataclass(frozen=True)
class AskAside(Ask[LastWords]):
    """Ask an agent something in an empty folder inside the sandbox.

    Attributes:
        agent: The name of an agent or adapter; empty for the plan's own.
        usd: The most that it may cost, as far as the agent reports it.
        seconds: The most time that it may take.
    """

    changes: ClassVar[bool] = True
    plan: Plan
    prompt: str
    agent: str = ""
    usd: float | None = None
    seconds: float | None = None
