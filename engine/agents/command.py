"""Drives any program: its argv holds the prompt, its lines are output, its exit code the verdict.

Presets of this adapter carry agents that only speak plain text; a command step is one too.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import field

from engine.agents.contract import (
    NO_VENDOR,
    AgentLaunch,
    Capabilities,
    FoundAgent,
    HintChannel,
    LaunchFile,
    LaunchRequest,
    LoginTraces,
    Steering,
)
from engine.agents.finding import ProgramSearch, find_agent
from engine.agents.options import folders_of, is_set, picked
from engine.agents.own_stream import OwnStream
from engine.agents.permitting import refuse_asking
from engine.agents.prompting import whole_text
from engine.agents.records import line_of
from engine.agents.settings.copied import SettingsCopy
from engine.errors import AgentError
from engine.values import dataclass

HINT_VARIABLE = "PLAIT_MAX_SUBAGENTS"
PROMPT_FILE = ".plait/prompt.md"
_PLACE = re.compile(r"\{(prompt|prompt_file|workspace|home|model|session)\}")
_WAYS = ("argument", "stdin", "file")
LONGEST_ARGUMENT = 128 * 1024 - 1
"""Linux takes no single argument of more bytes than this."""


@dataclass(frozen=True, kw_only=True)
class CommandAdapter:
    """A program driven by its argv; the options of the agent's choice are read at launch.

    Options: `prompt_via`, `terminal`, `events` (it speaks plait's protocol and must close with a
    `result`), `proof: exit` (its exit code is the whole verdict). `prompt_via` is argument, stdin
    or file. By default it is argument where `{prompt}` stands in the argv, file where
    `{prompt_file}` does, and else stdin.

    Attributes:
        argv: What a preset starts when the agent's choice names no argv of its own.
        env: A preset's additions to the environment.
        variables: What a preset takes from the user's environment.
        is_careless: A preset that does everything by itself.
        settings: What copies the settings of a preset's user.
        more_env: What a preset's user says of its environment elsewhere.
        asks_by_litellm: A preset whose output tells what its model refuses as that library does.
    """

    name: str = "command"
    argv: tuple[str, ...] = ()
    model_argv: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    variables: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    is_careless: bool = False
    login: LoginTraces = NO_VENDOR
    settings: Callable[[LaunchRequest], SettingsCopy] | None = None
    more_env: Callable[[LaunchRequest], Mapping[str, str]] = lambda _: {}
    asks_by_litellm: bool = False
    install_hint: str = "any program: set `argv`"
    capabilities: Capabilities = field(
        default_factory=lambda: Capabilities(
            hint=HintChannel.PROMPT, permission=True, steer=Steering.NOW, two_way=True, usage=True
        )
    )

    def launch(self, request: LaunchRequest) -> AgentLaunch:
        """The argv with the prompt where it belongs."""
        if self.argv:
            refuse_asking(request, self.name, is_careful=not self.is_careless)
        argv = request.choice.argv or self._preset(request)
        if not argv:
            raise AgentError(
                f"the agent {request.choice.name!r} has no argv",
                hint="Name the program: `argv: [./agent.sh, '{prompt}']`.",
            )
        prompt = whole_text(request)
        speaks = is_set(request.choice, "events")
        via = request.choice.options.get("prompt_via") or _usual_way(argv)
        if via not in _WAYS:
            raise AgentError(
                f"`prompt_via` cannot be {via!r}", hint=f"Use one of: {', '.join(_WAYS)}."
            )
        if via == "argument":
            argv = as_argument(argv, prompt)
        values = {
            "prompt": prompt,
            "prompt_file": f"{request.home}/{PROMPT_FILE}",
            "workspace": request.workspace,
            "home": request.home,
            "model": request.choice.model or "",
            "session": request.session or "",
        }
        is_filed = via == "file"
        copied = self.settings(request) if self.settings else SettingsCopy(request, folder=".")
        more = {"PLAIT_PROMPT_FILE": values["prompt_file"]} if is_filed else {}
        env = self._env(request, more)
        prompt_file = (LaunchFile(path=PROMPT_FILE, data=prompt.encode()),) if is_filed else ()
        return AgentLaunch(
            argv=tuple(_PLACE.sub(lambda m: values[m[1]], word) for word in argv),
            env=env,
            files=(*prompt_file, *copied.files),
            settings=copied.listed,
            base_url=copied.base_url,
            first_input=_spoken(prompt, speaks=speaks) if via == "stdin" else b"",
            keeps_stdin=speaks or is_set(request.choice, "terminal"),
            terminal=request.terminal if is_set(request.choice, "terminal") else None,
            hosts=self.hosts,
            reads=folders_of(request, argv[0]),
            login=self._login(env, request.choice.model or copied.model),
        )

    def parser(self, request: LaunchRequest) -> OwnStream:
        """Lines of output, with our records among them."""
        is_proved = request.choice.options.get("proof") == "exit"
        return OwnStream(
            request,
            speaks=is_set(request.choice, "events"),
            is_proved_by_exit=is_proved,
            asks_by_litellm=self.asks_by_litellm,
        )

    async def find(self, environment: Mapping[str, str]) -> FoundAgent:
        """A preset's program; the adapter itself is always there."""
        driven = "its argv and plain text"
        if not self.argv:
            return FoundAgent(name=self.name, driven=driven, install_hint=self.install_hint)
        search = ProgramSearch(program=self.argv[0], driven=driven, settings=self.settings)
        return await find_agent(self, search, environment)

    def _login(self, env: Mapping[str, str], model: str) -> str:
        """Return the variable of the model's provider, else the first by which it could log in."""
        own = f"{model.partition('/')[0].upper()}_API_KEY"
        found = [name for name in self.login.variables if env.get(name)]
        return own if own in found else next(iter(found), "")

    def _preset(self, request: LaunchRequest) -> tuple[str, ...]:
        return self.argv + (self.model_argv if request.choice.model else ())

    def _env(self, request: LaunchRequest, more: Mapping[str, str]) -> dict[str, str]:
        hint = {HINT_VARIABLE: str(request.hint)} if request.hint else {}
        return {
            **picked(request, self.variables),
            **self.more_env(request),
            **self.env,
            **hint,
            **more,
            **request.choice.env,
        }


def as_argument(argv: tuple[str, ...], prompt: str) -> tuple[str, ...]:
    """The argv with a place for the prompt; refused where the system would refuse to start it."""
    if len(prompt.encode()) > LONGEST_ARGUMENT:
        raise AgentError(
            f"the prompt is {len(prompt.encode())} bytes long, too long for an argument",
            hint="Let the agent read it: `prompt_via: stdin`, or `{prompt_file}` in its argv.",
        )
    return argv if "{prompt}" in " ".join(argv) else (*argv, "{prompt}")


def _spoken(prompt: str, *, speaks: bool) -> bytes:
    # A program that speaks the protocol reads on after the prompt, so the prompt must be one line.
    return line_of({"plait": "prompt", "text": prompt}) if speaks else prompt.encode() + b"\n"


def _usual_way(argv: tuple[str, ...]) -> str:
    words = " ".join(argv)
    if "{prompt}" in words:
        return "argument"
    return "file" if "{prompt_file}" in words else "stdin"


def shell_launch(command: str) -> AgentLaunch:
    """A command step: the user's shell line, run by the shell that every system has."""
    return AgentLaunch(argv=("/bin/sh", "-c", command))


def shell_parser(request: LaunchRequest) -> OwnStream:
    """A command step's output; its exit code is the whole verdict."""
    return OwnStream(request, is_proved_by_exit=True)
