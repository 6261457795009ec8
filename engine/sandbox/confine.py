"""Wrapping an attempt: a request and a machine become a profile, its cgroups made and limited.

The only module here that leaves something behind: cgroups, which `release` takes away again, and
links in the worker's HOME.
"""

import contextlib
import itertools
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from engine.errors import MechanismMissing
from engine.limits import Dimension, Enforcement, Limits
from engine.sandbox import bubblewrap, caches, cgroups, fence, ladder, outlet, scope
from engine.sandbox.holes import link_into_home
from engine.sandbox.machine import Hierarchy, MachineSupport, Mechanism
from engine.sandbox.profile import Profile
from engine.sandbox.request import ConfineRequest, NetworkAccess
from engine.sandbox.view import View, look

_PREPARE = """
exec 9< "$1"; shift
until [ "$1" = -- ]; do echo 0 > "$1/cgroup.procs" || exit 126; shift; done
shift
exec "$@"
"""
_FILTER_FD = "9"
_LOOKS = itertools.count()
_LONGEST = 150


def confine(machine: MachineSupport, request: ConfineRequest, view: View | None = None) -> Profile:
    """The profile of one attempt; asking again for a living one gives the same.

    Args:
        machine: Where it will run.
        request: What it may do.
        view: What it sees, where that is known already.

    Raises:
        MechanismMissing: What is asked for in so many words cannot be had here.
        CgroupRefused: The kernel did not take a limit.
        WorkspaceError: The workspace's `.git` was tampered with.
    """
    rung = ladder.files_rung(machine)
    check_network(machine, request)
    if view is None and rung is not None:
        view = look(machine, request)
    link_into_home(request)
    caches.prepare(machine, request)
    places = ladder.limiters(machine)
    scopes = [place for place in places if place.mechanism is Mechanism.SYSTEMD]
    made = cgroups.make((place for place in places if place not in scopes), request.name)
    try:
        read_back = cgroups.limit(made, request.limits)
    except cgroups.CgroupRefused:
        cgroups.remove(made)
        raise
    profile = Profile(
        wrapper=tuple(_scoped(request, scopes)),
        rlimits=tuple(_rlimits(request.limits)),
        cgroups=(*made, *(scope.group(place, request.name) for place in scopes)),
        disk_paths=tuple(str(path) for path in _filled(request, rung)),
        report=ladder.report(machine, request, read_back),
    )
    if view is None:
        return profile
    if rung is Mechanism.BWRAP:
        return _with_bubblewrap(machine, request, view, profile)
    if rung is Mechanism.LANDLOCK:
        return replace(
            profile,
            landlock_rules=fence.rules(view),
            landlock_is_scoped=fence.is_scoped(machine),
            seccomp=fence.system_calls(machine, request),
        )
    return profile


def one_off(machine: MachineSupport, profile: Profile) -> tuple[str, ...]:
    """Words to put before a program that is to see what an attempt sees, without a keeper.

    It joins the profile's cgroups, and is tied to the thread that starts it, which must wait.
    """
    groups = [each.path for each in profile.cgroups if each.is_joined]
    is_mounted = machine.bwrap in profile.wrapper
    code = machine.filter_file if is_mounted and profile.seccomp else ""
    prepared = ("sh", "-c", _PREPARE, "sh", code or os.devnull, *groups, "--")
    first = prepared if groups or code else ()
    if profile.landlock_rules:
        return (*first, *fence.launcher(machine, profile))
    if not is_mounted:
        return first
    start = profile.wrapper.index(machine.bwrap)
    words = bubblewrap.without_keeper(profile.wrapper[start:])
    return (*first, words[0], *(("--seccomp", _FILTER_FD) if code else ()), *words[1:])


@contextlib.contextmanager
def looking(machine: MachineSupport, request: ConfineRequest) -> Iterator[tuple[str, ...]]:
    """Words that put a short program of the engine's into an attempt's view, to look only.

    The attempt may be alive: the cgroups are others than its own. There is no network, and nothing
    that was started lives on afterwards.
    """
    own = replace(
        request,
        name=f"{request.name[:_LONGEST]}.look-{os.getpid()}-{next(_LOOKS)}",
        is_read_only=True,
        network=NetworkAccess.NONE
        if ladder.network_rung(machine, NetworkAccess.NONE)
        else NetworkAccess.OPEN,
        cache_dir=None,
    )
    profile = confine(machine, own)
    try:
        yield one_off(machine, profile)
    finally:
        cgroups.kill(profile.cgroups)
        release(profile)


def set_limits(profile: Profile, limits: Limits, env: Mapping[str, str]) -> dict[Dimension, str]:
    """Change what the cgroups of a living attempt allow; what each dimension then reads.

    Limits that the keeper holds itself are not touched: the keeper must hear of them, too.

    Raises:
        CgroupRefused: The kernel or systemd did not agree; the limits before may hold in part.
    """
    for group in profile.cgroups:
        if not group.is_joined:
            name = Path(group.path).name.removeprefix(cgroups.PREFIX).removesuffix(".scope")
            scope.limit(name, limits, env)
    return cgroups.limit((each for each in profile.cgroups if each.is_joined), limits)


def release(profile: Profile) -> tuple[str, ...]:
    """Remove what `confine` made for an attempt that is dead; what would not go."""
    return cgroups.remove(each for each in profile.cgroups if each.is_joined)


def row(profile: Profile, dimension: Dimension) -> Enforcement:
    """Return how one dimension holds in a profile."""
    return next(each for each in profile.report if each.dimension is dimension)


def _with_bubblewrap(
    machine: MachineSupport, request: ConfineRequest, view: View, profile: Profile
) -> Profile:
    scoped = machine.has(Mechanism.LANDLOCK) and fence.is_scoped(machine)
    return replace(
        profile,
        wrapper=(
            *profile.wrapper,
            *outlet.around(machine, request),
            *bubblewrap.words(machine, request, view),
        ),
        has_pid_namespace=True,
        # The machine's abstract sockets (a desktop's, a debugger's) lie in the network namespace.
        landlock_is_scoped=scoped and request.network is NetworkAccess.OPEN,
        seccomp=bubblewrap.system_calls(machine).hex(),
    )


def check_network(machine: MachineSupport, request: ConfineRequest) -> None:
    """Let nobody begin with a wider network than was asked for.

    Raises:
        MechanismMissing: It cannot be closed here.
    """
    if request.network is NetworkAccess.OPEN or ladder.network_rung(machine, request.network):
        return
    finding = machine.finding(Mechanism.NETWORK_NAMESPACE)
    raise MechanismMissing(
        dimension=Dimension.NETWORK,
        wanted=f"network: {request.network}",
        found=finding.reason or "bubblewrap is missing, which creates the namespace",
        fix=finding.fix or machine.finding(Mechanism.BWRAP).fix,
    )


def _scoped(request: ConfineRequest, places: list[Hierarchy]) -> Iterator[str]:
    if places:
        yield from scope.words(request.name, request.limits, request.env)


def _rlimits(limits: Limits) -> Iterator[tuple[str, int]]:
    # Never RLIMIT_AS: node and java reserve far more than they use, and children count anew.
    yield ("CORE", 0)
    if limits.disk_mb is not None:
        yield ("FSIZE", limits.disk_mb << 20)


def _filled(request: ConfineRequest, rung: Mechanism | None) -> Iterator[Path]:
    yield from (request.workspace, request.home)
    if rung is not Mechanism.BWRAP:
        yield fence.SHARED_MEMORY
    others = (request.private_clone, request.temp, request.cache_dir)
    yield from (path for path in others if path is not None)
