"""Drives Claude Code: `stream-json` both ways, so that it asks, is steered and is interrupted."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from engine.agents.claude_stream import ClaudeStream, control_request, user_message
from engine.agents.contract import (
    AgentLaunch,
    Capabilities,
    FoundAgent,
    HintChannel,
    LaunchRequest,
    SessionId,
    Steering,
)
from engine.agents.finding import LoginTraces, ProgramSearch, find_agent
from engine.agents.options import flag, folders_of, more_arguments, picked, program_of
from engine.agents.permitting import is_allowed_unasked
from engine.agents.prompting import system_text, user_text
from engine.agents.records import at

_QUIET = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
}
_TOKEN = "CLAUDE_CODE_OAUTH_TOKEN"  # noqa: S105 - the variable's name, not its value
_LOGINS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", _TOKEN)
_CLOUDS = ("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY")
_VARIABLES = (
    *_LOGINS,
    *_CLOUDS,
    *("ANTHROPIC_BASE_URL", "ANTHROPIC_MODEL", "ANTHROPIC_CUSTOM_HEADERS"),
    *("CLAUDE_CODE_MAX_RETRIES", "API_TIMEOUT_MS", "AWS_REGION", "AWS_BEARER_TOKEN_BEDROCK"),
    *("CLOUD_ML_REGION", "ANTHROPIC_VERTEX_PROJECT_ID"),
)
CREDENTIALS_OF_CLAUDE = ".credentials.json"
LOGIN_OF_CLAUDE = LoginTraces(
    variables=(*_LOGINS, *_CLOUDS), files=(f".claude/{CREDENTIALS_OF_CLAUDE}",)
)
# Not `--dangerously-skip-permissions`: it is refused to root, which containers often run as.
_UNASKED = (
    *("--permission-mode", "acceptEdits", "--allowedTools"),
    "Bash,Read,Edit,Write,NotebookEdit,Glob,Grep,Task,Agent,WebFetch,WebSearch,Skill",
)


@dataclass(frozen=True, kw_only=True)
class ClaudeAdapter:
    """Claude Code, by its own program `claude`."""

    name: str = "claude"
    install_hint: str = "npm install -g @anthropic-ai/claude-code@latest"
    capabilities: Capabilities = field(
        default_factory=lambda: Capabilities(
            permission=True,
            steer=Steering.NOW,
            interrupt=True,
            resume=True,
            resume_elsewhere=True,
            fork=True,
            hint=HintChannel.SYSTEM_PROMPT,
            usage=True,
            cost=True,
            session_id=SessionId.EARLY,
            two_way=True,
        )
    )

    def launch(self, request: LaunchRequest) -> AgentLaunch:
        """One process that takes prompts from its input until that is closed."""
        words = user_text(request, is_resumed=request.session is not None)
        program = program_of(request, "claude")
        return AgentLaunch(
            argv=(
                *(program, "-p", "--verbose"),
                *("--input-format", "stream-json", "--output-format", "stream-json"),
                *("--permission-prompt-tool", "stdio"),
                *(_UNASKED if is_allowed_unasked(request) else ()),
                *flag("--model", request.choice.model),
                *flag("--append-system-prompt", system_text(request)),
                *_budget(request),
                *flag("--resume", request.session),
                *(("--fork-session",) if request.session and request.is_fork else ()),
                *more_arguments(request),
            ),
            env={**environment_of_claude(request), **request.choice.env},
            first_input=control_request("initialize", "initialize") + user_message(words),
            keeps_stdin=True,
            hosts=("api.anthropic.com",),
            reads=folders_of(request, program),
        )

    def parser(self, request: LaunchRequest) -> ClaudeStream:
        """A parser for its `stream-json`."""
        return ClaudeStream(request)

    async def find(self, environment: Mapping[str, str]) -> FoundAgent:
        """Its program, version and login."""
        search = ProgramSearch(
            program="claude", driven="stream-json, both ways", traces=LOGIN_OF_CLAUDE
        )
        return await find_agent(self, search, environment)


def _budget(request: LaunchRequest) -> tuple[str, ...]:
    """It tells what it has spent when its turn is over, so it has to look itself meanwhile."""
    return () if request.budget_usd is None else ("--max-budget-usd", f"{request.budget_usd:f}")


def environment_of_claude(request: LaunchRequest) -> dict[str, str]:
    """By what it logs in, whom it asks, and that it is to be quiet."""
    return {**_token(request), **picked(request, _VARIABLES), **_QUIET}


def _token(request: LaunchRequest) -> dict[str, str]:
    """The access token of the user's own login, where no variable says how to log in.

    Never the refresh token beside it: it can be used once only, so a copy of the login in a
    worker's HOME would log the user out.
    """
    if not request.user_home or any(request.environment.get(n) for n in (*_LOGINS, *_CLOUDS)):
        return {}
    try:
        folder = request.environment.get("CLAUDE_CONFIG_DIR") or f"{request.user_home}/.claude"
        kept = json.loads(Path(folder, CREDENTIALS_OF_CLAUDE).read_bytes())
    except (OSError, ValueError):
        return {}
    token, expires_ms = (at(kept, "claudeAiOauth", key) for key in ("accessToken", "expiresAt"))
    is_live = isinstance(expires_ms, int | float) and expires_ms / 1000 > time.time()
    return {_TOKEN: token} if isinstance(token, str) and is_live else {}
