"""Decide permissions that need no human: by the sandbox that contains the act, or by rules.

A rule is a pattern over the tool (`Edit`, `Bash`) or over tool and detail (`Bash(git *)`); `*` and
`?` stand for anything, but a part of a command allows no other command behind it. What is denied
is denied even if something else allows it, and however a path is written.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from posixpath import normpath

from engine.agents.contract import LaunchRequest
from engine.agents.records import line_of
from engine.errors import AgentError
from engine.legible import hides
from engine.messages.asked import covers, parts_of
from engine.plan.model import PermissionMode

_DANGERS = {
    r"\brm\s+(-\w+\s+)*-\w*[rf]|\bfind\b.*-delete|\bshred\b": "deletes files permanently",
    r"\bgit\s+push\b": "sends commits to another repository",
    r"\bgit\s+(reset\s+--hard|clean\s+-\w*f|checkout\s+--|branch\s+-D)": "discards changes",
    r"\b(curl|wget)\b.*\|\s*(sudo\s+)?\w*sh\b": "runs an unread program from the network",
    r"\b(sudo|doas|su)\b": "acts as another user",
    r"\b(mkfs\S*|dd\b.*\bof=/dev/)": "overwrites a disk",
    r"\b(npm|cargo|twine|gem|poetry)\s+(publish|upload|push)\b": "publishes a package",
    r"\b(kubectl|terraform|aws|gcloud|az)\s+.*\b(delete|destroy|rm)\b": "deletes shared resources",
    r"\b(drop|truncate)\s+(table|database|schema)\b": "deletes data permanently",
    r"\bchmod\s+-R\b|\bchown\s+-R\b": "changes the permissions of whole folders",
}
_ALLOWING, _REJECTING = ("allow_once", "allow_always"), ("reject_once", "reject_always")
CONTAINED = "the sandbox, which contains it"


@dataclass(frozen=True)
class OpenPermission:
    """A permission that an agent over ACP waits for.

    Attributes:
        call: The id of its question.
        options: The ids of its answers by their kind.
        tool: The id of the tool that it is about.
    """

    call: object
    options: dict[str, str]
    tool: str

    @property
    def allowing(self) -> set[str]:
        """The answers that allow it."""
        return {self.options[kind] for kind in _ALLOWING if kind in self.options}

    def answer(self, *, is_allowed: bool) -> bytes:
        """Return the line that answers it; one that offers no such answer is cancelled."""
        kinds = _ALLOWING if is_allowed else _REJECTING
        chosen = next((self.options[kind] for kind in kinds if kind in self.options), None)
        return self._line(outcome="selected", optionId=chosen) if chosen else self.cancelled()

    def cancelled(self) -> bytes:
        """Return the line that says that its turn was broken off."""
        return self._line(outcome="cancelled")

    def _line(self, **outcome: str) -> bytes:
        return line_of({"jsonrpc": "2.0", "id": self.call, "result": {"outcome": outcome}})


def decide(request: LaunchRequest, tool: str, *details: str) -> tuple[bool, str] | None:
    """Allowed or denied, and by which rule; None where a human must be asked.

    Args:
        request: What the agent was launched for.
        tool: The tool that it wants to use.
        details: The whole of what it is about; several are allowed only if each is.
    """
    permissions = request.permissions
    denying = [_denying(request, tool, detail) for detail in details]
    if any(denying):
        return False, next(filter(None, denying))
    if permissions.mode is PermissionMode.AUTO:
        return (True, CONTAINED) if request.is_confined else None
    if permissions.mode is PermissionMode.ASK:
        return None
    allowing = [_allowing(permissions.allow, tool, detail) for detail in details]
    return (True, allowing[0]) if all(allowing) else None


def _allowing(patterns: Iterable[str], tool: str, detail: str) -> str:
    """Return the first pattern that covers the tool, or the tool with its detail."""
    about = f"{tool}({detail})"
    return next((p for p in patterns if fnmatchcase(tool, p) or covers(p, about)), "")


def _denying(request: LaunchRequest, tool: str, detail: str) -> str:
    """Return the first pattern that matches the tool, or any command or path of its detail."""
    said = (detail, *parts_of(detail))
    straight = (*map(normpath, said), *(" ".join(map(_straight, one.split(" "))) for one in said))
    inside = (one.removeprefix(f"{request.workspace}/") for one in straight)
    names = {tool, *(f"{tool}({one})" for one in (*said, *straight, *inside))}
    patterns = request.permissions.deny
    return next((p for p in patterns if any(fnmatchcase(name, p) for name in names)), "")


def _straight(word: str) -> str:
    """Return a word of a command without detours, if it is a path."""
    return normpath(word) if "/" in word else word


def danger_of(command: str) -> str:
    """Return what a command would do that cannot be taken back, as far as its words tell."""
    found = (
        words for pattern, words in _DANGERS.items() if re.search(pattern, command, re.IGNORECASE)
    )
    hidden = "hides characters" if hides(command) else ""
    return " and ".join(filter(None, (next(found, ""), hidden)))


def verdict_of(answer: str) -> tuple[bool, str]:
    """Return a human's answer to a permission: allowed or not, and the words to the agent.

    Only `allow` allows. `deny: use uv` denies with a reason; any other words are a reason too, and
    so is another command where the client would run only the one it asked for.
    """
    if answer == "allow":
        return True, ""
    word, colon, reason = answer.partition(":")
    if word.strip().casefold() == "deny":
        return False, reason.strip() if colon else ""
    return False, answer.strip()


def command_in(answer: str) -> str:
    """Return the command that an answer allows in place of the one asked for: `allow: ls -l`."""
    word, _, command = answer.partition(":")
    return command.strip() if word.strip().casefold() == "allow" else ""


def is_allowed_unasked(request: LaunchRequest) -> bool:
    """Everything may be done without asking, as far as can be said before the start."""
    permissions = request.permissions
    if permissions.deny or permissions.mode is PermissionMode.ASK:
        return False
    if permissions.mode is PermissionMode.AUTO:
        return request.is_confined
    return "*" in permissions.allow


def refuse_asking(request: LaunchRequest, agent: str, *, is_careful: bool) -> None:
    """Refuse to start an agent that cannot ask where somebody would have to be asked.

    Args:
        request: What it would be started for.
        agent: What it is called.
        is_careful: Outside a sandbox it does by itself only what is harmless.
    """
    permissions = request.permissions
    if is_allowed_unasked(request):
        return
    if is_careful and permissions.mode is PermissionMode.AUTO and not permissions.deny:
        return
    raise AgentError(
        f"{agent} cannot ask for permission in this mode",
        hint="Use an agent that can ask (claude, or one over ACP), run it within a sandbox with "
        "`permissions: auto`, or allow everything: `permissions: {allow: ['*']}`.",
    )
