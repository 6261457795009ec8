"""Claude Code on a terminal: what lies in its HOME, what its hooks say, and how it is answered."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.agents.agent_events import Asked, ProtocolReply, TurnEnded, Withdrawn
from engine.agents.contract import AgentLaunch, LaunchRequest
from engine.agents.on_screen.adapter import TerminalAdapter
from engine.agents.on_screen.of_claude import CLAUDE
from engine.agents.on_screen.stream import ScreenStream
from engine.messages.asked import AnswerScope, KeptAnswer, Question
from engine.plan.model import AgentChoice, PermissionMode, Permissions
from tests.integration.test_agents_settings import write, written

DONE = b"\x1b]777;notify;plait;done\x07"


def request(
    home: Path, argv: tuple[str, ...] = ("claude", "{prompt}"), **more: Any
) -> LaunchRequest:
    return LaunchRequest(
        choice=AgentChoice(name="x", adapter="terminal", argv=argv, user_code=True),
        prompt="do it",
        workspace="/w",
        home=str(home / "worker"),
        user_home=str(home),
        environment={"HOME": str(home), "ANTHROPIC_API_KEY": "k" * 30},
        is_confined=True,
        **more,
    )


def launch(home: Path, **more: Any) -> AgentLaunch:
    return TerminalAdapter().launch(request(home, **more))


def settings(launched: AgentLaunch) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(written(launched, ".claude/settings.json"))
    return found


def stream(home: Path, *argv: str) -> ScreenStream:
    return TerminalAdapter().parser(request(home, argv or ("claude", "{prompt}")))


def notice(hook: dict[str, Any], tmp_path: Path) -> bytes:
    """Run the hook's own script as Claude Code does, and return what it has it write."""
    script = tmp_path / "tells.sh"
    script.write_text(written(launch(tmp_path), ".plait/tells.sh"))
    said = subprocess.run(
        ["sh", script, hook["hook_event_name"]],
        input=json.dumps(hook, ensure_ascii=False),
        capture_output=True,
        text=True,
        check=True,
    )
    return str(json.loads(said.stdout)["terminalSequence"]).encode() if said.stdout else b""


def test_nothing_is_asked_of_a_new_user(tmp_path: Path) -> None:
    state = json.loads(written(launch(tmp_path), ".claude.json"))
    assert state["hasCompletedOnboarding"] is True
    assert state["projects"]["/w"]["hasTrustDialogAccepted"] is True
    assert state["customApiKeyResponses"]["approved"] == ["k" * 20]


def test_hooks_stand_beside_those_of_the_user(tmp_path: Path) -> None:
    mine = {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]}
    write(tmp_path, ".claude/settings.json", json.dumps({"hooks": mine, "model": "opus"}))
    found = settings(launch(tmp_path))
    assert found["model"] == "opus"
    assert found["hooks"]["Stop"][0] == mine["Stop"][0]
    assert len(found["hooks"]["Stop"]) == 2
    assert set(found["hooks"]) == {"Stop", "StopFailure", "Notification", "PermissionRequest"}


def test_what_is_allowed_is_what_the_step_allows(tmp_path: Path) -> None:
    contained = settings(launch(tmp_path))["permissions"]
    assert "Bash" in contained["allow"]
    assert contained["defaultMode"] == "acceptEdits"
    asking = settings(launch(tmp_path, permissions=Permissions(mode=PermissionMode.ASK)))
    assert asking["permissions"]["defaultMode"] == "default"
    assert (asking["permissions"]["allow"], asking["permissions"]["deny"]) == ([], [])
    rules = Permissions(mode=PermissionMode.RULES, allow=("Bash(git *)",), deny=("Bash(rm *)",))
    held = settings(launch(tmp_path, permissions=rules))["permissions"]
    assert (held["allow"], held["deny"]) == (["Bash(git *)"], ["Bash(rm *)"])


def test_another_program_gets_nothing_of_this(tmp_path: Path) -> None:
    assert launch(tmp_path, argv=("sh", "-c", "claude", "{prompt}")).files == ()


def test_the_end_of_a_turn_ends_the_work(tmp_path: Path) -> None:
    said = notice({"hook_event_name": "Stop", "last_assistant_message": "Done."}, tmp_path)
    assert said == DONE
    assert stream(tmp_path).feed("out", said)[1:] == [
        ProtocolReply(CLAUDE.leave),
        TurnEnded(is_ok=True),
    ]


@pytest.mark.parametrize(
    ("tool", "given", "detail"),
    [
        ("Bash", {"command": "echo hello > hello.txt"}, "echo hello > hello.txt"),
        ("Bash", {"command": 'printf "a;b\\n" | tee x'}, 'printf "a;b\\n" | tee x'),
        ("Bash", {"command": "printf 'é\\\\'"}, "printf 'é\\\\'"),
        ("Write", {"file_path": "/w/a.txt", "content": '"command": "no"'}, "/w/a.txt"),
        ("WebSearch", {"query": "x"}, "x"),
        ("Bash", {"command": "x" * 200}, "x" * 200),
        ("Bash", {"command": "y" * 199 + '"\x07\x1b"'}, None),
    ],
)
def test_a_permission_is_asked_with_its_tool(
    tool: str, given: dict[str, str], detail: str | None, tmp_path: Path
) -> None:
    hook = {"hook_event_name": "PermissionRequest", "tool_name": tool, "tool_input": given}
    reader = stream(tmp_path)
    asked = next(e for e in reader.feed("out", notice(hook, tmp_path)) if isinstance(e, Asked))
    assert (asked.tool, asked.is_permission, asked.choices) == (tool, True, ("allow", "deny"))
    assert detail is None or asked.detail == detail
    assert asked.needs_human  # another program there can write the same


GIT = {"command": "git status"}


def asked_by(tool: str, given: object, tmp_path: Path, event: str = "PermissionRequest") -> Asked:
    more = {"session_id": "s", "cwd": '/w/"tool_name": "Bash"', "hook_event_name": event}
    said = notice({**more, "tool_name": tool, "tool_input": given}, tmp_path)
    return next(e for e in stream(tmp_path).feed("out", said) if isinstance(e, Asked))


@pytest.mark.parametrize(
    ("tool", "given", "detail"),
    [
        ("Bash", {"command": "git status; " + "echo; " * 40 + "git push --force"}, "git status; "),
        ("Bash", {"command": "git status\npush"}, "git status push"),
        ("Bash", {"command": "git \x07 status"}, "git ? status"),
        ("Bash", {"more": GIT, "command": "git push --force"}, "git status"),
        ("Bash", {"command": "git push --force", "more": [GIT]}, "git push --force"),
        ("Bash", {}, ""),
        ("mcp__github__delete_repo", {"repo": "x", "more": {"tool_name": "Bash", **GIT}}, "…"),
        ("mcp__my-server__run", {"hook_event_name": "Stop", **GIT}, "…"),
        ("Task", {"prompt": "go", **GIT}, "…"),
    ],
)
def test_what_is_asked_on_a_terminal_is_never_answered_by_a_kept_answer(
    tool: str, given: dict[str, object], detail: str, tmp_path: Path
) -> None:
    asked = asked_by(tool, given, tmp_path)
    assert (asked.tool, asked.needs_human) == (tool, True)
    assert asked.detail.startswith(detail)
    assert "look at its terminal" in asked.text
    text, about = asked.text, f"{asked.tool}({asked.detail})"
    question = Question(
        id="q", text=text, about=about, is_permission=True, needs_human=asked.needs_human
    )
    kept = [
        KeptAnswer(number=1, answer="allow", scope=AnswerScope.RUN, asked=text),
        KeptAnswer(number=2, answer="allow", scope=AnswerScope.RUN, pattern="*"),
    ]
    assert not any(one.answers(question, worker="w", step="s") for one in kept)
    known = replace(question, needs_human=False)  # the control
    assert all(one.answers(known, worker="w", step="s") for one in kept)


def test_a_notice_that_the_terminal_cut_says_so(tmp_path: Path) -> None:
    said = f"\x1b]777;notify;plait permission;Bash(git {'x' * 600})\x07".encode()
    asked = next(e for e in stream(tmp_path).feed("out", said) if isinstance(e, Asked))
    assert "look at its terminal" in asked.text


def test_its_hooks_are_found_in_any_folder(tmp_path: Path) -> None:
    home = tmp_path / "it's mine"
    home.mkdir()
    launched = launch(home)
    script = home / "worker/.plait/tells.sh"
    script.parent.mkdir(parents=True)
    script.write_text(written(launched, ".plait/tells.sh"))
    command = settings(launched)["hooks"]["Stop"][-1]["hooks"][0]["command"]
    said = subprocess.run(
        ["sh", "-c", command], input="{}", capture_output=True, check=True, text=True
    )
    assert json.loads(said.stdout)["terminalSequence"].encode() == DONE


def test_a_permission_is_answered_by_the_keys_of_its_dialog(tmp_path: Path) -> None:
    said = b"\x1b]777;notify;plait permission;Bash(ls)\x07"
    reader = stream(tmp_path)
    reader.feed("out", said)
    assert reader.answer("screen-1", "allow") == CLAUDE.allow
    assert reader.feed("in", CLAUDE.allow) == [Withdrawn("screen-1")]


@pytest.mark.parametrize("answer", ["deny", "deny: use uv"])
def test_what_is_denied_ends_its_work(answer: str, tmp_path: Path) -> None:
    reader = stream(tmp_path)
    reader.feed("out", b"\x1b]777;notify;plait permission;Bash(ls)\x07")
    assert reader.answer("screen-1", answer) == CLAUDE.deny
    assert reader.feed("in", CLAUDE.deny) == [
        ProtocolReply(CLAUDE.leave),
        TurnEnded(is_ok=True),
        Withdrawn("screen-1"),
    ]


def test_what_is_denied_ends_its_work_whatever_else_is_typed_with_it(tmp_path: Path) -> None:
    reader = stream(tmp_path)
    reader.feed("out", b"\x1b]777;notify;plait permission;Bash(ls)\x07")
    reader.answer("screen-1", "deny")
    assert TurnEnded(is_ok=True) in reader.feed("in", b"x" + CLAUDE.deny)


def test_a_program_that_is_not_known_is_asked_in_words(tmp_path: Path) -> None:
    said = b"\x1b]777;notify;plait permission;Bash(ls)\x07"
    asked = stream(tmp_path, "agent").feed("out", said)[1]
    assert isinstance(asked, Asked)
    assert not asked.is_permission


@pytest.mark.parametrize(
    ("hook", "words"),
    [
        (
            {"notification_type": "idle_prompt", "message": "Claude waits"},
            "claude: Claude waits",
        ),
        ({"notification_type": "permission_prompt", "message": "Claude needs"}, ""),
        (
            {"hook_event_name": "StopFailure", "error": "rate_limit"},
            "ended with an error: rate_limit",
        ),
    ],
)
def test_its_other_notices_are_questions(hook: dict[str, str], words: str, tmp_path: Path) -> None:
    said = notice({"hook_event_name": "Notification", **hook}, tmp_path)
    asked = [e.text for e in stream(tmp_path).feed("out", said) if isinstance(e, Asked)]
    assert (words in asked[0]) if words else asked == []


def test_a_human_who_has_typed_in_its_terminal_says_when_it_is_over(tmp_path: Path) -> None:
    reader = stream(tmp_path)
    reader.feed("in", b"also write a test\r")
    (asked,) = [e for e in reader.feed("out", DONE) if not isinstance(e, Withdrawn)][-1:]
    assert isinstance(asked, Asked)
    assert asked.choices == ("end it",)
    assert reader.answer(asked.id, "end it") == CLAUDE.leave
    assert TurnEnded(is_ok=True) in reader.feed("in", CLAUDE.leave)


def test_words_that_plait_typed_are_no_human_s(tmp_path: Path) -> None:
    reader = stream(tmp_path)
    said = reader.steer("Use spaces.")
    assert said is not None
    reader.feed("in", said)
    assert TurnEnded(is_ok=True) in reader.feed("out", DONE)
