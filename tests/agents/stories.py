"""What each client cannot do, and how it says what its model or its network refuses.

`docs/agents.md` shows the same, and a test holds that they agree.
"""

CLIENTS = (
    *("claude", "codex", "gemini", "opencode", "copilot", "qwen", "pi", "cline", "aider", "mini"),
    *("claude-acp", "codex-acp", "gemini-acp", "opencode-acp", "copilot-acp", "qwen-acp"),
)
STORIES = (
    *("create", "allowed", "denied", "steer", "cancel in a tool", "cancel while its model hangs"),
    *("resume with feedback", "400", "401", "404", "429", "529", "server killed"),
)
FIGURES = ("context", "turns")
SHOWS = {
    "claude": FIGURES,
    "opencode": FIGURES,
    "pi": FIGURES,
    **dict.fromkeys(("claude-acp", "codex-acp", "copilot-acp"), ("context",)),
}
"""What status shows of a client while it works, beside its tool."""
TELLS_NO_TOOL = ("opencode", "opencode-acp", "mini")
"""They tell of a command when it has ended, or never."""
_CANNOT_ASK = ("codex", "gemini", "opencode", "copilot", "qwen", "pi", "cline", "aider", "mini")
CANNOT = {
    **{(s, a): "it cannot ask" for s in ("allowed", "denied") for a in _CANNOT_ASK},
    **{("steer", a): "it hears nothing while it works" for a in ("cline", "aider", "mini")},
    **{(s, "aider"): "it runs no tool" for s in ("cancel in a tool", "server killed")},
}
"""Stories that a client has not, each with its reason."""
BEGINS_ANEW = (
    *("gemini", "opencode", "qwen", "cline", "aider", "mini"),
    *("gemini-acp", "opencode-acp", "qwen-acp"),
)
"""A new session in the kept tree, with the whole prompt and the feedback."""
KEYS = {  # cline has its key in its own file
    "claude": "ANTHROPIC_API_KEY",
    "claude-acp": "ANTHROPIC_API_KEY",
    "codex": "K",
    "codex-acp": "K",
    "gemini": "GEMINI_API_KEY",
    "gemini-acp": "GEMINI_API_KEY",
    "copilot": "COPILOT_PROVIDER_API_KEY",
    "copilot-acp": "COPILOT_PROVIDER_API_KEY",
    **dict.fromkeys(("opencode", "opencode-acp", "qwen", "qwen-acp"), "OPENAI_API_KEY"),
    **dict.fromkeys(("pi", "aider", "mini"), "OPENAI_API_KEY"),
}
TELLS_WAIT = ("claude",)
"""Those that tell until when they wait for a model that has too much to do."""
TELLS_NETWORK = {
    **dict.fromkeys(("claude", "codex", "copilot", "pi"), "its model could not be asked"),
    "copilot-acp": "server error",
}
"""The words of those that say that their model cannot be reached; the others try on in silence."""


def page_table() -> str:
    """The stories and who cannot play them, as `docs/agents.md` shows them."""
    lines = ["| story | not with |", "| --- | --- |"]
    for story in STORIES:
        reasons: dict[str, list[str]] = {}
        for (one, agent), reason in CANNOT.items():
            if one == story:
                reasons.setdefault(reason, []).append(f"`{agent}`")
        told = "; ".join(f"{', '.join(agents)}: {why}" for why, agents in reasons.items())
        lines.append(f"| {story} | {told} |")
    return "\n".join(lines)
