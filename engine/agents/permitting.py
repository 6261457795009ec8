"""Decides permissions that need no human: by the sandbox that contains the act, or by rules.

A rule is a pattern over the tool (`Edit`, `Bash`) or over tool and detail (`Bash(git *)`); `*` and
`?` stand for anything. What is denied is denied even if something else allows it.
"""

from fnmatch import fnmatchcase

from engine.agents.contract import LaunchRequest
from engine.errors import AgentError
from engine.plan.model import PermissionMode

CONTAINED = "the sandbox contains it"


def decide(request: LaunchRequest, tool: str, detail: str) -> tuple[bool, str] | None:
    """Allowed or denied, and by which rule; None where a human must be asked."""
    permissions = request.permissions
    names = (tool, f"{tool}({detail})")
    for pattern in permissions.deny:
        if any(fnmatchcase(name, pattern) for name in names):
            return False, pattern
    if permissions.mode is PermissionMode.AUTO:
        return (True, CONTAINED) if request.is_confined else None
    if permissions.mode is PermissionMode.ASK:
        return None
    for pattern in permissions.allow:
        if any(fnmatchcase(name, pattern) for name in names):
            return True, pattern
    return None


def is_allowed_unasked(request: LaunchRequest) -> bool:
    """Everything may be done without asking, as far as can be said before the start."""
    return (
        request.permissions.mode is PermissionMode.AUTO
        and request.is_confined
        and not request.permissions.deny
    )


def refuse_asking(request: LaunchRequest, agent: str) -> None:
    """Refuse to start an agent that cannot ask where the user wants to be asked."""
    if request.permissions.mode is not PermissionMode.AUTO or request.permissions.deny:
        raise AgentError(
            f"{agent} cannot ask for permission when it is driven in this way",
            hint="Use an agent that can ask (claude, or one over ACP), or `permissions: auto`.",
        )
