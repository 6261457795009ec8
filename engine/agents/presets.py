"""Agents as presets: those that speak plain text only, and those that were tried over ACP."""

import json
import sys
from dataclasses import replace
from pathlib import Path

from engine.agents.acp import ABLE_OVER_ACP, AcpAdapter
from engine.agents.claude import LOGIN_OF_CLAUDE
from engine.agents.codex import LOGIN_OF_CODEX
from engine.agents.command import CommandAdapter
from engine.agents.contract import Capabilities, HintChannel, LaunchRequest, LoginTraces
from engine.agents.permitting import is_allowed_unasked
from engine.agents.settings.claude import (
    base_url_of_claude,
    environment_of_claude_over_acp,
    login_of_claude,
    settings_of_claude,
    wanted_login_of_claude,
)
from engine.agents.settings.codex import (
    base_url_of_codex,
    environment_over_acp,
    login_of_codex,
    settings_of_codex,
    wanted_login_of_codex,
)
from engine.agents.settings.plain import (
    KEYS_BY_LITELLM,
    LOGINS_BY_LITELLM,
    environment_of_aider,
    environment_of_mini,
    settings_of_aider,
    settings_of_mini,
)

# Both look models up in a list of prices, and would fetch it from the network at each start.
_LOCAL_PRICES = {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
# What they ask their model by waits as long as a busy server says, and tells it in its log alone.
_TELLS_WAITS = {"OPENAI_LOG": "info"}


def own_program(name: str) -> str:
    """A program that an extra has put beside plait's interpreter; else its name, for the PATH."""
    beside = Path(sys.executable).with_name(name)
    return str(beside) if beside.is_file() else name


AIDER = CommandAdapter(
    name="aider",
    capabilities=Capabilities(),
    asks_by_litellm=True,
    argv=(
        *("aider", "--message-file", "{prompt_file}", "--yes-always", "--no-pretty", "--no-stream"),
        *("--analytics-disable", "--no-check-update", "--no-show-release-notes"),
        # Its history files belong to the worker, not into the work.
        *("--no-gitignore", "--input-history-file", "{home}/.aider.input.history"),
        *("--chat-history-file", "{home}/.aider.chat.history.md"),
        *("--config", "{home}/.aider.conf.yml"),
    ),
    model_argv=("--model", "{model}"),
    env={**_LOCAL_PRICES, **_TELLS_WAITS},
    variables=KEYS_BY_LITELLM,
    login=LoginTraces(variables=LOGINS_BY_LITELLM, files=(".aider.conf.yml",)),
    settings=settings_of_aider,
    more_env=environment_of_aider,
    install_hint="uv tool install --python 3.12 aider-chat",
)

MINI = CommandAdapter(
    name="mini",
    capabilities=Capabilities(),
    asks_by_litellm=True,
    is_careless=True,
    argv=(
        *(own_program("mini"), "-y", "--exit-immediately", "-t", "{prompt}"),
        *("-o", "{home}/trajectory.json"),
    ),
    model_argv=("-m", "{model}"),
    env={
        "MSWEA_CONFIGURED": "true",
        "MSWEA_SILENT_STARTUP": "1",
        # Else it gives up on the first answer of a model whose price it does not know.
        "MSWEA_COST_TRACKING": "ignore_errors",
        **_LOCAL_PRICES,
        **_TELLS_WAITS,
    },
    variables=KEYS_BY_LITELLM,
    login=LoginTraces(variables=LOGINS_BY_LITELLM, files=(".config/mini-swe-agent/.env",)),
    settings=settings_of_mini,
    more_env=environment_of_mini,
    install_hint="plait's extra `mini`, or: uv tool install --with mcp mini-swe-agent",
)

_ASKS_OF_OPENCODE = {
    "*": "ask",
    **dict.fromkeys(("read", "glob", "grep", "list", "todoread", "todowrite"), "allow"),
}


def environment_of_opencode_over_acp(request: LaunchRequest) -> dict[str, str]:
    """Return what lets opencode ask before it acts: by itself it asks for nearly nothing."""
    if is_allowed_unasked(request):
        return {}
    return {"OPENCODE_PERMISSION": json.dumps(_ASKS_OF_OPENCODE)}


_BY_MODEL = ("--model", "{model}")
OVER_ACP = (
    AcpAdapter(
        name="gemini-acp",
        argv=("gemini", "--skip-trust", "--acp"),
        model=_BY_MODEL,
        table="gemini",
        capabilities=replace(ABLE_OVER_ACP, hint=HintChannel.CONFIG_FILE, resume_elsewhere=False),
        install_hint="npm install -g @google/gemini-cli@latest",
    ),
    AcpAdapter(
        name="opencode-acp",
        argv=("opencode", "acp"),
        table="opencode",
        env=environment_of_opencode_over_acp,
        capabilities=replace(ABLE_OVER_ACP, hint=HintChannel.CONFIG_FILE, resume_elsewhere=False),
        install_hint="npm install -g opencode-ai@latest",
    ),
    AcpAdapter(
        name="copilot-acp",
        argv=("copilot", "--acp"),
        model=_BY_MODEL,
        table="copilot",
        capabilities=replace(ABLE_OVER_ACP, hint=HintChannel.CONFIG_FILE),
        install_hint="npm install -g @github/copilot@latest",
    ),
    AcpAdapter(
        name="qwen-acp",
        argv=("qwen", "--acp"),
        model=_BY_MODEL,
        table="qwen",
        capabilities=replace(ABLE_OVER_ACP, usage=False, resume_elsewhere=False),
        install_hint="npm install -g @qwen-code/qwen-code@latest",
    ),
    AcpAdapter(
        name="claude-acp",
        argv=("claude-agent-acp",),
        # By itself it keeps to itself that Claude Code asks its model again.
        meta={"claudeCode": {"emitRawSDKMessages": [{"type": "system", "subtype": "api_retry"}]}},
        env=environment_of_claude_over_acp,
        settings=settings_of_claude,
        login_name=login_of_claude,
        wants_login=wanted_login_of_claude,
        base_url=base_url_of_claude,
        traces=LOGIN_OF_CLAUDE,
        capabilities=replace(ABLE_OVER_ACP, hint=HintChannel.SYSTEM_PROMPT, cost=True),
        install_hint="npm install -g @agentclientprotocol/claude-agent-acp@latest",
    ),
    AcpAdapter(
        name="codex-acp",
        argv=("codex-acp",),
        env=environment_over_acp,
        settings=settings_of_codex,
        login_name=login_of_codex,
        wants_login=wanted_login_of_codex,
        base_url=base_url_of_codex,
        traces=LOGIN_OF_CODEX,
        capabilities=replace(ABLE_OVER_ACP, hint=HintChannel.SYSTEM_PROMPT),
        install_hint="npm install -g @agentclientprotocol/codex-acp@latest",
    ),
)
"""Agents that were tried over the Agent Client Protocol."""
