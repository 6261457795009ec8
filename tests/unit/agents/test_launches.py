"""Test what each adapter starts: words, environment, files, input."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from engine.agents.agent_events import Raw
from engine.agents.command import CommandAdapter, shell_launch, shell_parser
from engine.agents.contract import AgentLaunch, Ending, HintChannel, LaunchRequest, Steering
from engine.agents.permitting import decide
from engine.agents.registry import adapter_named, adapters
from engine.agents.tables import TableInvalid
from engine.errors import AgentError, AgentNotFound
from engine.plan.model import AgentChoice, PermissionMode, Permissions, RetryMode

HINT = "You may spawn up to 3 concurrent sub-agents or workers for this step."
ONCE_ONLY = "the-refresh-token"
ASK = Permissions(mode=PermissionMode.ASK)


def request_for(adapter: str, *, argv: tuple[str, ...] = (), **more: Any) -> LaunchRequest:
    options = more.pop("options", {})
    model = more.pop("model", "big" if adapter == "mini" else None)
    choice = AgentChoice(name="mine", adapter=adapter, argv=argv, options=options, model=model)
    given = {"prompt": "Fix {it}.", "workspace": "/repo", "home": "/home/w", **more}
    return LaunchRequest(choice=choice, **given)


def launch(adapter: str, **more: Any) -> AgentLaunch:
    return adapter_named(adapter).launch(request_for(adapter, **more))


def after(argv: tuple[str, ...], flag: str) -> str:
    return argv[argv.index(flag) + 1]


def file(launched: AgentLaunch, path: str) -> str:
    return next(one.data.decode() for one in launched.files if one.path == path)


# ---------------------------------------------------------------------- any command


def test_a_prompt_stands_where_the_argv_wants_it_and_its_braces_are_its_own() -> None:
    argv = ("./agent.sh", "--say={prompt}", "{other}", "{workspace}")
    launched = launch("command", argv=argv, prompt="{workspace} {prompt}")
    assert launched.argv == ("./agent.sh", "--say={workspace} {prompt}", "{other}", "/repo")
    assert launched.first_input == b""
    assert not launched.keeps_stdin


def test_a_prompt_goes_to_the_input_where_the_argv_has_no_place_for_it() -> None:
    launched = launch("command", argv=("cat",), hint=3, persona_prompt="You are terse.")
    assert launched.first_input.decode() == f"You are terse.\n\n{HINT}\n\nFix {{it}}.\n"
    assert launched.env["PLAIT_MAX_SUBAGENTS"] == "3"


def test_a_prompt_goes_into_a_file_where_the_argv_names_one() -> None:
    launched = launch("command", argv=("agent", "{prompt_file}"))
    assert launched.argv == ("agent", "/home/w/.plait/prompt.md")
    assert file(launched, ".plait/prompt.md") == "Fix {it}."


@pytest.mark.parametrize(
    ("via", "argv"),
    [("argument", ("agent", "Fix {it}.")), ("stdin", ("agent",)), ("file", ("agent",))],
)
def test_the_way_of_the_prompt_can_be_chosen(via: str, argv: tuple[str, ...]) -> None:
    launched = launch("command", argv=("agent",), options={"prompt_via": via})
    assert launched.argv == argv
    assert bool(launched.first_input) is (via == "stdin")
    assert ("PLAIT_PROMPT_FILE" in launched.env) is (via == "file")


def test_a_prompt_too_long_to_start_with_is_refused_with_another_way() -> None:
    with pytest.raises(AgentError, match="too long") as caught:
        launch("command", argv=("agent", "{prompt}"), prompt="x" * 200_000)
    assert "stdin" in caught.value.hint
    assert launch("command", argv=("agent",), prompt="x" * 200_000).first_input


def test_a_way_that_is_none_is_refused() -> None:
    with pytest.raises(AgentError, match="`prompt_via` cannot be"):
        launch("command", argv=("agent",), options={"prompt_via": "telepathy"})


def test_a_command_without_argv_says_what_to_write() -> None:
    with pytest.raises(AgentError, match="no argv") as caught:
        launch("command")
    assert "argv: [" in caught.value.hint


def test_one_that_speaks_the_protocol_hears_its_prompt_as_one_line() -> None:
    launched = launch("command", argv=("a",), options={"events": "true"}, prompt="a\nb")
    assert json.loads(launched.first_input) == {"plait": "prompt", "text": "a\nb"}
    assert launched.first_input.count(b"\n") == 1
    assert launched.keeps_stdin


def test_a_terminal_is_given_where_one_is_wanted() -> None:
    given = {"argv": ("top",), "terminal": (24, 80)}
    assert launch("command", **given, options={"terminal": "true"}).terminal == (24, 80)
    assert launch("command", **given).terminal is None


def test_plain_output_is_the_result_and_wants_proof() -> None:
    parser = CommandAdapter().parser(request_for("command"))
    parser.feed("out", b"hello\nwor")
    parser.feed("out", b"ld")
    outcome = parser.finish(Ending(exit_code=0))
    assert (outcome.ok, outcome.needs_proof, outcome.text) == (True, True, "hello\nworld")
    assert outcome.last_events == (Raw("world"),)


def test_a_record_of_ours_is_understood_without_being_announced() -> None:
    parser = CommandAdapter().parser(request_for("command"))
    parser.feed("out", b'{"plait":"result","text":"no","ok":false}\n')
    outcome = parser.finish(Ending(exit_code=0))
    assert (outcome.ok, outcome.error, outcome.needs_proof) == (False, "no", False)


def test_a_command_step_is_proved_by_its_exit_code() -> None:
    assert shell_launch("npm test && true").argv == ("/bin/sh", "-c", "npm test && true")
    parser = shell_parser(request_for("command"))
    parser.feed("err", b"1 failing\n")
    bad = parser.finish(Ending(exit_code=2))
    assert bad.error == "the command ended with exit code 2: 1 failing"
    assert not shell_parser(request_for("command")).finish(Ending(exit_code=0)).needs_proof


def test_the_agent_s_own_environment_wins() -> None:
    choice = AgentChoice(name="m", adapter="claude", env={"ANTHROPIC_API_KEY": "mine"})
    request = LaunchRequest(
        choice=choice,
        prompt="",
        workspace="/",
        home="/h",
        environment={"ANTHROPIC_API_KEY": "theirs", "SSH_AUTH_SOCK": "/s"},
    )
    env = adapter_named("claude").launch(request).env
    assert env["ANTHROPIC_API_KEY"] == "mine"
    assert "SSH_AUTH_SOCK" not in env


# ---------------------------------------------------------------------- logins


def test_claude_gets_an_access_token_and_never_the_refresh_token(tmp_path: Path) -> None:
    folder = tmp_path / ".claude"
    folder.mkdir()
    login = {"accessToken": "short", "refreshToken": ONCE_ONLY, "expiresAt": 4_000_000_000_000}
    (folder / ".credentials.json").write_text(json.dumps({"claudeAiOauth": login}))
    launched = launch("claude", user_home=str(tmp_path))
    assert launched.env.items() >= {"CLAUDE_CODE_OAUTH_TOKEN": "short"}.items()
    assert ONCE_ONLY not in repr(launched)
    key = {"ANTHROPIC_API_KEY": "k"}
    assert (
        "CLAUDE_CODE_OAUTH_TOKEN"
        not in launch("claude", user_home=str(tmp_path), environment=key).env
    )


def test_an_expired_token_is_not_handed_on(tmp_path: Path) -> None:
    (tmp_path / ".claude").mkdir()
    login = {"accessToken": "short", "refreshToken": ONCE_ONLY, "expiresAt": 1000}
    (tmp_path / ".claude/.credentials.json").write_text(json.dumps({"claudeAiOauth": login}))
    assert "CLAUDE_CODE_OAUTH_TOKEN" not in launch("claude", user_home=str(tmp_path)).env


def test_codex_gets_a_login_without_its_refresh_token(tmp_path: Path) -> None:
    (tmp_path / ".codex").mkdir()
    tokens = {"access_token": "short", "refresh_token": ONCE_ONLY, "account_id": "a"}
    (tmp_path / ".codex/auth.json").write_text(json.dumps({"tokens": tokens}))
    launched = launch("codex", user_home=str(tmp_path))
    kept = json.loads(file(launched, ".codex/auth.json"))["tokens"]
    assert kept == {**tokens, "refresh_token": ""}
    assert ONCE_ONLY not in repr(launched)


@pytest.mark.parametrize("agent", ["codex", "codex-acp"])
def test_codex_gets_a_key_where_it_looks_for_one(agent: str) -> None:
    launched = launch(agent, environment={"OPENAI_API_KEY": "k"}, user_home="/nowhere")
    assert json.loads(file(launched, ".codex/auth.json"))["OPENAI_API_KEY"] == "k"
    assert launched.env["CODEX_HOME"] == "/home/w/.codex"


# ---------------------------------------------------------------------- claude and codex


def test_claude_is_told_persona_and_hint_in_its_system_prompt() -> None:
    launched = launch("claude", hint=3, persona_prompt="You are terse.", model="opus")
    assert after(launched.argv, "--append-system-prompt") == f"You are terse.\n\n{HINT}"
    assert after(launched.argv, "--model") == "opus"
    user = json.loads(launched.first_input.splitlines()[1])
    assert user["message"]["content"] == [{"type": "text", "text": "Fix {it}."}]
    assert "--append-system-prompt" not in launch("claude", hint=1).argv


def test_claude_acts_unasked_only_where_it_is_confined_and_nothing_is_denied() -> None:
    assert "acceptEdits" in launch("claude", is_confined=True).argv
    assert "acceptEdits" not in launch("claude").argv
    assert "acceptEdits" not in launch("claude", is_confined=True, permissions=ASK).argv
    denying = Permissions(deny=("Bash",))
    assert "acceptEdits" not in launch("claude", is_confined=True, permissions=denying).argv


def test_claude_is_told_its_budget_in_full() -> None:
    assert after(launch("claude", budget_usd=0.00001).argv, "--max-budget-usd") == "0.000010"
    assert "--max-budget-usd" not in launch("claude").argv


def test_claude_is_taken_up_again_with_what_is_new() -> None:
    given = {"mode": RetryMode.CONTINUE, "session": "s-1", "feedback": "More tests."}
    launched = launch("claude", **given)
    assert after(launched.argv, "--resume") == "s-1"
    assert b"More tests." in launched.first_input
    assert b"Fix {it}." not in launched.first_input
    assert "--fork-session" in launch("claude", **given, is_fork=True).argv


def test_feedback_without_a_session_follows_the_prompt() -> None:
    launched = launch("claude", mode=RetryMode.CONTINUE, feedback="More tests.")
    text = launched.first_input.decode()
    assert text.index("Fix {it}.") < text.index("earlier attempt") < text.index("More tests.")


def test_codex_leaves_its_own_sandbox_only_within_ours() -> None:
    assert 'sandbox_mode="danger-full-access"' in launch("codex", is_confined=True).argv
    assert 'sandbox_mode="workspace-write"' in launch("codex").argv


def test_codex_is_told_the_hint_as_toml() -> None:
    argv = launch("codex", hint=3, persona_prompt='Say "hi"\nü\x7f').argv
    setting = next(word for word in argv if word.startswith("developer_instructions="))
    assert tomllib.loads(setting)["developer_instructions"] == f'Say "hi"\nü\x7f\n\n{HINT}'


def test_codex_reads_its_prompt_from_its_input_which_then_ends() -> None:
    launched = launch("codex", prompt="x" * 300_000, session="s-1", feedback="")
    assert launched.argv[-3:] == ("resume", "s-1", "-")
    assert len(launched.first_input) == 300_000
    assert not launched.keeps_stdin


@pytest.mark.parametrize(("mode", "asks"), [("ask", True), ("auto", False)])
def test_opencode_over_acp_is_made_to_ask_where_somebody_is_to_be_asked(
    mode: str, *, asks: bool
) -> None:
    permissions = Permissions(mode=PermissionMode(mode))
    told = launch("opencode-acp", permissions=permissions, is_confined=True)
    rules = json.loads(told.env.get("OPENCODE_PERMISSION", "{}"))
    assert (rules.get("*") == "ask") is asks


MUTE = ("codex", "gemini", "opencode", "copilot", "qwen", "pi", "cline", "aider", "mini")
CARELESS = {"opencode", "pi", "cline", "mini"}
ALL = Permissions(mode=PermissionMode.RULES, allow=("*",))


@pytest.mark.parametrize("agent", MUTE)
def test_an_agent_that_cannot_ask_is_not_started_where_the_user_wants_to_be_asked(
    agent: str,
) -> None:
    with pytest.raises(AgentError, match="cannot ask") as caught:
        launch(agent, permissions=ASK)
    assert "claude" in caught.value.hint
    with pytest.raises(AgentError, match="cannot ask"):
        launch(agent, is_confined=True, permissions=Permissions(deny=("Bash",)))
    assert launch(agent, is_confined=True).argv
    assert launch(agent, permissions=ALL).argv


@pytest.mark.parametrize("agent", MUTE)
def test_outside_a_sandbox_only_careful_agents_are_started_unasked(agent: str) -> None:
    if agent in CARELESS:
        with pytest.raises(AgentError, match="cannot ask"):
            launch(agent)
    else:
        assert launch(agent).argv


# ---------------------------------------------------------------------- tables


@pytest.mark.parametrize("agent", ["gemini", "opencode", "copilot", "qwen", "pi", "cline"])
def test_the_hint_reaches_every_agent_by_its_own_channel(agent: str) -> None:
    launched = launch(agent, hint=3, is_confined=True)
    said = json.dumps([launched.argv, [one.data.decode() for one in launched.files]])
    assert said.count(HINT) == 1
    assert HINT not in repr(launch(agent, is_confined=True))
    channel = adapter_named(agent).capabilities.hint
    assert (channel is HintChannel.SYSTEM_PROMPT) is (HINT in " ".join(launched.argv))


@pytest.mark.parametrize("agent", ["gemini", "copilot", "qwen"])
def test_an_agent_may_do_everything_only_within_a_sandbox(agent: str) -> None:
    free = {"gemini": "yolo", "copilot": "--allow-all-tools", "qwen": "yolo"}[agent]
    assert free in launch(agent, is_confined=True).argv
    assert free not in launch(agent).argv
    assert free in launch(agent, permissions=ALL).argv


def test_a_table_of_the_user_s_drives_an_agent_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(
        """
        name = "mine"
        program = "my-agent"
        arguments = ["--json", "{prompt}"]
        [[rules]]
        when = {type = "hello"}
        tell = "started"
        session = "id"
        [[rules]]
        when = {type = "bye"}
        tell = "closing"
        text = "words"
        is_error = "bad"
        """
    )
    request = request_for("jsonl", options={"table": "mine.toml"}, folder=str(tmp_path))
    adapter = adapter_named("jsonl")
    assert adapter.launch(request).argv == ("my-agent", "--json", "Fix {it}.")
    parser = adapter.parser(request)
    parser.feed("out", b'{"type":"hello","id":"s"}\n{"type":"bye","words":"done","bad":false}\n')
    outcome = parser.finish(Ending(exit_code=0))
    assert (outcome.ok, outcome.session, outcome.text) == (True, "s", "done")


def test_every_mistake_of_a_table_is_told(tmp_path: Path) -> None:
    table = """
    program = 3
    color = "red"
    [[rules]]
    when = {type = "x"}
    tell = "everything"
    """
    with pytest.raises(TableInvalid) as caught:
        launch("jsonl", options={"table": table})
    told = str(caught.value)
    for wrong in ("name", "program", "color", "rules.0.tell"):
        assert wrong in told
    with pytest.raises(TableInvalid, match="cannot be read"):
        launch("jsonl", options={"table": "nowhere.toml"}, folder=str(tmp_path))
    with pytest.raises(AgentError, match="no table"):
        launch("jsonl")


@pytest.mark.parametrize("agent", ["gemini", "opencode", "qwen", "copilot", "pi"])
def test_a_session_is_taken_up_elsewhere_only_by_agents_that_can(agent: str) -> None:
    given: dict[str, Any] = {"is_confined": True, "mode": RetryMode.CONTINUE, "session": "s-1"}
    here = launch(agent, **given, feedback="More tests.")
    assert "s-1" in " ".join(here.argv)
    assert "Fix {it}." not in " ".join(here.argv)
    there = launch(agent, **given, feedback="More tests.", session_workspace="/another")
    words = " ".join(there.argv)
    roams = adapter_named(agent).capabilities.resume_elsewhere
    assert roams is (agent in {"copilot", "pi"})
    assert ("s-1" in words) is roams
    assert ("Fix {it}." in words) is not roams
    assert "More tests." in words


# ---------------------------------------------------------------------- the rest


def test_an_unknown_agent_is_told_with_its_nearest() -> None:
    with pytest.raises(AgentNotFound) as caught:
        adapter_named("cluade")
    assert "'claude'" in caught.value.hint


@pytest.mark.parametrize("name", sorted(adapters()))
def test_capabilities_do_not_contradict_each_other(name: str) -> None:
    adapter = adapters()[name]
    can = adapter.capabilities
    assert adapter.name == name
    assert adapter.install_hint
    is_typed_at = name == "terminal"  # by a human or the engine, with no protocol
    assert can.two_way or is_typed_at or not (can.permission or can.interrupt)
    assert can.steer is not Steering.BY_RESUME or can.resume


def permits(mode: str, allow: str = "", deny: str = "") -> Permissions:
    given = {"allow": (allow,) if allow else (), "deny": (deny,) if deny else ()}
    return Permissions(mode=PermissionMode(mode), **given)


@pytest.mark.parametrize(
    ("permissions", "confined", "decision"),
    [
        (permits("auto"), True, True),
        (permits("auto"), False, None),
        (permits("auto", deny="Bash(git *)"), True, False),
        (permits("ask", allow="*"), True, None),
        (permits("ask", deny="Bash"), True, False),
        (permits("rules", allow="Bash(git *)"), False, True),
        (permits("rules", allow="Bash(npm *)"), False, None),
        (permits("rules", allow="*", deny="Bash(git p*)"), False, False),
    ],
)
def test_a_permission_is_decided_by_mode_rules_and_sandbox(
    permissions: Permissions, *, confined: bool, decision: bool | None
) -> None:
    request = request_for("claude", permissions=permissions, is_confined=confined)
    decided = decide(request, "Bash", "git push")
    assert (decided and decided[0]) == decision
