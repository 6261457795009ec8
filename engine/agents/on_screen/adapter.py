"""Launch any interactive program as an agent: on a terminal, its prompt an argument or typed in."""

from collections.abc import Mapping
from dataclasses import field, replace

from engine.agents.command import CommandAdapter
from engine.agents.contract import (
    NO_VENDOR,
    AgentLaunch,
    Capabilities,
    FoundAgent,
    HintChannel,
    LaunchRequest,
    LoginTraces,
    Steering,
)
from engine.agents.on_screen.of_claude import ANY_PROGRAM, CLAUDE, is_claude, with_claude
from engine.agents.on_screen.stream import ScreenStream
from engine.agents.prompting import whole_text
from engine.errors import AgentError
from engine.plan.model import AgentChoice
from engine.terminal.signals import SignalKind
from engine.values import dataclass

_TYPED = "typed"
_SIGNALS = {
    "notice": SignalKind.NOTICE,
    "bell": SignalKind.BELL,
    "prompt": SignalKind.PROMPT,
}
_USUAL = "notice bell"
_KIND = "xterm-256color"


@dataclass(frozen=True, kw_only=True)
class TerminalAdapter:
    """A program on a terminal of its own, that a human can take over.

    Options: `prompt_via` (argument, file, stdin as `command` has them; `typed` pastes it once the
    program takes a paste), `asks_by` (notice, bell, prompt), `proof: exit`.
    """

    name: str = "terminal"
    install_hint: str = "any interactive program: set `argv`"
    login: LoginTraces = NO_VENDOR
    capabilities: Capabilities = field(
        default_factory=lambda: Capabilities(
            hint=HintChannel.PROMPT, permission=True, steer=Steering.NOW, interrupt=True
        )
    )

    def launch(self, request: LaunchRequest) -> AgentLaunch:
        """Return the argv with the prompt where it belongs, on a terminal."""
        _asks_by(request.choice)
        options = {**request.choice.options, "terminal": "true"}
        if _is_typed(request.choice):  # it lies in a file too, for whoever wants to read it there
            options["prompt_via"] = "file"
        choice = replace(request.choice, options=options)
        launch = CommandAdapter(name=self.name).launch(replace(request, choice=choice))
        env = {"TERM": _KIND, "COLORTERM": "truecolor", **launch.env}
        launch = replace(launch, env=env)
        return with_claude(request, launch) if is_claude(request.choice) else launch

    def parser(self, request: LaunchRequest) -> ScreenStream:
        """Return a reader of its signals."""
        return ScreenStream(
            request,
            typed=whole_text(request) if _is_typed(request.choice) else "",
            asks_by=_asks_by(request.choice),
            is_proved_by_exit=request.choice.options.get("proof") == "exit",
            ways=CLAUDE if is_claude(request.choice) else ANY_PROGRAM,
        )

    async def find(self, environment: Mapping[str, str]) -> FoundAgent:
        """Say that the adapter is always there."""
        del environment
        return FoundAgent(
            name=self.name,
            driven="its argv, on a terminal that you can take over",
            install_hint=self.install_hint,
        )


def _is_typed(choice: AgentChoice) -> bool:
    return choice.options.get("prompt_via") == _TYPED


def _asks_by(choice: AgentChoice) -> frozenset[SignalKind]:
    words = choice.options.get("asks_by", _USUAL).replace(",", " ").split()
    unknown = [word for word in words if word not in _SIGNALS]
    if unknown:
        raise AgentError(
            f"`asks_by` cannot be {unknown[0]!r}",
            hint=f"Use one of: {', '.join(_SIGNALS)}.",
        )
    return frozenset(_SIGNALS[word] for word in words)
