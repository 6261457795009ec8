"""Attempts survive their way through JSON, also when an older keeper says less."""

import json

from engine.host.records import exit_of, request_of
from engine.host.seam import AttemptExit, AttemptSpec
from engine.ids import AttemptId, RunId, WorkerId
from engine.keeper.request import Request
from engine.limits import Dimension, LimitHit, Limits, Usage
from engine.phases import StopCause
from engine.sandbox.profile import Cgroup, Profile

SPEC = AttemptSpec(
    attempt=AttemptId(RunId("r"), WorkerId("s", 1), 2),
    directory="/d",
    argv=("agent", "\udcff"),
    env=(("KEY", "\udcfe"),),
    cwd="/w",
    mark="m",
    first_input=bytes(range(256)),
    terminal=(24, 80),
    limits=Limits(memory_mb=5),
    profile=Profile(
        wrapper=("bwrap",),
        landlock_rules=(("/", "ro"),),
        rlimits=(("CORE", 0),),
        cgroups=(Cgroup(version=1, controllers=("pids",), path="/c"),),
        disk_paths=("/w", "/h"),
    ),
)


def test_a_request_says_everything_a_spec_says() -> None:
    request = Request(json.loads(json.dumps(request_of(SPEC))))
    assert request.attempt == "r/s/worker_1@2"
    assert request.argv == ["agent", "\udcff"]
    assert request.env == {"KEY": "\udcfe", "PLAIT_MARK": "m"}
    assert request.first_input == SPEC.first_input
    assert request.limits["memory_mb"] == 5
    assert request.is_fenced
    assert [(each.version, each.path, each.is_joined) for each in request.cgroups] == [
        (1, "/c", True)
    ]
    assert request.disk_paths == ["/w", "/h"]


def test_without_folders_named_the_working_directory_is_watched() -> None:
    plain = AttemptSpec(
        attempt=SPEC.attempt, directory="/d", argv=("a",), env=(), cwd="/w", mark="m"
    )
    request = Request(request_of(plain))
    assert request.disk_paths == ["/w"]
    assert not request.is_fenced


def test_an_exit_is_read_whole() -> None:
    content = {
        "cause": "MEMORY",
        "exit_code": 0,
        "limit": {"dimension": "memory", "allowed": 5, "seen": 6.5, "unit": "MB"},
        "usage": {"cpu_seconds": 1.5, "unheard_of": 1},
        "left_over": ["sh"],
        "unkillable": [7],
    }
    assert exit_of(content) == AttemptExit(
        cause=StopCause.MEMORY,
        exit_code=0,
        limit=LimitHit(dimension=Dimension.MEMORY, allowed=5, seen=6.5, unit="MB"),
        usage=Usage(cpu_seconds=1.5),
        left_over=("sh",),
        unkillable=(7,),
    )


def test_an_exit_that_says_nothing_is_read_too() -> None:
    assert exit_of({}) == AttemptExit()
