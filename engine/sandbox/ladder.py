"""The rung of each ladder that holds on a machine, as a report and `require` need it.

files    bwrap → Landlock → none
git      private clone under bwrap → under Landlock → tamper-checked
network  namespace → none
memory, cpu   cgroup 2 → a scope of systemd's → cgroup 1 → sampled by the keeper
pids     the same, with RLIMIT_NPROC inside a user namespace before the sampling
time, output  the keeper's own clock and counter
disk     largest file, folder in memory, sampled growth
kill     pid namespace → cgroup.kill → the keeper's sub-reaper
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from engine.errors import MechanismMissing
from engine.limits import KINDS, Dimension, Enforcement, Level, Limits
from engine.sandbox.fence import is_scoped, sockets
from engine.sandbox.holes import missing_holes
from engine.sandbox.machine import Hierarchy, MachineSupport, Mechanism
from engine.sandbox.request import ConfineRequest, NetworkAccess

_UNIFIED = 2
_LIMITERS = (Mechanism.CGROUP2, Mechanism.SYSTEMD, Mechanism.CGROUP1)


def files_rung(machine: MachineSupport) -> Mechanism | None:
    """Return what fences files in here.

    Raises:
        MechanismMissing: PLAIT_SANDBOX demands a rung that does not work.
    """
    if machine.demanded in (Mechanism.BWRAP, Mechanism.LANDLOCK):
        finding = machine.finding(Mechanism(machine.demanded))
        if not finding.works:
            raise MechanismMissing(
                dimension=Dimension.FILES,
                wanted=f"PLAIT_SANDBOX={machine.demanded}",
                found=finding.reason,
                fix=finding.fix,
            )
        return finding.mechanism
    rungs = (Mechanism.BWRAP, Mechanism.LANDLOCK)
    return next((rung for rung in rungs if machine.has(rung)), None)


def limiters(machine: MachineSupport) -> tuple[Hierarchy, ...]:
    """Return where cgroups come from, best first.

    Every one more costs a start its time, so none is taken for what another does already: a scope
    of systemd's has all limits, and any group of version 2 freezes, and counts what is used.
    """
    usable = [each for each in machine.hierarchies if each.controllers or _can_kill(machine)]
    kept: list[Hierarchy] = []
    taken: set[str] = set()
    for place in sorted(usable, key=lambda each: _LIMITERS.index(each.mechanism)):
        is_scope = place.mechanism is Mechanism.SYSTEMD
        is_spared = place.controllers and taken.issuperset(place.controllers)
        if is_spared or (is_scope and "memory" in taken):
            continue
        taken.update(place.controllers)
        if place.version == _UNIFIED:
            taken.update(("cpuacct", "freezer"))
        kept.append(place)
    return tuple(kept)


def report(
    machine: MachineSupport, request: ConfineRequest, read_back: Mapping[Dimension, str]
) -> tuple[Enforcement, ...]:
    """Report how each dimension holds for an attempt; `read_back` is what its cgroups say."""
    fences = {
        Dimension.FILES: _files(machine, request),
        Dimension.GIT: _git(machine, request),
        Dimension.NETWORK: _network(machine, request),
        Dimension.KILL: _kill(machine),
    }
    return tuple(
        fences.get(dimension) or _limited(machine, dimension, request.limits, read_back)
        for dimension in Dimension
    )


def check_required(required: Iterable[Dimension], rows: Iterable[Enforcement]) -> None:
    """Let a run begin only when every required dimension is enforced.

    Raises:
        MechanismMissing: The first one that is not, with what to do about it.
    """
    held = {row.dimension: row for row in rows}
    for dimension in required:
        row = held[dimension]
        if row.level is not Level.ENFORCED:
            raise MechanismMissing(
                dimension=dimension,
                wanted=Level.ENFORCED,
                found=f"{row.level} ({row.mechanism})" + (f": {row.reason}" if row.reason else ""),
                fix=row.fix or "Remove it from `require`; nothing on this machine enforces it.",
            )


def at_best(machine: MachineSupport) -> tuple[Enforcement, ...]:
    """Return what this machine can enforce for a run that opens nothing, one row a dimension."""
    return tuple(replace(row, value="") for row in report(machine, best_request(), {}))


def best_request() -> ConfineRequest:
    """Return what an attempt asks that opens nothing."""
    here = Path("/")
    return ConfineRequest(
        name="doctor", workspace=here, home=here, private_clone=here, network=NetworkAccess.NONE
    )


def keeps_content(machine: MachineSupport, request: ConfineRequest) -> bool:
    """Return whether an attempt can neither read nor write what is in files outside its folders.

    A daemon of the user's that it can reach does both for it.
    """
    rung = files_rung(machine)
    return rung is not None and not (_meets_daemons(machine, request) or request.holes.docker)


def _meets_daemons(machine: MachineSupport, request: ConfineRequest) -> bool:
    is_landlock = files_rung(machine) is Mechanism.LANDLOCK
    return is_landlock and sockets(machine, request) in ("all", "ordinary")


def files_level(machine: MachineSupport, request: ConfineRequest) -> Level:
    """Return how well an attempt is kept to its own folders.

    Landlock keeps the content of files. It does not know of calls that change a file's mode or
    times by its path, so the whole of it is never called enforced.
    """
    rung = files_rung(machine)
    if rung is None:
        return Level.NONE
    is_whole = rung is Mechanism.BWRAP and keeps_content(machine, request)
    return Level.ENFORCED if is_whole else Level.ADVISORY


def _files(machine: MachineSupport, request: ConfineRequest) -> Enforcement:
    rung = files_rung(machine)
    remarks = (*_weaknesses(machine, request), *_opened(request))
    return Enforcement(
        dimension=Dimension.FILES,
        level=files_level(machine, request),
        mechanism=rung.value if rung else "none",
        value=_value(None, "") if rung is None else "own folders",
        reason="; ".join(filter(None, remarks)),
        fix=_files_fix(machine, request, rung),
    )


def _files_fix(machine: MachineSupport, request: ConfineRequest, rung: Mechanism | None) -> str:
    if rung is not Mechanism.BWRAP:
        return machine.finding(Mechanism.BWRAP).fix
    return "Remove `docker` from `runtime.sandbox`." if request.holes.docker else ""


def _weaknesses(machine: MachineSupport, request: ConfineRequest) -> Iterator[str]:
    """Tell what a rung does not hold, and why no better one does."""
    rung = files_rung(machine)
    if rung is Mechanism.BWRAP:
        if not machine.has(Mechanism.OVERLAY):
            yield "your package caches are not shared: that needs bubblewrap 0.11 or later"
        return
    if rung is None:
        yield _why_none(machine, (Mechanism.BWRAP, Mechanism.LANDLOCK))
        return
    yield _why_not(machine, Mechanism.BWRAP)
    yield from _gaps_of_landlock(machine)
    if _meets_daemons(machine, request):
        yield "the agent can reach Unix sockets of the user's daemons"


_KNOWS_TRUNCATION_ABI = 3


def _gaps_of_landlock(machine: MachineSupport) -> Iterator[str]:
    yield "the content of your files is protected, but not their modes, times and names"
    yield "the agent shares the machine's shared memory"
    if not is_scoped(machine):
        yield "the agent can signal your other processes (Linux 6.12 or later closes this)"
    if machine.landlock_abi < _KNOWS_TRUNCATION_ABI:
        yield "the agent can truncate files (Linux 6.2 or later closes this)"
    if not machine.has(Mechanism.SECCOMP):
        yield "the agent can change limits and priorities of your other processes"


def _opened(request: ConfineRequest) -> Iterator[str]:
    """The openings of the user."""
    holes, missing = request.holes, missing_holes(request)
    opened = [*holes.paths, *(("ssh agent",) if holes.ssh_agent else ())]
    opened = [hole for hole in opened if hole not in missing]
    if opened:
        yield f"openings that you allow: {', '.join(opened)}"
    if holes.docker:
        yield "openings that you allow: docker, whose daemon reaches every file"
    if missing:
        yield f"openings that you allow, but missing: {', '.join(missing)}"


def _git(machine: MachineSupport, request: ConfineRequest) -> Enforcement:
    rung = files_rung(machine)
    is_private = request.private_clone is not None
    held = rung is not None and is_private
    is_enforced = held and files_level(machine, request) is Level.ENFORCED
    reason = ""
    if not is_private:
        reason = "the attempt does not have its own git directory"
    elif rung is None:
        reason = "nothing protects the repository; plait looks for changes afterwards"
    elif not keeps_content(machine, request):
        reason = "one of your daemons can reach it"
    elif rung is Mechanism.LANDLOCK:
        reason = "modes and times of its files can be changed; its own `.git` can be replaced, and "
        reason += "plait restores `.git` after each attempt"
    return Enforcement(
        dimension=Dimension.GIT,
        level=Level.ENFORCED if is_enforced else Level.ADVISORY,
        mechanism="private clone" if held else "tamper check",
        value="shared objects read-only" if held else "config, hooks, attributes, worktrees",
        reason=reason,
        fix="" if is_enforced else _files_fix(machine, request, rung),
    )


def network_rung(machine: MachineSupport, network: NetworkAccess) -> Mechanism | None:
    """Return what closes the network here, if it is to be closed at all."""
    rung = files_rung(machine)
    if rung is Mechanism.BWRAP and machine.has(Mechanism.NETWORK_NAMESPACE):
        return Mechanism.NETWORK_NAMESPACE
    if rung is Mechanism.LANDLOCK and machine.has(Mechanism.SECCOMP):
        return Mechanism.SECCOMP if network is NetworkAccess.NONE else None
    return None


def _network(machine: MachineSupport, request: ConfineRequest) -> Enforcement:
    if request.network is NetworkAccess.OPEN:
        return _open_network(machine)
    rung = network_rung(machine, request.network)
    finding = machine.finding(Mechanism.NETWORK_NAMESPACE)
    return Enforcement(
        dimension=Dimension.NETWORK,
        level=Level.ENFORCED if rung else Level.NONE,
        mechanism=rung.value if rung else "shared",
        value=", ".join(request.allowed_hosts) or str(request.network),
        reason=_why_network(machine, rung),
        fix="" if rung else finding.fix or machine.finding(Mechanism.BWRAP).fix,
    )


def _open_network(machine: MachineSupport) -> Enforcement:
    """Tell that nothing closes the network, and how this machine can close it, if it can."""
    is_scope = machine.has(Mechanism.LANDLOCK) and is_scoped(machine)
    leak = "" if is_scope else "; the agent can reach abstract sockets of the machine"
    fixes = {
        Mechanism.NETWORK_NAMESPACE: (
            "Close it with `runtime.sandbox.network`: `none`, or `{allow: [hosts]}`."
        ),
        Mechanism.SECCOMP: "Close it with `runtime.sandbox.network: none`.",
    }
    rung = network_rung(machine, NetworkAccess.NONE)
    unclosed = machine.finding(Mechanism.NETWORK_NAMESPACE).fix
    return Enforcement(
        dimension=Dimension.NETWORK,
        level=Level.NONE,
        mechanism="shared",
        value=str(NetworkAccess.OPEN),
        reason=f"the network stays open unless the manifest closes it{leak}",
        fix=fixes[rung] if rung else unclosed or machine.finding(Mechanism.BWRAP).fix,
    )


def _why_network(machine: MachineSupport, rung: Mechanism | None) -> str:
    """Say why the network is closed by less than a namespace, or not at all."""
    if rung is Mechanism.NETWORK_NAMESPACE:
        return ""
    why = _why_none(machine, (Mechanism.BWRAP, Mechanism.NETWORK_NAMESPACE))
    return why or "Landlock closes the network as a whole or not at all"


def _limited(
    machine: MachineSupport,
    dimension: Dimension,
    limits: Limits,
    read_back: Mapping[Dimension, str],
) -> Enforcement:
    kinds = [kind for kind in KINDS.values() if kind.dimension is dimension]
    amounts = [(getattr(limits, kind.name), kind.unit) for kind in kinds]
    said = [_value(amount, unit) for amount, unit in amounts if amount is not None]
    asked = ", ".join(said) or _value(None, "")
    held = kinds[0].held
    if held is None:
        return _held_here(machine, dimension, read_back.get(dimension, asked))
    return Enforcement(
        dimension=dimension,
        level=held.level,
        mechanism=held.mechanism,
        value=asked,
        reason=held.reason,
    )


def _held_here(machine: MachineSupport, dimension: Dimension, value: str) -> Enforcement:
    """Tell how a limit holds for which this machine has a controller, or is sampled."""
    mechanism = limiter(machine, dimension)
    better = [each for each in _LIMITERS if each is not mechanism]
    if mechanism in _LIMITERS:
        better = better[: _LIMITERS.index(mechanism)]
    level = Level.ENFORCED
    if mechanism is None:
        level = Level.NONE
    elif mechanism is Mechanism.SAMPLING:
        level = Level.SAMPLED
    is_held = level is Level.ENFORCED
    return Enforcement(
        dimension=dimension,
        level=level,
        mechanism=mechanism.value if mechanism else "none",
        value=value,
        reason="" if is_held else _why_sampled(machine, dimension, better),
        fix="" if is_held else machine.finding(Mechanism.CGROUP2).fix,
    )


def _why_sampled(machine: MachineSupport, dimension: Dimension, better: Iterable[Mechanism]) -> str:
    why = _why_none(machine, better)
    return why or f"no cgroup here has a controller for {dimension.value}"


def limiter(machine: MachineSupport, dimension: Dimension) -> Mechanism | None:
    """Return what limits memory, cpu or pids here."""
    for place in limiters(machine):
        if dimension.value in place.controllers:
            return place.mechanism
    # RLIMIT_NPROC counts a sandbox alone only inside a user namespace, which bubblewrap makes.
    is_counted = machine.has(Mechanism.NPROC) and files_rung(machine) is Mechanism.BWRAP
    if dimension is Dimension.PIDS and is_counted:
        return Mechanism.NPROC
    return Mechanism.SAMPLING if machine.has(Mechanism.SAMPLING) else None


def _kill(machine: MachineSupport) -> Enforcement:
    ways = {
        "pid namespace": machine.has(Mechanism.BWRAP),
        "cgroup.kill": _can_kill(machine),
        "sub-reaper of the keeper": True,
    }
    return Enforcement(
        dimension=Dimension.KILL,
        level=Level.ENFORCED,
        mechanism=", ".join(way for way, works in ways.items() if works),
        value="whole tree",
    )


def _can_kill(machine: MachineSupport) -> bool:
    has_group = any(each.mechanism is Mechanism.CGROUP2 for each in machine.hierarchies)
    return has_group and machine.has(Mechanism.CGROUP_KILL)


def _why_not(machine: MachineSupport, mechanism: Mechanism) -> str:
    finding = machine.finding(mechanism)
    return "" if finding.works else f"{mechanism}: {finding.reason}"


def _why_none(machine: MachineSupport, mechanisms: Iterable[Mechanism]) -> str:
    """Say why none of these works; those with the same reason are named together."""
    names: dict[str, list[str]] = {}
    for finding in map(machine.finding, mechanisms):
        if not finding.works:
            names.setdefault(finding.reason, []).append(finding.mechanism)
    return "; ".join(f"{', '.join(named)}: {reason}" for reason, named in names.items())


def _value(amount: float | None, unit: str) -> str:
    return "unlimited" if amount is None else f"{amount:g} {unit}"
