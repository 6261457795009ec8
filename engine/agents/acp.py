"""Drives agents over the Agent Client Protocol: they ask, are cancelled, and resumed by id."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from engine.agents.acp_stream import AcpStream, initialize
from engine.agents.claude import LOGIN_OF_CLAUDE, environment_of_claude
from engine.agents.codex import LOGIN_OF_CODEX, files_of_codex, home_of_codex
from engine.agents.contract import (
    AgentLaunch,
    Capabilities,
    FoundAgent,
    HintChannel,
    LaunchFile,
    LaunchRequest,
    SessionId,
    Steering,
)
from engine.agents.finding import LoginTraces, ProgramSearch, find_agent
from engine.agents.options import folders_of, more_arguments, picked, program_of
from engine.agents.prompting import system_text
from engine.agents.table_agent import fill
from engine.agents.tables import AgentTable, shipped_table
from engine.errors import AgentError


@dataclass(frozen=True, kw_only=True)
class AcpAdapter:
    """An agent that speaks the protocol; without an argv of its own it is named by the manifest.

    Attributes:
        table: The agent's table, for what does not depend on how it is driven.
        model: Arguments that choose the model; `{model}` stands for it.
        env: What its environment has beside what the table says.
        files: Files in the worker's HOME beside those of the table.
    """

    name: str = "acp"
    argv: tuple[str, ...] = ()
    model: tuple[str, ...] = ()
    table: str = ""
    env: Callable[[LaunchRequest], Mapping[str, str]] = lambda _: {}
    files: Callable[[LaunchRequest], tuple[LaunchFile, ...]] = lambda _: ()
    login: LoginTraces = field(default_factory=LoginTraces)
    hint: HintChannel = HintChannel.PROMPT
    install_hint: str = "any agent that speaks the Agent Client Protocol: set `argv`"

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities that the protocol gives it."""
        return Capabilities(
            permission=True,
            steer=Steering.AFTER_TURN,
            interrupt=True,
            resume=True,
            resume_elsewhere=True,
            hint=self.hint,
            usage=True,
            session_id=SessionId.EARLY,
            two_way=True,
        )

    def launch(self, request: LaunchRequest) -> AgentLaunch:
        """One process with one session; its input stays open until the last turn has ended."""
        table = shipped_table(self.table) if self.table else None
        argv = request.choice.argv or self._argv(request)
        if not argv:
            raise AgentError(
                f"the agent {request.choice.name!r} has no argv",
                hint="Say what speaks the protocol: `argv: [my-agent, --acp]`.",
            )
        return AgentLaunch(
            argv=(*argv, *more_arguments(request)),
            env={
                **(picked(request, table.variables) if table else {}),
                **(table.env if table else {}),
                **self.env(request),
                **request.choice.env,
            },
            files=(*_files(table, request), *self.files(request)),
            first_input=initialize(),
            keeps_stdin=True,
            hosts=table.hosts if table else (),
            reads=folders_of(request, argv[0]),
        )

    def parser(self, request: LaunchRequest) -> AcpStream:
        """The client's side of the protocol."""
        return AcpStream(request, has_system_file=self.hint is HintChannel.CONFIG_FILE)

    async def find(self, environment: Mapping[str, str]) -> FoundAgent:
        """Its program, version and login."""
        driven = "Agent Client Protocol 1, both ways"
        if not self.argv:
            return FoundAgent(name=self.name, driven=driven, install_hint=self.install_hint)
        table = shipped_table(self.table) if self.table else None
        traces = LoginTraces(**table.login.model_dump()) if table else self.login
        search = ProgramSearch(program=self.argv[0], driven=driven, traces=traces)
        return await find_agent(self, search, environment)

    def _argv(self, request: LaunchRequest) -> tuple[str, ...]:
        if not self.argv:
            return ()
        model = request.choice.model
        chosen = tuple(word.replace("{model}", model) for word in self.model) if model else ()
        return (program_of(request, self.argv[0]), *self.argv[1:], *chosen)


def _files(table: AgentTable | None, request: LaunchRequest) -> tuple[LaunchFile, ...]:
    values = {"system": system_text(request), "home": request.home}
    return tuple(
        LaunchFile(path=file.path, data=fill(file.text, values).encode())
        for file in (table.files if table else ())
        if values["system"] or "{system}" not in file.text
    )


def known_agents() -> tuple[AcpAdapter, ...]:
    """The agents that were tried over the protocol."""
    by_model = ("--model", "{model}")
    in_file, in_session = HintChannel.CONFIG_FILE, HintChannel.SYSTEM_PROMPT
    return (
        AcpAdapter(
            name="gemini-acp",
            argv=("gemini", "--skip-trust", "--acp"),
            model=by_model,
            table="gemini",
            hint=in_file,
            install_hint="npm install -g @google/gemini-cli@latest",
        ),
        AcpAdapter(
            name="opencode-acp",
            argv=("opencode", "acp"),
            table="opencode",
            hint=in_file,
            install_hint="npm install -g opencode-ai@latest",
        ),
        AcpAdapter(
            name="copilot-acp",
            argv=("copilot", "--acp"),
            model=by_model,
            table="copilot",
            hint=in_file,
            install_hint="npm install -g @github/copilot@latest",
        ),
        AcpAdapter(
            name="qwen-acp",
            argv=("qwen", "--acp"),
            model=by_model,
            table="qwen",
            install_hint="npm install -g @qwen-code/qwen-code@latest",
        ),
        AcpAdapter(
            name="claude-acp",
            argv=("claude-agent-acp",),
            env=environment_of_claude,
            login=LOGIN_OF_CLAUDE,
            hint=in_session,
            install_hint="npm install -g @agentclientprotocol/claude-agent-acp@latest",
        ),
        AcpAdapter(
            name="codex-acp",
            argv=("codex-acp",),
            env=home_of_codex,
            files=files_of_codex,
            login=LOGIN_OF_CODEX,
            hint=in_session,
            install_hint="npm install -g @agentclientprotocol/codex-acp@latest",
        ),
    )
