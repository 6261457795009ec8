"""Finding out what this machine can enforce, by doing it and looking at what came of it.

Takes under a second, once: what was found is kept in a private folder until the next boot, another
kernel, user or bubblewrap. What does not work is tried again each time, because the user may have
followed the advice, or the machine was only short of something for a moment.
"""

import hashlib
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from engine.sandbox import bubblewrap, fence
from engine.sandbox.machine import Finding, Machine, Mechanism, forced
from engine.sandbox.probe_cgroups import mounts, probe_cgroups
from engine.sandbox.profile import Profile
from engine.sandbox.request import ConfineRequest, Network
from engine.sandbox.scope import probe_scope
from engine.sandbox.view import look

_VERSION = 1
_TIMEOUT_S = 10.0
_LAUNCHER = Path(__file__).parents[1] / "keeper" / "landlock.py"
_SANDBOX_ID = 1000
_PASSWD = Path("/etc/passwd")
_GROUP = Path("/etc/group")

_TRIAL = """
echo seen > "$1/written" || echo "own folder: not writable"
cat "$2" 2>/dev/null && echo "hidden file: readable"
echo x 2>/dev/null >> "$2" && echo "hidden file: writable"
echo x 2>/dev/null > "$3" && echo "system folder: writable"
(: >> /proc/sys/kernel/core_pattern) 2>/dev/null && echo "kernel settings: writable"
grep -q '^CapEff:.*[1-9a-f]' /proc/self/status && echo "capabilities: kept"
echo done
"""


def probe(env: Mapping[str, str], cache_dir: Path) -> Machine:
    """What this machine can enforce, as PLAIT_SANDBOX and PLAIT_FORCE_OFF want it seen.

    Args:
        env: The user's environment.
        cache_dir: A folder for this user alone (it is made so), never shown to an attempt.

    Raises:
        MechanismMissing: One of the two variables names something that does not exist.
    """
    cache_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    cache_dir.chmod(0o700)
    identity = _identity(env)
    file = cache_dir / "machine.json"
    machine = _remembered(file, identity)
    if machine is None:
        machine = _probed(env, cache_dir.resolve(), identity)
        _remember(file, machine)
    return forced(machine, env)


def _remembered(file: Path, identity: str) -> Machine | None:
    try:
        machine = Machine.from_json(json.loads(file.read_text()))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return machine if machine.identity == identity else None


def _remember(file: Path, machine: Machine) -> None:
    if machine.has(Mechanism.BWRAP) and machine.has(Mechanism.NETWORK_NAMESPACE):
        fresh = file.with_suffix(f".{os.getpid()}")
        fresh.write_text(json.dumps(machine.to_json()))
        fresh.replace(file)


def _identity(env: Mapping[str, str]) -> str:
    """Changes whenever something changes that a probe could have seen."""
    bwrap = _bwrap(env)
    parts = (
        (_VERSION, *Mechanism),
        Path("/proc/sys/kernel/random/boot_id").read_text(),
        os.uname().release,
        os.getuid(),
        [str(mount) for mount in mounts()],
        (bwrap, Path(bwrap).stat().st_mtime_ns) if bwrap else "",
        [_sysctl(name) for name in _SYSCTLS],
        str(_LAUNCHER),
        sys.executable,
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _probed(env: Mapping[str, str], cache_dir: Path, identity: str) -> Machine:
    found, places = probe_cgroups()
    scope, scope_place = probe_scope(env)
    bare = Machine(
        identity=identity,
        uid=os.getuid(),
        findings=(*found, scope, Finding(mechanism=Mechanism.SAMPLING, works=True)),
        hierarchies=(*places, *((scope_place,) if scope_place else ())),
        root_only=tuple(_root_only()) if os.getuid() == 0 else (),
        bwrap=_bwrap(env) or "bwrap",
        python=(os.path.realpath(sys.executable), "-I", "-S"),
        python_home=sys.base_prefix,
        launcher=str(_LAUNCHER),
        passwd=_named_ids(cache_dir) if os.getuid() == 0 else (),
    )
    with tempfile.TemporaryDirectory(dir=cache_dir) as folder:
        trial = Path(folder)
        bare = replace(bare, landlock_abi=_landlock_abi(bare))
        wrapped = _try_bwrap(bare, env, trial, Network.OPEN)
        alone = _try_bwrap(bare, env, trial, Network.NONE) if wrapped.works else wrapped
        findings = (
            wrapped,
            replace(alone, mechanism=Mechanism.NETWORK_NAMESPACE),
            _try_landlock(bare, env, trial),
            _try_seccomp(bare, env),
            _try_nproc(bare, env, trial) if wrapped.works else _no_nproc(wrapped.reason),
        )
    return replace(bare, findings=(*findings, *bare.findings))


def _request(trial: Path, env: Mapping[str, str], network: Network) -> ConfineRequest:
    own = trial / "own"
    own.mkdir(exist_ok=True)
    (trial / "hidden").mkdir(exist_ok=True)
    (trial / "hidden" / "secret").write_text("secret")
    return ConfineRequest(name="probe", workspace=own, home=own, env=env, network=network)


def _arguments(trial: Path) -> tuple[str, ...]:
    forbidden = f"/usr/.plait-{os.getpid()}"
    return ("sh", "-c", _TRIAL, "sh", str(trial / "own"), str(trial / "hidden/secret"), forbidden)


def _try_bwrap(machine: Machine, env: Mapping[str, str], trial: Path, network: Network) -> Finding:
    if _bwrap(env) is None:
        return Finding(
            mechanism=Mechanism.BWRAP,
            works=False,
            reason="it is not installed",
            fix="Install bubblewrap (apt, dnf, pacman and zypper all call it `bubblewrap`).",
        )
    request = _request(trial, env, network)
    words = bubblewrap.words(machine, request, look(machine, request))
    problem = _problem(bubblewrap.without_keeper(words), env, trial)
    version = _output([machine.bwrap, "--version"]).removeprefix("bubblewrap ").strip()
    return Finding(
        mechanism=Mechanism.BWRAP,
        works=not problem,
        detail=version,
        reason=problem,
        fix=_userns_fix(problem) if problem else "",
    )


def _try_landlock(machine: Machine, env: Mapping[str, str], trial: Path) -> Finding:
    abi = machine.landlock_abi
    if not abi:
        return Finding(
            mechanism=Mechanism.LANDLOCK,
            works=False,
            reason="the kernel has none",
            fix="Boot a kernel of 5.13 or later with `lsm=landlock,…` on its command line.",
        )
    request = _request(trial, env, Network.OPEN)
    profile = Profile(
        landlock_rules=fence.rules(look(machine, request)),
        landlock_is_scoped=fence.is_scoped(machine),
    )
    problem = _problem(fence.launcher(machine, profile), env, trial)
    return Finding(
        mechanism=Mechanism.LANDLOCK, works=not problem, detail=f"ABI {abi}", reason=problem
    )


_SOCKETS = "import socket; socket.socketpair(); print('pair'); socket.socket(socket.AF_UNIX)"


def _try_seccomp(machine: Machine, env: Mapping[str, str]) -> Finding:
    """Whether sockets can be refused, by asking for one."""
    program = (*machine.python, "-c", _SOCKETS)
    words = (*machine.python, machine.launcher, "run", "--sockets=none", "--", *program)
    done = _run([*words], env)
    works = done is not None and done.stdout == "pair\n" and "PermissionError" in done.stderr
    said = done.stderr.strip().splitlines()[-1:] if done is not None else ["it did not answer"]
    reason = "" if works else "; ".join(said)
    return Finding(mechanism=Mechanism.SECCOMP, works=works, reason=reason)


def _try_nproc(machine: Machine, env: Mapping[str, str], trial: Path) -> Finding:
    """Whether RLIMIT_NPROC set inside a sandbox stops its processes; for root it never does."""
    if machine.uid == 0:
        return _no_nproc("root is exempt from it")
    request = _request(trial, env, Network.OPEN)
    words = bubblewrap.words(machine, request, look(machine, request))
    forks = "for i in 1 2 3 4 5 6 7 8; do sleep 1 & done; wait"
    limited = ("prlimit", "--nproc=4:4", "--", "sh", "-c", forks)
    done = _run([*bubblewrap.without_keeper(words), *limited], env)
    refused = done is not None and "fork" in done.stderr.lower()
    return Finding(mechanism=Mechanism.NPROC, works=True) if refused else _no_nproc("no effect")


def _no_nproc(reason: str) -> Finding:
    return Finding(mechanism=Mechanism.NPROC, works=False, reason=reason)


def _problem(wrapper: tuple[str, ...] | list[str], env: Mapping[str, str], trial: Path) -> str:
    """Run the trial behind a wrapper; what went wrong, in one line, or nothing."""
    written = trial / "own" / "written"
    written.unlink(missing_ok=True)
    done = _run([*wrapper, *_arguments(trial)], env)
    if done is None:
        return f"it did not answer in {_TIMEOUT_S:g} s, or could not be started"
    lines = done.stdout.splitlines()
    if lines != ["done"]:
        said = [line for line in lines if line != "done"] or done.stderr.strip().splitlines()[-1:]
        return "; ".join(said) or f"it ended with {done.returncode}"
    return "" if written.is_file() else "what is written in the own folder does not arrive"


def _run(argv: list[str], env: Mapping[str, str]) -> subprocess.CompletedProcess[str] | None:
    try:
        return subprocess.run(
            argv,
            env={"PATH": env.get("PATH", os.defpath)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None


def _output(argv: list[str]) -> str:
    done = _run(argv, os.environ)
    return done.stdout if done is not None else ""


def _landlock_abi(machine: Machine) -> int:
    said = _output([*machine.python, machine.launcher, "abi"]).strip()
    return int(said) if said.isdigit() else 0


def _bwrap(env: Mapping[str, str]) -> str | None:
    return shutil.which("bwrap", path=env.get("PATH", os.defpath))


_APPARMOR = "kernel/apparmor_restrict_unprivileged_userns"
_SYSCTLS = (_APPARMOR, "kernel/unprivileged_userns_clone", "user/max_user_namespaces")


def _sysctl(name: str) -> str:
    try:
        return Path("/proc/sys", name).read_text().strip()
    except OSError:
        return ""


def _userns_fix(problem: str) -> str:
    """Why user namespaces are refused, judged by the switches that are known to refuse them."""
    if _sysctl(_APPARMOR) == "1":
        return (
            "Allow bubblewrap in AppArmor: write `abi <abi/4.0>, include <tunables/global> profile "
            "bwrap /usr/bin/bwrap flags=(unconfined) { userns, }` to /etc/apparmor.d/bwrap and run "
            "`sudo systemctl reload apparmor`."
        )
    if _sysctl("kernel/unprivileged_userns_clone") == "0":
        return "Allow user namespaces: `sudo sysctl kernel.unprivileged_userns_clone=1`."
    if _sysctl("user/max_user_namespaces") == "0" or "ENOSPC" in problem:
        return "Allow user namespaces: `sudo sysctl user.max_user_namespaces=15000`."
    if Path("/.dockerenv").exists() or Path("/run/.containerenv").exists():
        return "In a container: start it with `--security-opt seccomp=unconfined`, or use Landlock."
    return "Run `bwrap --unshare-user --ro-bind / / true` and see why it is refused."


def _root_only() -> Iterator[str]:
    """What only root may read: as root, a sandbox does not hide it by itself."""
    for top, depth in (("/etc", 3), ("/var/lib", 1), ("/opt", 1)):
        yield from _unreadable(Path(top), depth)


def _unreadable(folder: Path, depth: int) -> Iterator[str]:
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return
    for entry in entries:
        mode = entry.lstat().st_mode
        if stat.S_ISDIR(mode):
            if not mode & stat.S_IROTH:
                yield str(entry)
            elif depth > 1:
                yield from _unreadable(entry, depth - 1)
        elif stat.S_ISREG(mode) and not mode & stat.S_IROTH:
            yield str(entry)


def _named_ids(cache_dir: Path) -> tuple[str, ...]:
    """Copies of passwd and group in which the user id of the sandbox has a name."""
    names = (
        (_PASSWD, f"agent:x:{_SANDBOX_ID}:{_SANDBOX_ID}:agent:/:/bin/sh"),
        (_GROUP, f"agent:x:{_SANDBOX_ID}:"),
    )
    made = []
    for source, line in names:
        text = source.read_text(errors="replace") if source.exists() else ""
        if not any(entry.split(":")[2:3] == [str(_SANDBOX_ID)] for entry in text.splitlines()):
            text = f"{text.rstrip()}\n{line}\n".lstrip()
        target = cache_dir / source.name
        target.write_text(text)
        made.append(str(target))
    return tuple(made)
