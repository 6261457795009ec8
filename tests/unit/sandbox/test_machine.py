"""Test what is kept of a probe, and what the two variables make of it."""

import json
from dataclasses import replace
from itertools import product

import pytest

from engine.errors import MechanismMissing
from engine.limits import Dimension, Enforcement, Level, Limits
from engine.sandbox.ladder import (
    at_best,
    check_required,
    files_rung,
    keeps_content,
    limiter,
    limiters,
    report,
)
from engine.sandbox.machine import Hierarchy, MachineSupport, Mechanism, MechanismFinding, forced
from engine.sandbox.request import NetworkAccess, SandboxHoles
from tests.unit.sandbox.machines import FULL, asking


def test_a_machine_survives_json():
    assert MachineSupport.from_json(json.loads(json.dumps(FULL.to_json()))) == FULL


@pytest.mark.parametrize("spoiled", [{}, {"identity": "x"}, {"findings": [{"mechanism": "x"}]}])
def test_what_another_version_wrote_is_refused(spoiled: dict[str, object]):
    with pytest.raises((KeyError, TypeError, ValueError)):
        MachineSupport.from_json({**(FULL.to_json() if spoiled else {}), **spoiled, "more": 1})


@pytest.mark.parametrize(
    ("demanded", "rung"),
    [
        ("", Mechanism.BWRAP),
        ("bwrap", Mechanism.BWRAP),
        ("landlock", Mechanism.LANDLOCK),
        ("none", None),
    ],
)
def test_the_rung_demanded_is_the_one_used(demanded: str, rung: Mechanism | None):
    assert files_rung(forced(FULL, {"PLAIT_SANDBOX": demanded})) is rung


def test_a_rung_demanded_that_does_not_work_is_no_other_rung():
    broken = replace(
        FULL,
        findings=tuple(
            replace(each, works=False, reason="setting up uid map: Permission denied", fix="do so")
            if each.mechanism is Mechanism.BWRAP
            else each
            for each in FULL.findings
        ),
    )
    with pytest.raises(MechanismMissing, match="uid map") as caught:
        files_rung(forced(broken, {"PLAIT_SANDBOX": "bwrap"}))
    assert caught.value.hint == "do so"
    assert files_rung(broken) is Mechanism.LANDLOCK


@pytest.mark.parametrize("name", ["PLAIT_SANDBOX", "PLAIT_FORCE_OFF"])
def test_a_value_that_means_nothing_is_refused(name: str):
    with pytest.raises(MechanismMissing, match="docker"):
        forced(FULL, {name: "docker"})


@pytest.mark.parametrize(
    ("off", "expected"),
    [
        ("", Mechanism.CGROUP2),
        ("cgroup2", Mechanism.SYSTEMD),
        ("cgroup2,systemd", Mechanism.CGROUP1),
        ("cgroup2, cgroup1 ,systemd", Mechanism.SAMPLING),
        ("cgroup2,cgroup1,systemd,sampling", None),
    ],
)
def test_each_rung_of_memory_is_the_next_when_those_above_are_off(
    off: str, expected: Mechanism | None
):
    machine = forced(FULL, {"PLAIT_FORCE_OFF": off})
    assert limiter(machine, Dimension.MEMORY) is expected
    rows = {row.dimension: row for row in report(machine, asking(Limits(memory_mb=5)), {})}
    levels = {None: Level.NONE, Mechanism.SAMPLING: Level.SAMPLED}
    assert rows[Dimension.MEMORY].level is levels.get(expected, Level.ENFORCED)
    is_told = off.replace(" ", "") in rows[Dimension.MEMORY].reason.replace(" ", "")
    assert is_told or rows[Dimension.MEMORY].level is Level.ENFORCED


def test_processes_are_counted_by_the_namespace_where_no_cgroup_does():
    machine = forced(FULL, {"PLAIT_FORCE_OFF": "cgroup2,cgroup1,systemd"})
    assert limiter(machine, Dimension.PIDS) is Mechanism.NPROC
    for rung in ("landlock", "none"):  # where there is no namespace to count in
        lower = forced(machine, {"PLAIT_SANDBOX": rung})
        assert limiter(lower, Dimension.PIDS) is Mechanism.SAMPLING


def test_a_scope_takes_the_place_of_cgroups_made_by_hand():
    machine = forced(FULL, {"PLAIT_FORCE_OFF": "cgroup2"})
    assert [each.mechanism for each in limiters(machine)] == [Mechanism.SYSTEMD]


def test_a_group_of_version_2_spares_those_that_count_and_freeze():
    empty = Hierarchy(mechanism=Mechanism.CGROUP2, version=2, controllers=(), parent="/c2")
    old = [
        Hierarchy(mechanism=Mechanism.CGROUP1, version=1, controllers=(each,), parent=f"/{each}")
        for each in ("memory", "cpuacct", "freezer")
    ]
    assert limiters(replace(FULL, hierarchies=(empty, *old))) == (empty, old[0])
    assert limiters(replace(FULL, hierarchies=tuple(old))) == tuple(old)


def test_an_empty_group_is_kept_for_killing_and_freezing_alone():
    empty = Hierarchy(mechanism=Mechanism.CGROUP2, version=2, controllers=(), parent="/c2")
    memory = Hierarchy(
        mechanism=Mechanism.CGROUP1, version=1, controllers=("memory",), parent="/c1"
    )
    machine = replace(FULL, hierarchies=(empty, memory))
    assert limiters(machine) == (empty, memory)
    assert limiters(forced(machine, {"PLAIT_FORCE_OFF": "cgroup-kill"})) == (memory,)


SAMPLED = {Dimension.DISK, Dimension.BUDGET}


def test_a_full_machine_meets_every_requirement_that_can_be_enforced():
    check_required(set(Dimension) - SAMPLED, at_best(FULL))


@pytest.mark.parametrize(
    "dimension", [Dimension.FILES, Dimension.GIT, Dimension.NETWORK, *sorted(SAMPLED)]
)
def test_a_requirement_that_is_not_enforced_fails_closed_with_a_fix(dimension: Dimension):
    bare = MachineSupport(
        identity="",
        uid=1000,
        findings=(
            MechanismFinding(
                mechanism=Mechanism.BWRAP, works=False, reason="not installed", fix="Install it."
            ),
        ),
    )
    with pytest.raises(MechanismMissing) as caught:
        check_required([dimension], at_best(bare))
    assert caught.value.dimension == dimension
    assert caught.value.hint


def test_the_docker_socket_ends_what_files_promise():
    rows = report(FULL, asking(docker=True), {})
    files = next(row for row in rows if row.dimension is Dimension.FILES)
    assert files.level is Level.ADVISORY
    assert "docker" in files.reason


def files_row(machine: MachineSupport, holes: SandboxHoles) -> Enforcement:
    request = replace(asking(), holes=holes, env={"HOME": "/nonexistent", "SSH_AUTH_SOCK": "/"})
    return report(machine, request, {})[0]


def test_on_landlock_a_hole_for_sockets_opens_them_all():
    machine = forced(FULL, {"PLAIT_SANDBOX": "landlock"})
    assert keeps_content(machine, asking())
    assert not keeps_content(machine, replace(asking(), holes=SandboxHoles(ssh_agent=True)))
    assert "reach Unix sockets" not in files_row(machine, SandboxHoles()).reason
    opened = files_row(machine, SandboxHoles(ssh_agent=True))
    assert opened.level is Level.ADVISORY
    assert "reach Unix sockets" in opened.reason
    assert files_row(FULL, SandboxHoles(ssh_agent=True)).level is Level.ENFORCED


def test_a_hole_that_leads_nowhere_is_told():
    holes = SandboxHoles(paths=("/usr", "~/.npmrc", "relative", "/nowhere:rw"), ssh_agent=True)
    said = files_row(FULL, holes).reason
    assert "openings that you allow, but missing: ~/.npmrc, relative, /nowhere:rw" in said
    assert "openings that you allow: /usr" in said


def test_an_open_network_is_told_as_it_is():
    rows = report(FULL, asking(network=NetworkAccess.OPEN), {})
    network = next(row for row in rows if row.dimension is Dimension.NETWORK)
    assert (network.level, network.value) == (Level.NONE, "open")
    assert network.reason == "the network stays open unless the manifest closes it"


@pytest.mark.parametrize(
    ("rung", "fix"),
    [
        ("bwrap", "Close it with `runtime.sandbox.network`: `none`, or `{allow: [hosts]}`."),
        ("landlock", "Close it with `runtime.sandbox.network: none`."),
        ("none", ""),
    ],
)
def test_an_open_network_names_only_a_way_to_close_it_that_this_machine_has(rung: str, fix: str):
    machine = forced(FULL, {"PLAIT_SANDBOX": rung})
    rows = report(machine, asking(network=NetworkAccess.OPEN), {})
    network = next(row for row in rows if row.dimension is Dimension.NETWORK)
    assert network.fix == fix or (not fix and "Close it" not in network.fix)


def test_landlock_is_not_called_enforced_because_modes_and_times_can_be_changed():
    machine = forced(FULL, {"PLAIT_SANDBOX": "landlock"})
    rows = {row.dimension: row for row in at_best(machine)}
    for dimension in (Dimension.FILES, Dimension.GIT):
        assert rows[dimension].level is Level.ADVISORY
        assert "modes" in rows[dimension].reason


_OFF = ("", "bwrap", "landlock", "netns", "seccomp")
_FEW = (Hierarchy(mechanism=Mechanism.CGROUP2, version=2, controllers=(), parent="/c2"),)


@pytest.mark.parametrize("rung", ["", "bwrap", "landlock", "none"])
@pytest.mark.parametrize("network", list(NetworkAccess))
@pytest.mark.parametrize(
    "hierarchies", [FULL.hierarchies, _FEW, ()], ids=["full", "no controllers", "none"]
)
def test_every_level_below_enforced_says_why(
    rung: str, network: NetworkAccess, hierarchies: tuple[Hierarchy, ...]
):
    limiters_off = ("", "cgroup1,cgroup2,systemd", "cgroup1,cgroup2,systemd,nproc,sampling")
    for off, more, abi, private in product(_OFF, limiters_off, (1, 7), (True, False)):
        if rung and rung in off:
            continue
        words = ",".join(filter(None, (off, more)))
        machine = forced(replace(FULL, landlock_abi=abi, hierarchies=hierarchies), {})
        machine = forced(machine, {"PLAIT_SANDBOX": rung, "PLAIT_FORCE_OFF": words})
        for holes in (SandboxHoles(), SandboxHoles(docker=True), SandboxHoles(ssh_agent=True)):
            request = replace(asking(network=network), holes=holes)
            request = request if private else replace(request, private_clone=None)
            for row in report(machine, request, {}):
                assert row.level is Level.ENFORCED or row.reason, (words, row)
                assert row.level is not Level.ENFORCED or row.mechanism != "none", (words, row)


def test_a_site_reports_one_row_for_every_dimension():
    assert [row.dimension for row in at_best(FULL)] == list(Dimension)
