"""Decides permissions that need no human: by the sandbox that contains the act, or by rules.

A rule is a pattern over the tool (`Edit`, `Bash`) or over tool and detail (`Bash(git *)`); `*` and
`?` stand for anything. What is denied is denied even if something else allows it.
"""

from fnmatch import fnmatchcase

from engine.agents.contract import LaunchRequest
from engine.errors import AgentError
from engine.plan.model import PermissionMode

CONTAINED = "the sandbox, which contains it"


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


def verdict_of(answer: str) -> tuple[bool, str]:
    """Return a human's answer to a permission: allowed or not, and the words to the agent.

    Only `allow` allows. `deny: use uv` denies with a reason; any other words are a reason too.
    """
    if answer == "allow":
        return True, ""
    word, colon, reason = answer.partition(":")
    if word.strip().casefold() == "deny":
        return False, reason.strip() if colon else ""
    return False, answer.strip()


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
        f"{agent} cannot ask for permission when it is driven in this way",
        hint="Use an agent that can ask (claude, or one over ACP), run it within a sandbox with "
        "`permissions: auto`, or allow everything: `permissions: {allow: ['*']}`.",
    )
