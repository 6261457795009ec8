"""List what each client cannot do, and its words when its model or its network refuses.

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
"""The figures of a working client that status shows beside its tool."""
TELLS_NO_TOOL = ("opencode", "opencode-acp", "mini")
"""They tell of a command when it has ended, or never."""
_CANNOT_ASK = ("codex", "gemini", "opencode", "copilot", "qwen", "pi", "cline", "aider", "mini")
CANNOT = {
    **{(s, a): "it cannot ask" for s in ("allowed", "denied") for a in _CANNOT_ASK},
    **{("steer", a): "it reads no messages while it works" for a in ("cline", "aider", "mini")},
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
UNTIL, WAITS, SILENT = "until when it waits", "that it waits", "nothing"
TELLS_WAIT = {
    **dict.fromkeys(("claude", "gemini", "opencode", "pi", "aider", "mini"), UNTIL),
    **dict.fromkeys(("claude-acp", "opencode-acp"), UNTIL),
    **dict.fromkeys(("codex", "copilot", "qwen", "codex-acp", "qwen-acp"), WAITS),
    **dict.fromkeys(("cline", "gemini-acp", "copilot-acp"), SILENT),
}
"""The word of each client about a model that has too much to do."""
TELLS_OTHERWISE = {("codex", 529): SILENT, ("codex-acp", 529): SILENT}
TELLS_NETWORK = {
    **dict.fromkeys(("claude", "codex", "copilot", "pi"), "its model could not be asked"),
    "copilot-acp": "server error",
}
"""The words of those that say that their model cannot be reached; the others try on in silence."""
ASKS_EARLY = {("gemini", 529), ("gemini-acp", 529)}
"""They ask again by a schedule of their own, whatever their server says."""


def told_of(agent: str, status: int) -> str:
    """Return what a client says while it waits for a model that answered with this status."""
    return TELLS_OTHERWISE.get((agent, status), TELLS_WAIT[agent])


def wait_table() -> str:
    """The words of all clients about such a model, as `docs/agents.md` shows them."""
    lines = ["| the client says | after 429 | after 529 |", "| --- | --- | --- |"]
    for word in (UNTIL, WAITS, SILENT):
        cells = [
            ", ".join(f"`{agent}`" for agent in CLIENTS if told_of(agent, status) == word)
            for status in (429, 529)
        ]
        lines.append(f"| {word} | {' | '.join(cells)} |")
    return "\n".join(lines)


def page_table() -> str:
    """The stories that a client cannot play, as `docs/agents.md` shows them."""
    lines = ["| client | not played | reason |", "| --- | --- | --- |"]
    for reason in dict.fromkeys(CANNOT.values()):
        pairs = [pair for pair, why in CANNOT.items() if why == reason]
        agents = ", ".join(f"`{agent}`" for agent in dict.fromkeys(agent for _, agent in pairs))
        stories = ", ".join(dict.fromkeys(story for story, _ in pairs))
        lines.append(f"| {agents} | {stories} | {reason} |")
    return "\n".join(lines)
