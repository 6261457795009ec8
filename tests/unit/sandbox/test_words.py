"""The words of wrappers: what bubblewrap and systemd are asked for, and what they never are."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from engine.limits import Limits
from engine.sandbox import scope
from engine.sandbox.bubblewrap import without_keeper, words
from engine.sandbox.environment import environment
from engine.sandbox.fence import rules
from engine.sandbox.machine import MachineSupport, Mechanism, forced
from engine.sandbox.request import ConfineRequest, NetworkAccess, SandboxHoles
from engine.sandbox.view import look
from tests.unit.sandbox.machines import FULL


@pytest.fixture
def request_(tmp_path: Path) -> ConfineRequest:
    for name in ("w", "h", "user"):
        (tmp_path / name).mkdir()
    env = {"HOME": str(tmp_path / "user"), "PATH": "/usr/bin"}
    return ConfineRequest(name="x", workspace=tmp_path / "w", home=tmp_path / "h", env=env)


def wrapper(machine: MachineSupport, request: ConfineRequest) -> tuple[str, ...]:
    return words(machine, request, look(machine, request))


def test_the_keepers_words_are_there_and_can_be_taken_away(request_: ConfineRequest):
    made = wrapper(FULL, request_)
    assert made[1:4] == ("--json-status-fd", "{status_fd}", "--die-with-parent")
    assert made[-1] == "--"
    assert not set(without_keeper(made)) & set(made[1:3])
    assert "--die-with-parent" in without_keeper(made)


def test_root_becomes_another_user_and_an_ordinary_one_stays(request_: ConfineRequest):
    assert "--uid" in wrapper(replace(FULL, uid=0), request_)
    assert "--uid" not in wrapper(FULL, request_)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"network": NetworkAccess.NONE}, "--unshare-net"),
        ({"has_terminal": True}, "--new-session"),
        ({"needs_own_sandbox": True}, "--disable-userns"),
    ],
)
def test_a_request_decides_about_a_word(
    request_: ConfineRequest, change: dict[str, object], word: str
):
    asked = replace(request_, **change)  # type: ignore[arg-type]
    assert (word in wrapper(FULL, asked)) is (word not in wrapper(FULL, request_))
    assert (word in wrapper(FULL, asked)) is (word == "--unshare-net")


def test_processes_are_limited_inside_only_where_no_cgroup_does(request_: ConfineRequest):
    asked = replace(request_, limits=Limits(pids=9))
    assert "prlimit" not in wrapper(FULL, asked)
    without = forced(FULL, {"PLAIT_FORCE_OFF": "cgroup2,cgroup1,systemd"})
    assert wrapper(without, asked)[-3:] == ("prlimit", "--nproc=9:9", "--")


def test_what_is_hidden_below_a_shown_folder_is_left_out_of_the_fence(
    request_: ConfineRequest, tmp_path: Path
):
    shown = tmp_path / "tools"
    for name in ("a", "b/inner", "b/secret"):
        (shown / name).mkdir(parents=True)
    asked = replace(request_, read_only=(shown,), hide=(shown / "b/secret",))
    fence = dict(rules(look(FULL, asked)))
    assert str(shown) not in fence
    assert fence[str(shown / "a")] == "ro"
    assert fence[str(shown / "b/inner")] == "ro"
    assert not [path for path in fence if "secret" in path]
    assert fence[str(request_.workspace)] == "rw"


def test_a_scope_gets_every_limit_and_no_way_back_to_the_manager():
    env = {"XDG_RUNTIME_DIR": "/run/user/7", "SECRET": "x"}
    made = scope.words("n", Limits(memory_mb=512, cpu_percent=150, pids=9), env)
    assert made[:2] == ("env", "XDG_RUNTIME_DIR=/run/user/7")
    assert {
        "--unit=plait-n",
        "--property=MemoryMax=512M",
        "--property=MemorySwapMax=0",
        "--property=CPUQuota=150%",
        "--property=TasksMax=9",
    } <= set(made)
    assert made[-5:] == ("env", "-u", "XDG_RUNTIME_DIR", "-u", "DBUS_SESSION_BUS_ADDRESS")


def test_a_scope_without_limits_says_so():
    made = scope.words("n", Limits(), {})
    assert "--property=MemoryMax=infinity" in made
    assert f"XDG_RUNTIME_DIR=/run/user/{os.getuid()}" in made


def test_the_environment_holds_what_is_named_and_nothing_else(request_: ConfineRequest):
    user = {
        **request_.env,
        "LC_ALL": "C",
        "GIT_DIR": "/x",
        "AWS_SECRET_ACCESS_KEY": "x",
        "SSH_AUTH_SOCK": "/run/agent",
        "MY_A": "1",
        "OTHER": "2",
    }
    asked = replace(request_, env=user, holes=SandboxHoles(env=("MY_*", "GIT_DIR", "HOME")))
    found = dict(environment(FULL, asked, {"ANTHROPIC_API_KEY": "k"}))
    assert found == {
        "LC_ALL": "C",
        "MY_A": "1",
        "ANTHROPIC_API_KEY": "k",
        "PATH": "/usr/bin",
        "HOME": str(request_.home),
        "TMPDIR": "/tmp",  # noqa: S108 - of the sandbox
        "GIT_CEILING_DIRECTORIES": str(request_.workspace.parent),
    }


def test_temporary_files_go_where_the_rung_lets_them(request_: ConfineRequest, tmp_path: Path):
    temp = tmp_path / "temp"
    temp.mkdir()
    asked = replace(request_, temp=temp)
    without = forced(FULL, {"PLAIT_SANDBOX": "landlock"})
    assert dict(environment(without, asked))["TMPDIR"] == str(temp)
    assert files_of(without, asked)[str(temp)] == "rw"


def files_of(machine: MachineSupport, request: ConfineRequest) -> dict[str, str]:
    return dict(rules(look(machine, request)))


@pytest.mark.parametrize("name", ["", "a/b", ".hidden", "x" * 300, "a b"])
def test_a_name_that_is_no_folder_is_refused(request_: ConfineRequest, name: str):
    with pytest.raises(ValueError, match="not a name"):
        replace(request_, name=name)


def test_a_relative_path_is_refused(request_: ConfineRequest):
    with pytest.raises(ValueError, match="absolute"):
        replace(request_, workspace=Path("w"))


def test_every_mechanism_can_be_forced_off():
    off = forced(FULL, {"PLAIT_FORCE_OFF": ",".join(Mechanism)})
    assert not any(each.works for each in off.findings)
    assert off.hierarchies == ()
