"""A rule for a part of a command allows no other command, and a denied one is found anywhere."""

from dataclasses import replace

import pytest

from engine.agents.contract import LaunchRequest
from engine.agents.permitting import decide
from engine.messages.asked import AnswerScope, KeptAnswer, Question, covers
from engine.plan.model import AgentChoice, PermissionMode, Permissions

RULE = "Bash(git *)"
MORE = (
    "git status && rm -rf ~",
    "git status; rm -rf ~",
    "git status & rm -rf ~",
    "git log | sh",
    "git log $(rm -rf ~)",
    "git log `rm -rf ~`",
    "git log > ~/.bashrc",
    "git log <(rm -rf ~)",
    "git status\nrm -rf ~",
    "git status\u202e; x",
    "git status \x1b[2K",
    "git log" + " " * 300 + "rm",
)


def launched(allow: tuple[str, ...], deny: tuple[str, ...] = ()) -> LaunchRequest:
    rules = Permissions(mode=PermissionMode.RULES, allow=allow, deny=deny)
    choice = AgentChoice(name="codex", adapter="codex")
    return LaunchRequest(choice=choice, prompt="", workspace="/", home="/", permissions=rules)


@pytest.mark.parametrize("command", MORE)
def test_a_rule_for_one_command_allows_no_other_behind_it(command: str) -> None:
    request = launched((RULE,))
    assert decide(request, "Bash", "git status") == (True, RULE)  # the control
    assert decide(request, "Bash", command) is None
    kept = KeptAnswer(number=1, answer="allow", scope=AnswerScope.RUN, pattern=RULE)
    asked = Question(id="q", text=command, about=f"Bash({command})", is_permission=True)
    assert not kept.answers(asked, worker="w", step="s")


@pytest.mark.parametrize("pattern", ["*", "Bash", "Bash(*)", "Bash(git status && rm -rf ~)"])
def test_a_rule_for_the_whole_tool_or_the_exact_line_allows_it(pattern: str) -> None:
    request = launched((pattern,))
    assert decide(request, "Bash", "git status && rm -rf ~") == (True, pattern)


@pytest.mark.parametrize("command", ["rm -rf ~", "git status && rm -rf ~", "git log $(rm -rf ~)"])
def test_a_denied_command_is_found_behind_another(command: str) -> None:
    request = launched(("*",), ("Bash(rm *)",))
    assert decide(request, "Bash", command) == (False, "Bash(rm *)")
    assert decide(request, "Bash", "git rm x") == (True, "*")


@pytest.mark.parametrize(
    ("tool", "detail"),
    [
        ("Edit", "keys/a"),
        ("Edit", "src/../keys/a"),
        ("Edit", "src/my code/../../keys/a"),
        ("Edit", "./keys//a"),
        ("Edit", "/work space/keys/a"),
        ("Edit", "/work space/src/../keys/a"),
        ("Bash", "cat src/../keys/a"),
        ("Bash", "cat ok && cat src/../keys/a"),
    ],
)
def test_a_denied_path_is_found_however_it_is_written(tool: str, detail: str) -> None:
    request = replace(
        launched(("*",), ("Edit(keys/*)", "Bash(cat keys/*)")), workspace="/work space"
    )
    assert decide(request, tool, detail) in {(False, one) for one in request.permissions.deny}
    assert decide(request, tool, detail.replace("keys", "keys.py")) == (True, "*")
    assert decide(request, tool, "https://keys/a") == (True, "*")


def test_a_path_is_covered_as_it_is_written() -> None:
    assert covers("Edit(src/*)", "Edit(src/a b.py)")
    assert not covers("Edit(src/*)", "Edit(src/\u200b.py)")


@pytest.mark.parametrize(
    "path", ["src/../.env", "src/..", "src/a/../../../x", "src/../../../etc/x"]
)
def test_a_rule_for_a_folder_allows_no_way_out_of_it(path: str) -> None:
    assert not covers("Edit(src/*)", f"Edit({path})")
    assert covers("Edit(*)", f"Edit({path})")
    assert covers("Edit(src/*)", "Edit(src/a..b/..c/d..py)")
    assert covers("Bash(git *)", "Bash(git log main..dev)")
