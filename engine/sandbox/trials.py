"""Trying out what fences files, sockets and processes in: run for real, and judged by its effects.

A mechanism that starts has not shown anything yet: the same trial is run without it as well, and
must then get through.
"""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from engine.errors import MechanismMissing
from engine.sandbox import bubblewrap, fence, seccomp
from engine.sandbox.machine import MachineSupport, Mechanism, MechanismFinding
from engine.sandbox.profile import Profile
from engine.sandbox.request import ConfineRequest, NetworkAccess
from engine.sandbox.view import look
from engine.values import dataclass

_TIMEOUT_S = 10.0
_SCRIPT = """
echo seen > "$1/written" || echo "own folder: not writable"
cat "$2" 2>/dev/null | grep -q secret && echo "hidden file: readable"
echo x 2>/dev/null >> "$2" && echo "hidden file: writable"
(echo x > "$3") 2>/dev/null && echo "system folder: writable"
(: >> /proc/sys/kernel/core_pattern) 2>/dev/null && echo "kernel settings: writable"
grep -q '^CapEff:.*[1-9a-f]' /proc/self/status && echo "capabilities: kept"
echo done
"""
_UNGUARDED = "hidden file: readable"
_SOCKETS = "import socket; socket.socketpair(); print('pair'); socket.socket(socket.AF_UNIX)"
_FORKS = "for i in 1 2 3 4 5 6 7 8; do sleep 1 & done; wait"


@dataclass(frozen=True)
class Trial:
    """One round of trials: the machine as far as it is known, and an empty folder to do it in."""

    machine: MachineSupport
    env: Mapping[str, str]
    folder: Path

    def bwrap(self, network: NetworkAccess) -> MechanismFinding:
        """Try if bubblewrap holds; without network it is the network namespace that is tried."""
        mechanism = (
            Mechanism.BWRAP if network is NetworkAccess.OPEN else Mechanism.NETWORK_NAMESPACE
        )
        if find_bwrap(self.env) is None:
            return MechanismFinding(
                mechanism=mechanism,
                works=False,
                reason="bubblewrap is not installed",
                fix="Install bubblewrap (apt, dnf, pacman and zypper all call it `bubblewrap`).",
            )
        problem = self._problem(self._wrapper(network))
        version = run((self.machine.bwrap, "--version"), self.env)
        return MechanismFinding(
            mechanism=mechanism,
            works=not problem,
            detail=version.stdout.removeprefix("bubblewrap ").strip() if version else "",
            reason=problem,
            fix=_userns_fix(problem) if problem else "",
        )

    def overlay(self) -> MechanismFinding:
        """Try if bubblewrap can lay one folder over another, so that writes go above only."""
        lower, upper, work = (self.folder / name for name in ("lower", "upper", "work"))
        for folder in (lower, upper, work):
            folder.mkdir()
        (lower / "file").write_text("below")
        wrapper = self._wrapper(NetworkAccess.OPEN)
        words = ("--overlay-src", str(lower), "--overlay", str(upper), str(work), "/run/layers")
        script = "cat /run/layers/file && echo above > /run/layers/file"
        # Before the words that seal the root, or the mount point could not be made.
        argv = (wrapper[0], *words, *wrapper[1:], "sh", "-c", script)
        done = run(argv, self.env)
        works = (
            done is not None
            and done.stdout == "below"
            and (lower / "file").read_text() == "below"
            and (upper / "file").is_file()
        )
        said = done.stderr.strip().splitlines()[:1] if done is not None else []
        return MechanismFinding(
            mechanism=Mechanism.OVERLAY,
            works=works,
            reason="" if works else "; ".join(said) or "it has no effect",
            fix="" if works else "Install bubblewrap 0.11 or later.",
        )

    def landlock(self) -> MechanismFinding:
        """Try if Landlock holds."""
        if not self.machine.landlock_abi:
            return MechanismFinding(
                mechanism=Mechanism.LANDLOCK,
                works=False,
                reason="the kernel does not have it",
                fix="Boot a kernel of 5.13 or later with `lsm=landlock,…` on its command line.",
            )
        request = self._request(NetworkAccess.OPEN)
        profile = Profile(
            landlock_rules=fence.rules(look(self.machine, request)),
            landlock_is_scoped=fence.is_scoped(self.machine),
        )
        problem = self._problem(fence.launcher(self.machine, profile))
        return MechanismFinding(
            mechanism=Mechanism.LANDLOCK,
            works=not problem,
            detail=f"ABI {self.machine.landlock_abi}",
            reason=problem,
        )

    def seccomp(self) -> MechanismFinding:
        """Try if sockets can be refused, by asking for one."""
        python, launcher = self.machine.python, self.machine.launcher
        program = (*python, "-c", _SOCKETS)
        try:
            code = seccomp.program(os.uname().machine, "none", is_among_others=True).hex()
        except MechanismMissing as missing:
            return MechanismFinding(mechanism=Mechanism.SECCOMP, works=False, reason=missing.found)
        done = run((*python, launcher, "run", f"--seccomp={code}", "--", *program), self.env)
        works = done is not None and done.stdout == "pair\n" and "PermissionError" in done.stderr
        said = done.stderr.strip().splitlines()[-1:] if done is not None else ["it did not answer"]
        reason = "" if works else "; ".join(said)
        return MechanismFinding(mechanism=Mechanism.SECCOMP, works=works, reason=reason)

    def nproc(self) -> MechanismFinding:
        """Try if RLIMIT_NPROC set inside bubblewrap stops its processes; root's it never does."""
        reason = "root is exempt from it"
        if self.machine.uid != 0:
            limited = ("prlimit", "--nproc=4:4", "--", "sh", "-c", _FORKS)
            done = run((*self._wrapper(NetworkAccess.OPEN), *limited), self.env)
            is_refused = done is not None and "fork" in done.stderr.lower()
            reason = "" if is_refused else "it has no effect"
        return MechanismFinding(mechanism=Mechanism.NPROC, works=not reason, reason=reason)

    def _wrapper(self, network: NetworkAccess) -> tuple[str, ...]:
        request = self._request(network)
        words = bubblewrap.words(self.machine, request, look(self.machine, request))
        return bubblewrap.without_keeper(words)

    def _request(self, network: NetworkAccess) -> ConfineRequest:
        own = self.folder / "own"
        own.mkdir(exist_ok=True)
        return ConfineRequest(name="probe", workspace=own, home=own, env=self.env, network=network)

    def _problem(self, wrapper: Sequence[str]) -> str:
        """Say in one line what went wrong behind a wrapper; nothing if all went well."""
        if _UNGUARDED not in self._seen(()):
            return "the trial proves nothing here: it also fails without protection"
        seen = self._seen(wrapper)
        if seen != ["done"]:
            return "; ".join(line for line in seen if line != "done") or "it printed nothing"
        is_written = (self.folder / "own" / "written").is_file()
        return "" if is_written else "files written in its own folder do not arrive"

    def _seen(self, wrapper: Sequence[str]) -> list[str]:
        """Return the script's output behind a wrapper, or what was said instead of it."""
        own, hidden = self.folder / "own", self.folder / "hidden"
        hidden.mkdir(exist_ok=True)
        (hidden / "secret").write_text("secret\n")
        (own / "written").unlink(missing_ok=True)
        forbidden = f"/usr/.plait-{os.getpid()}" if wrapper else str(own / "free")
        script = ("sh", "-c", _SCRIPT, "sh", str(own), str(hidden / "secret"), forbidden)
        done = run((*wrapper, *script), self.env)
        with contextlib.suppress(OSError):  # it is not there, and `/usr` may be read-only
            Path(forbidden).unlink()
        if done is None:
            return [f"it did not answer in {_TIMEOUT_S:g} s, or could not be started"]
        complaint = done.stderr.strip().splitlines()[-1:] or [f"it ended with {done.returncode}"]
        return done.stdout.splitlines() or complaint


def run(argv: Sequence[str], env: Mapping[str, str]) -> "subprocess.CompletedProcess[str] | None":
    """Return a short program's output; None if it cannot be started or does not end in time."""
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


def find_bwrap(env: Mapping[str, str]) -> str | None:
    """Return the path of bubblewrap."""
    return shutil.which("bwrap", path=env.get("PATH", os.defpath))


_APPARMOR = "kernel/apparmor_restrict_unprivileged_userns"
SYSCTLS = (_APPARMOR, "kernel/unprivileged_userns_clone", "user/max_user_namespaces")


def sysctl(name: str) -> str:
    """A setting of the kernel; empty where it has none of that name."""
    try:
        return Path("/proc/sys", name).read_text().strip()
    except OSError:
        return ""


def _userns_fix(problem: str) -> str:
    """Say why user namespaces are refused, judged by the switches known to refuse them."""
    if sysctl(_APPARMOR) == "1":
        return (
            "Allow bubblewrap in AppArmor: write `abi <abi/4.0>, include <tunables/global> profile "
            "bwrap /usr/bin/bwrap flags=(unconfined) { userns, }` to /etc/apparmor.d/bwrap and run "
            "`sudo systemctl reload apparmor`."
        )
    if sysctl("kernel/unprivileged_userns_clone") == "0":
        return "Allow user namespaces: `sudo sysctl kernel.unprivileged_userns_clone=1`."
    if sysctl("user/max_user_namespaces") == "0" or "ENOSPC" in problem:
        return "Allow user namespaces: `sudo sysctl user.max_user_namespaces=15000`."
    if is_container():
        return "In a container: start it with `--security-opt seccomp=unconfined`, or use Landlock."
    return "Run `bwrap --unshare-user --ro-bind / / true` to see why it fails."


def is_container() -> bool:
    """Say if this runs in a container whose maker says so."""
    return any(Path(mark).exists() for mark in ("/.dockerenv", "/run/.containerenv"))
