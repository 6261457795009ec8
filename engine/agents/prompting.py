"""Puts persona, hint, prompt and feedback together, for agents with a system prompt and without."""

from engine.agents.contract import LaunchRequest
from engine.plan.model import RetryMode
from engine.plan.prompts import hint_sentence, holding_sentence

_GO_ON = "You were interrupted. Continue where you stopped; the working tree is as you left it."
_AGAIN = "The working tree holds the work of an earlier attempt. Build on it."


def hint_of(request: LaunchRequest) -> str:
    """The hint's sentence, or nothing where there is nothing to allow."""
    return hint_sentence(request.hint) if request.hint is not None and request.hint > 1 else ""


def system_text(request: LaunchRequest) -> str:
    """Return the system prompt: the persona's words, the hint, what the worktree holds."""
    holds = "" if request.folders is None else holding_sentence(request.folders)
    return "\n\n".join(filter(None, (request.persona_prompt.strip(), hint_of(request), holds)))


def user_text(request: LaunchRequest, *, is_resumed: bool) -> str:
    """Return the user's words: the prompt, or, to a resumed session, only what is new."""
    if is_resumed:
        return request.feedback or (_GO_ON if request.mode is RetryMode.RESUME else request.prompt)
    again = {RetryMode.CONTINUE: _AGAIN, RetryMode.RESUME: _GO_ON}.get(request.mode, "")
    feedback = f"About your earlier attempt: {request.feedback}" if request.feedback else ""
    return "\n\n".join(filter(None, (request.prompt, again, feedback)))


def whole_text(request: LaunchRequest, *, is_resumed: bool = False) -> str:
    """Everything in one text, for agents without a channel to their system prompt."""
    words = user_text(request, is_resumed=is_resumed)
    return words if is_resumed else "\n\n".join(filter(None, (system_text(request), words)))
