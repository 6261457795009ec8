"""The attack matrix: what each attack gets on each rung, as it is expected and as it is measured.

Every attack has its control: the same program gets what it wants where nothing guards. Standard
library and the engine's sandbox and keeper alone, so that any user's Python can run it.
"""

import contextlib
import fcntl
import functools
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from engine.host.records import LIMIT_KINDS
from engine.keeper import launch, proc, wire
from engine.limits import Dimension, Level, Limits
from engine.sandbox.confine import confine, release, row
from engine.sandbox.machine import MachineSupport, Mechanism
from engine.sandbox.probe import probe
from engine.sandbox.profile import Profile
from engine.sandbox.request import ConfineRequest, NetworkAccess, SandboxHoles
from tests.support.attacks import ROOT_ONLY, absent
from tests.support.sandboxes import EXCESSES, PYTHON, Scene

HELD, SAMPLED, NOT_HELD, NOT_HERE = "held", "sampled", "not held", "-"
RUNGS = {"bwrap": "bubblewrap", "landlock": "Landlock", "none": "no sandbox"}
CONTROL = "control"
"""Nothing guards: no profile, and no limits."""

Results = Mapping[str, Mapping[str, str]]
"""Rung (or `control`) to the name of a row to what was found."""


@dataclass(frozen=True)
class Row:
    """One attack, and how each rung answers it.

    Attributes:
        ordinary: Rungs where an ordinary user, who has no cgroups, gets another answer than root.
        limits: For an attack on a limit: what is allowed, and the words of the attack.
        after: For what is left behind for the user's git: the way, in `left_behind`.
    """

    name: str
    group: str
    text: str
    bwrap: str = HELD
    landlock: str = HELD
    none: str = NOT_HELD
    ordinary: Mapping[str, str] | None = None
    network: NetworkAccess = NetworkAccess.OPEN
    holes: SandboxHoles = field(default_factory=SandboxHoles)
    limits: tuple[Limits, tuple[str, ...]] | None = None
    after: str = ""

    @property
    def attack(self) -> str:
        """The attack's own name; a row may be the same attack in other surroundings."""
        return self.name.partition("_with_")[0]

    def expected(self, rung: str, *, is_root: bool) -> str:
        """Return what a rung does about it."""
        if not is_root and self.attack in ROOT_ONLY:
            return NOT_HERE
        other = {} if is_root or self.ordinary is None else self.ordinary
        answers = {"bwrap": self.bwrap, "landlock": self.landlock, "none": self.none}
        answers[CONTROL] = NOT_HELD
        return other.get(rung, answers[rung])


_LEAK = {"landlock": NOT_HELD}
_FILES, _GIT = "Files of yours and of other workers", "Your repository"
_PROCESSES, _KERNEL = "Your other processes", "The machine and its kernel"
_NETWORK, _CLOSED = "Network, left open", "Network, closed (`network: none`)"
_OPENED, _LIMITS = "Openings that you make", "Limits"
_AFTER = "Your git, in a worktree after an attempt"


def _files() -> Iterator[Row]:
    for name, text in (
        ("read_sibling", "Read another worker's files"),
        ("write_sibling", "Write another worker's files"),
        ("list_siblings", "List other workers"),
        ("read_checkout", "Read your checkout"),
        ("write_checkout", "Write your checkout"),
        ("truncate_checkout", "Truncate a file of yours"),
        ("read_secret", "Read an ssh key"),
        ("symlink_farm", "Read through links, and through the roots of other processes"),
        ("link_secret_into_own_tree", "Link a secret into the worker's own tree"),
        ("reopen_a_path_descriptor", "Reopen a file through an `O_PATH` descriptor"),
        ("open_by_handle", "Open a file by its inode (`open_by_handle_at`)"),
        ("read_recording", "Read what plait recorded"),
        ("alter_recording", "Change what plait recorded"),
        ("read_shadow", "Read `/etc/shadow`"),
    ):
        yield Row(name, _FILES, text)
    yield Row("know_variables", _FILES, "Find a token of yours in its own environment", none=HELD)
    for name, text in (
        ("change_modes", "Change the mode of a file of yours"),
        ("change_times", "Change the times of a file of yours"),
        ("change_attributes", "Change the attributes of a file of yours"),
        ("learn_sizes", "Learn names and sizes of your files"),
        ("watch_a_file", "Watch a file of yours with `inotify`"),
    ):
        yield Row(name, _FILES, text, **_LEAK)


def _git() -> Iterator[Row]:
    for name, text in (
        ("write_shared_hook", "Leave a hook that your git runs"),
        ("write_shared_config", "Write your repository's configuration"),
        ("move_own_file_over_a_hook", "Move a file into your `.git`"),
        ("move_the_users_branch", "Move a branch of yours"),
        ("delete_shared_object", "Delete your commits"),
    ):
        yield Row(name, _GIT, text)
    yield Row("replace_git_file", _GIT, "Replace the `.git` of its own tree", **_LEAK)


def _processes() -> Iterator[Row]:
    for name, text in (
        ("signal_outside", "Send a signal"),
        ("signal_outside_by_descriptor", "Send a signal (`pidfd_send_signal`)"),
        ("limit_outside", "Change the limits of a process"),
        ("bind_outside_to_a_processor", "Bind a process to a CPU (`sched_setaffinity`)"),
        ("schedule_outside", "Change how a process is scheduled"),
        ("schedule_outside_by_attributes", "Change how a process is scheduled (`sched_setattr`)"),
        ("slow_outside", "Lower the priority of a process"),
        ("slow_a_group_outside", "Lower the priority of a group of processes"),
        ("starve_outside_of_disk", "Lower the disk priority of a process (`ioprio_set`)"),
        ("offer_outside_to_the_memory_killer", "Raise the `oom_score_adj` of a process"),
        ("take_a_descriptor_of_outside", "Take over an open file of a process (`pidfd_getfd`)"),
        ("read_memory_outside", "Open the memory of a process"),
        ("read_memory_by_call", "Read the memory of a process"),
        ("trace_outside", "Trace a process"),
        ("read_environment_outside", "Read the environment of a process"),
    ):
        yield Row(name, _PROCESSES, text)
    yield Row("read_command_lines", _PROCESSES, "Read command lines", **_LEAK)


def _kernel() -> Iterator[Row]:
    for name, text in (
        ("remount", "Make read-only folders writable"),
        ("own_namespace", "Become root in a namespace of its own and mount"),
        ("keep_capabilities", "Keep root's capabilities"),
        ("gain_rights_by_a_set_id_program", "Gain rights by a set-id program"),
        ("device_node", "Make a device node"),
        ("sysctl", "Change a setting of the kernel"),
        ("sysctl_of_an_own_proc", "Change a setting of the kernel through a fresh `/proc`"),
        ("raise_own_limit", "Raise its own memory limit"),
        ("leave_cgroup", "Leave its cgroup"),
        ("keyring", "Read your keyring"),
        ("ring", "Use `io_uring` to bypass the filter"),
        ("load_a_kernel_program", "Load an eBPF program"),
        ("count_performance", "Open a performance counter"),
        ("hold_page_faults", "Hold page faults of the kernel (`userfaultfd`)"),
        ("type_into_the_terminal", "Type into the terminal (`TIOCSTI`)"),
        ("write_into_dev", "Fill `/dev` (a tmpfs)"),
    ):
        yield Row(name, _KERNEL, text)


def _network() -> Iterator[Row]:
    yield Row("tcp", _NETWORK, "Reach a service of yours by TCP", NOT_HELD, NOT_HELD)
    yield Row("udp", _NETWORK, "Reach a service of yours by UDP", NOT_HELD, NOT_HELD)
    yield Row("list_sockets", _NETWORK, "List where your daemons listen", NOT_HELD, NOT_HELD)
    reaching = (
        ("unix_socket", "Reach a daemon of yours by its socket (the engine's is one)"),
        ("abstract_socket", "Reach a daemon of yours by an abstract Unix socket"),
        ("host_of_the_virtual_machine", "Reach the host of a virtual machine (vsock)"),
        ("raw_packets", "Read and write raw packets"),
    )
    for name, text in reaching:
        yield Row(name, _NETWORK, text)
    closed = (("tcp", "Reach a service by TCP"), ("udp", "Reach a service by UDP"), *reaching[:3])
    for name, text in closed:
        yield Row(f"{name}_with_network_closed", _CLOSED, text, network=NetworkAccess.NONE)

    yield Row(
        "unix_socket_with_ssh_agent",
        _OPENED,
        "Reach another daemon of yours by its socket, with `ssh_agent: true`",
        holes=SandboxHoles(ssh_agent=True),
        **_LEAK,
    )


def _after() -> Iterator[Row]:
    for name, text, way in (
        (
            "own_git",
            "Have your git run a program after it replaced its `.git`",
            "its own .git, a folder",
        ),
        ("nested_git", "Make a repository in its tree that runs a program", "a file monitor"),
        ("nested_hook", "Leave a hook in such a repository", "a hook"),
        ("submodule_git", "Let a submodule run a program", "a submodule"),
        ("bare_git", "Hide a bare repository in its tree", "a bare repository"),
    ):
        yield Row(name, _AFTER, text, none=HELD, after=way)


_NO_CGROUP = {"bwrap": SAMPLED, "landlock": SAMPLED, "none": SAMPLED}
_UNSEEN = {"bwrap": NOT_HELD, "landlock": NOT_HELD, "none": NOT_HELD}
_PIDS = {"bwrap": HELD, "landlock": SAMPLED, "none": SAMPLED}


def _limits() -> Iterator[Row]:
    def limited(name: str, text: str, limits: Limits, *words: str, **more: object) -> Row:
        found = Row(name, _LIMITS, text, none=HELD, limits=(limits, words))
        return replace(found, **more)  # type: ignore[arg-type]

    memory, disk = Limits(memory_mb=96), Limits(disk_mb=20)
    yield limited(
        "hog",
        "Take memory in many processes",
        memory,
        *("hog", "4", "60", "{wait}"),
        ordinary=_NO_CGROUP,
    )
    yield limited("hide", "Take memory in a `memfd`", memory, "hide", "200", ordinary=_UNSEEN)
    yield limited("bomb", "Fork bomb", Limits(pids=24), "bomb", "400", ordinary=_PIDS)
    yield limited("big_file", "Write one big file", disk, "fill", "{workspace}/big", "60")
    all_sampled = {"bwrap": SAMPLED, "landlock": SAMPLED, "none": SAMPLED}
    yield limited(
        "many_files",
        "Write many files",
        disk,
        "scatter",
        "{workspace}/many-",
        "60",
        "{wait}",
        **all_sampled,
    )
    yield limited(
        "shared_memory",
        "Fill `/dev/shm`",
        disk,
        *("scatter", "/dev/shm/{mark}-", "60", "{wait}"),  # noqa: S108 - the attack's own names
        landlock=SAMPLED,
        none=SAMPLED,
    )
    yield limited("flood", "Print without end", Limits(output_mb=1), "flood", "8")
    yield limited("linger", "Run without end", Limits(time_seconds=0.5), "linger", "3")
    yield limited("outlive", "Leave a daemon behind", Limits(), "outlive", "{mark}")


ROWS: tuple[Row, ...] = (
    *(*_files(), *_git(), *_processes(), *_kernel(), *_network()),
    *_after(),
    *_limits(),
)


def unmeasured(machine: MachineSupport, row_: Row, rung: str, *, is_root: bool) -> str:
    """Return why a row cannot be measured here, for people; empty where it can."""
    reasons = (*_in_the_row(row_, rung, is_root=is_root), *_in_the_machine(machine, row_, rung))
    return next(iter((*reasons, *_in_the_limits(machine, row_, is_root=is_root))), "")


def _in_the_row(row_: Row, rung: str, *, is_root: bool) -> Iterator[str]:
    if row_.expected(rung, is_root=is_root) == NOT_HERE:
        yield "only root can try it"
    if row_.name == "remount" and rung == "none":
        yield "there is nothing to undo"
    if row_.network is NetworkAccess.NONE and rung == "none":
        yield "no run begins: a network that is to be closed cannot be, and is never left open"


def _in_the_machine(machine: MachineSupport, row_: Row, rung: str) -> Iterator[str]:
    if rung in ("bwrap", "landlock") and not machine.has(Mechanism(rung)):
        yield f"{rung}: {machine.finding(Mechanism(rung)).reason}"
    if row_.attack in _absent():
        yield "this kernel, or its settings, has nothing to attack here"
    if rung == "landlock" and row_.name in _NEED_SCOPES and machine.landlock_abi < _SCOPES_ABI:
        yield "needs Linux 6.12 or later"


def _in_the_limits(machine: MachineSupport, row_: Row, *, is_root: bool) -> Iterator[str]:
    controllers = {each for place in machine.hierarchies for each in place.controllers}
    for controller, names in (("memory", _NEED_MEMORY_GROUP), ("pids", ("bomb",))):
        if is_root and row_.name in names and controller not in controllers:
            yield f"this machine has no cgroup that limits {controller}"
    if not is_root and row_.ordinary and {"memory", "pids"} & controllers:
        yield "this user has cgroups, as root has"


_NEED_MEMORY_GROUP = ("raise_own_limit", "leave_cgroup", "hog", "hide")
CONTROLLED_ELSEWHERE = {
    "remount": "test_remounting_succeeds_when_capabilities_are_kept",
    "raise_own_limit": "the rung `none`, which makes the cgroup",
    "leave_cgroup": "the rung `none`, which makes the cgroup",
}
"""Attacks that need something to undo, and where they succeed."""
_NEED_SCOPES, _SCOPES_ABI = ("signal_outside", "abstract_socket"), 6


def let_through(rung: str, *, network: NetworkAccess = NetworkAccess.OPEN) -> set[str]:
    """The attacks that get what they want on a rung as this user, with nothing opened."""
    return {
        each.attack
        for each in ROWS
        if _is_call(each) and each.holes == SandboxHoles() and each.network is network
        if each.expected(rung, is_root=os.getuid() == 0) == NOT_HELD
    } - _absent()


_absent = functools.cache(absent)


def _is_call(row_: Row) -> bool:
    """Return whether the attack is one that a worker tries by itself, at once."""
    return row_.limits is None and not row_.after


def measure(folder: Path) -> dict[str, dict[str, str]]:
    """Try every attack on every rung and without any, as whoever runs this."""
    found: dict[str, dict[str, str]] = {}
    for rung in (*RUNGS, CONTROL):
        machine = _machine(rung, folder)
        if machine is not None:
            found[rung] = _calls(machine, rung, folder) | _excesses(machine, rung, folder)
    return found


def _machine(rung: str, folder: Path) -> MachineSupport | None:
    wanted = "none" if rung == CONTROL else rung
    machine = probe({**os.environ, "PLAIT_SANDBOX": wanted}, folder / "state")
    return machine if wanted == "none" or machine.has(Mechanism(rung)) else None


def _calls(machine: MachineSupport, rung: str, folder: Path) -> dict[str, str]:
    """Attacks that one program tries one after the other."""
    found: dict[str, str] = {}
    variants = dict.fromkeys((each.network, each.holes) for each in ROWS if _is_call(each))
    for number, (network, holes) in enumerate(variants):
        if network is NetworkAccess.NONE and rung == "none":
            continue
        wanted = [
            each
            for each in ROWS
            if (each.network, each.holes) == (network, holes) and _is_call(each)
        ]
        scene = Scene.build(folder / f"{rung}-{number}")
        try:
            request = scene.request(limits=Limits(memory_mb=512), network=network, holes=holes)
            place = None if rung == CONTROL else machine
            names = [each.attack for each in wanted]
            answer = scene.try_attacks(place, request, names)
        finally:
            scene.close()
        found |= {each.name: NOT_HELD if answer[each.attack] else HELD for each in wanted}
    return found


def _excesses(machine: MachineSupport, rung: str, folder: Path) -> dict[str, str]:
    """Attacks on limits, each an attempt of its own under a real keeper."""
    found: dict[str, str] = {}
    for number, each in enumerate(each for each in ROWS if each.limits is not None):
        place = folder / f"{rung}-limits/{number}"
        found[each.name] = _excess(machine, each, place, is_free=rung == CONTROL)
    return found


def _excess(machine: MachineSupport, what: Row, folder: Path, *, is_free: bool) -> str:
    if what.limits is None:
        raise ValueError(what.name)
    for name in ("work", "home", "attempt"):
        (folder / name).mkdir(parents=True)
    limits, words = what.limits
    mark = f"plait-test-{os.getpid()}-{what.name}"
    names = {"workspace": folder / "work", "mark": mark, "wait": 0 if is_free else 10}
    words = tuple(word.format_map(names) for word in words)
    request = ConfineRequest(
        name=mark,
        workspace=folder / "work",
        home=folder / "home",
        read_only=(EXCESSES, Path(PYTHON).parents[1]),
        env=os.environ,
        limits=Limits() if is_free else limits,
    )
    profile = Profile(disk_paths=(str(folder),)) if is_free else confine(machine, request)
    argv = [PYTHON, "-I", str(EXCESSES), "try", *words]
    try:
        if is_free and what.name == "outlive":  # a keeper alone ends it
            subprocess.run(argv, check=True, cwd=request.workspace)
            return NOT_HELD if _ends(mark) else HELD
        ended = _keep(profile, request, folder / "attempt", argv)
        is_left = what.name == "outlive" and _ends(mark)
    finally:
        for path in Path("/dev/shm").glob(f"{mark}-*"):  # noqa: S108 - what the attack left
            path.unlink()
        release(profile)
    if what.name == "outlive":
        return NOT_HELD if is_left else HELD
    if what.name == "big_file":  # the keeper may have noticed it too, in its own time
        allowed = request.limits.disk_mb
        size = (folder / "work/big").stat().st_size >> 20
        return HELD if allowed is not None and size <= allowed else NOT_HELD
    return _judged(ended, profile)


def _judged(ended: Mapping[str, object], profile: Profile) -> str:
    """Return what came of it: the keeper's end names a limit, or the kernel let it have no more."""
    limit = ended["limit"]
    if isinstance(limit, dict):
        level = row(profile, Dimension(limit["dimension"])).level
        return HELD if level is Level.ENFORCED else SAMPLED
    return NOT_HELD if ended["exit_code"] == 0 else HELD


def _keep(
    profile: Profile, request: ConfineRequest, folder: Path, argv: list[str]
) -> dict[str, object]:
    """One attempt under a keeper, to its end; what the keeper wrote down of it."""
    ours, theirs = socket.socketpair()
    content = asdict(profile)
    content.pop("report")
    message = {
        "attempt": "r/s/worker_1@1",
        "directory": str(folder),
        "argv": argv,
        "env": [["PATH", os.environ.get("PATH", os.defpath)]],
        "cwd": str(request.workspace),
        "mark": request.name,
        "first_input": "",
        "keeps_stdin": False,
        "terminal": None,
        "limits": asdict(request.limits),
        "grace_s": 0.2,
        "kinds": LIMIT_KINDS,
        "is_held": False,
        "is_tethered": False,
        "profile": content,
    }
    with ours, theirs:
        pid = launch.start("program", [theirs.fileno()], folder.with_name("keeper.log"))
        theirs.close()
        ours.sendall(wire.encode(message))
        ours.settimeout(60)
        with contextlib.suppress(ConnectionError):
            while not (folder / "exit.json").exists() and ours.recv(1 << 16):
                pass
    os.waitpid(pid, 0)
    ended: dict[str, object] = json.loads((folder / "exit.json").read_text())
    return ended


def _ends(mark: str) -> bool:
    """Return whether a daemon of that name is alive; it is ended."""
    found = False
    for pid in proc.everybody():
        with contextlib.suppress(OSError):
            if mark.encode() in Path(f"/proc/{pid}/cmdline").read_bytes() and pid != os.getpid():
                os.kill(pid, 9)
                found = True
    return found


def table(results: Mapping[str, Results]) -> str:
    """The matrix in Markdown; `results` are root's and an ordinary user's."""
    lines = []
    for group in dict.fromkeys(each.group for each in ROWS):
        lines += [
            f"### {group}",
            "",
            f"| attack | {' | '.join(RUNGS.values())} |",
            "|---|---|---|---|",
        ]
        for each in (each for each in ROWS if each.group == group):
            cells = (_cell(each, rung, results) for rung in RUNGS)
            lines.append(f"| {each.text} | {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _cell(row_: Row, rung: str, results: Mapping[str, Results]) -> str:
    if row_.network is NetworkAccess.NONE and rung == "none":
        return "no run begins"
    told = [
        results.get(user, {}).get(rung, {}).get(row_.name) or row_.expected(rung, is_root=is_root)
        for user, is_root in (("root", True), ("ordinary", False))
    ]
    root, ordinary = (NOT_HELD if each == NOT_HERE else each for each in told)
    if told[1] == NOT_HERE:
        return f"{root} (root only)"
    return root if root == ordinary else f"{root}; without cgroups: {ordinary}"


def measured(
    machine: MachineSupport, results: Results, *, is_root: bool
) -> dict[str, dict[str, str]]:
    """The results that say something here: the others are left out."""
    return {
        rung: {
            each.name: results[rung][each.name]
            for each in ROWS
            if each.name in results.get(rung, {})
            and not unmeasured(machine, each, rung, is_root=is_root)
        }
        for rung in RUNGS
    }


def differences(results: Mapping[str, Results]) -> list[str]:
    """Return where what was measured is not what is expected, as lines for people."""
    return [
        f"{each.text} ({each.name}) on {RUNGS[rung]} as {user}: {got}, expected {wanted}"
        for user, rungs in results.items()
        for rung, found in rungs.items()
        for each in ROWS
        if (got := found.get(each.name)) is not None
        and got != (wanted := each.expected(rung, is_root=user == "root"))
    ]


def uncontrolled(
    machine: MachineSupport, control: Mapping[str, str], *, is_root: bool
) -> list[str]:
    """Attacks that get nothing although nothing guards: they prove nothing."""
    return [
        each.name
        for each in ROWS
        if control.get(each.name, NOT_HELD) != NOT_HELD
        and each.name not in CONTROLLED_ELSEWHERE
        and not unmeasured(machine, each, CONTROL, is_root=is_root)
    ]


@dataclass(frozen=True)
class Measured:
    """The results of one user: what each rung did, and which attacks had no effect unguarded."""

    rungs: dict[str, dict[str, str]]
    uncontrolled: list[str]


def measured_here(folder: Path) -> Measured:
    """Measure as whoever runs this; one at a time on a machine, for they fill what they share."""
    with Path(tempfile.gettempdir(), f"plait-matrix-{os.getuid()}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        machine = probe(dict(os.environ), folder / "machine")
        is_root = os.getuid() == 0
        found = measure(folder)
        known = measured(machine, found, is_root=is_root)
        return Measured(known, uncontrolled(machine, found[CONTROL], is_root=is_root))


def main(words: list[str]) -> int:
    """Measure as whoever runs this; for `attack_matrix`, which shows it."""
    print(json.dumps(asdict(measured_here(Path(words[0])))))  # noqa: T201 - the answer
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
