"""Agents as presets: those that speak plain text only, and those that were tried over ACP."""

import sys
from pathlib import Path

from engine.agents.acp import AcpAdapter
from engine.agents.claude import LOGIN_OF_CLAUDE
from engine.agents.claude_settings import (
    environment_of_claude,
    login_of_claude,
    settings_of_claude,
    wanted_login_of_claude,
)
from engine.agents.codex import LOGIN_OF_CODEX
from engine.agents.codex_settings import (
    environment_over_acp,
    login_of_codex,
    settings_of_codex,
    wanted_login_of_codex,
)
from engine.agents.command import CommandAdapter
from engine.agents.contract import HintChannel
from engine.agents.finding import LoginTraces

_KEYS = (
    "OPENAI_API_KEY",
    "OPENAI_API_BASE",
    "ANTHROPIC_API_KEY",
    "GEMINI_API_KEY",
    "DEEPSEEK_API_KEY",
)

# Both look models up in a list of prices, and would fetch it from the network at each start.
_LOCAL_PRICES = {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}


def own_program(name: str) -> str:
    """A program that an extra has put beside plait's interpreter; else its name, for the PATH."""
    beside = Path(sys.executable).with_name(name)
    return str(beside) if beside.is_file() else name


AIDER = CommandAdapter(
    name="aider",
    argv=(
        *("aider", "--message-file", "{prompt_file}", "--yes-always", "--no-pretty", "--no-stream"),
        *("--analytics-disable", "--no-check-update", "--no-show-release-notes"),
        # Its history files belong to the worker, not into the work.
        *("--no-gitignore", "--input-history-file", "{home}/.aider.input.history"),
        *("--chat-history-file", "{home}/.aider.chat.history.md"),
    ),
    model_argv=("--model", "{model}"),
    env=_LOCAL_PRICES,
    variables=_KEYS,
    login=LoginTraces(variables=_KEYS, files=(".aider.conf.yml",)),
    install_hint="uv tool install --python 3.12 aider-chat",
)

MINI = CommandAdapter(
    name="mini",
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
    },
    variables=_KEYS,
    login=LoginTraces(variables=_KEYS, files=(".config/mini-swe-agent/.env",)),
    install_hint="plait's extra `mini`, or: uv tool install --with mcp mini-swe-agent",
)

_BY_MODEL = ("--model", "{model}")
OVER_ACP = (
    AcpAdapter(
        name="gemini-acp",
        argv=("gemini", "--skip-trust", "--acp"),
        model=_BY_MODEL,
        table="gemini",
        has_servers=False,
        hint=HintChannel.CONFIG_FILE,
        install_hint="npm install -g @google/gemini-cli@latest",
    ),
    AcpAdapter(
        name="opencode-acp",
        argv=("opencode", "acp"),
        table="opencode",
        hint=HintChannel.CONFIG_FILE,
        install_hint="npm install -g opencode-ai@latest",
    ),
    AcpAdapter(
        name="copilot-acp",
        argv=("copilot", "--acp"),
        model=_BY_MODEL,
        table="copilot",
        hint=HintChannel.CONFIG_FILE,
        install_hint="npm install -g @github/copilot@latest",
    ),
    AcpAdapter(
        name="qwen-acp",
        argv=("qwen", "--acp"),
        model=_BY_MODEL,
        table="qwen",
        has_servers=False,
        install_hint="npm install -g @qwen-code/qwen-code@latest",
    ),
    AcpAdapter(
        name="claude-acp",
        argv=("claude-agent-acp",),
        env=environment_of_claude,
        settings=settings_of_claude,
        login_name=login_of_claude,
        wants_login=wanted_login_of_claude,
        login=LOGIN_OF_CLAUDE,
        hint=HintChannel.SYSTEM_PROMPT,
        install_hint="npm install -g @agentclientprotocol/claude-agent-acp@latest",
    ),
    AcpAdapter(
        name="codex-acp",
        argv=("codex-acp",),
        env=environment_over_acp,
        settings=settings_of_codex,
        login_name=login_of_codex,
        wants_login=wanted_login_of_codex,
        login=LOGIN_OF_CODEX,
        hint=HintChannel.SYSTEM_PROMPT,
        install_hint="npm install -g @agentclientprotocol/codex-acp@latest",
    ),
)
"""Agents that were tried over the Agent Client Protocol."""
