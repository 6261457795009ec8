"""The one place that says what a test may need, whether this machine has it, and how to get it.

A test says `@pytest.mark.needs("bubblewrap")`; a fixture, or a test that needs something for one
case only, calls `need("bubblewrap")`. What is missing skips the test with a reason; the reasons are
counted at the end. With PLAIT_CI=1 such a skip is a failure, unless `NOT_TO_BE_HAD` names it, or
PLAIT_WITHOUT, where CI could not install it.
"""

import functools
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unicodedata import unidata_version

import pytest

from engine.git.disk_moment import sees_mapped_writes
from engine.sandbox.machine import MachineSupport, Mechanism
from engine.sandbox.probe import probe
from engine.system import IS_PORTABLE

NOT_TO_BE_HAD = frozenset({"networks", "overlay", "systemd"})
"""The needs that CI lacks: Debian 12 has bubblewrap 0.8 (layers need 0.11), a container no systemd,
and not every container may make networks."""

WITH_OWN_MOUNTS = ("unshare", "--mount", *(() if os.getuid() == 0 else ("--map-root-user",)))
"""Before a command that may mount what it likes; root needs no user namespace for it."""

DELEGATED = "(run it as root, or where a cgroup is delegated to you: `plait doctor` says how)"


@functools.cache
def machine() -> MachineSupport:
    """Return what this machine can enforce, found out once for every test of this process."""
    with ThreadPoolExecutor(1) as elsewhere:  # an async test may ask, whose loop must not wait
        return elsewhere.submit(_probed).result()


def _probed() -> MachineSupport:
    forced = {"PLAIT_SANDBOX", "PLAIT_FORCE_OFF"}
    undisturbed = {name: value for name, value in os.environ.items() if name not in forced}
    with tempfile.TemporaryDirectory(prefix="plait-needs-") as folder:
        return probe(undisturbed, Path(folder))


def why_not(name: str) -> str:
    """Return why a need is not met here, and how to meet it; empty where it is met."""
    return _CHECKS[name]()


def need(*names: str) -> None:
    """Skip the test that runs, unless everything named is here."""
    for name in names:
        if reason := why_not(name):
            pytest.skip(reason)


def is_excused(reason: str) -> bool:
    """Return True if even CI may skip for this reason."""
    if IS_PORTABLE and reason == _linux():
        return True
    lacking = NOT_TO_BE_HAD | set(os.environ.get("PLAIT_WITHOUT", "").split())
    return reason in {why_not(name) for name in lacking} - {why_not("bubblewrap")}


def _program(name: str, package: str = "") -> Callable[[], str]:
    def check() -> str:
        found = shutil.which(name, path=os.environ.get("PATH", os.defpath))
        return (
            "" if found else f"{package or name} is not installed (apt install {package or name})"
        )

    return check


def _mechanism(mechanism: Mechanism) -> Callable[[], str]:
    def check() -> str:
        finding = machine().finding(mechanism)
        fix = finding.fix.rstrip(".") or "`plait doctor` says more"
        return "" if finding.works else f"{finding.reason} ({fix})"

    return check


def _dbus() -> str:
    """Return why there is no bus to listen on, or no program that calls over it."""
    programs = {"dbus-monitor": "dbus-bin", "dbus-daemon": "dbus", "gdbus": "libglib2.0-bin"}
    return next(filter(None, (_program(*named)() for named in programs.items())), "")


def _bubblewrap() -> str:
    """Of both findings the one that speaks, in the words of who must install it."""
    if missing := _program("bwrap", "bubblewrap")():
        return missing
    return _mechanism(Mechanism.BWRAP)() or _mechanism(Mechanism.NETWORK_NAMESPACE)()


def _overlay() -> str:
    return _bubblewrap() or _mechanism(Mechanism.OVERLAY)()


def _cgroup(controller: str) -> Callable[[], str]:
    def check() -> str:
        has = any(controller in place.controllers for place in machine().hierarchies)
        return "" if has else f"this user may make no cgroup that limits {controller} {DELEGATED}"

    return check


def _module(name: str, extra: str) -> Callable[[], str]:
    def check() -> str:
        if importlib.util.find_spec(name):
            return ""
        return f"{name} is not installed (pip install '.[{extra}]')"

    return check


def _postgres() -> str:
    """The server's programs lie outside the PATH on Debian; psycopg asks the server."""
    found = list(Path("/usr/lib/postgresql").glob("*/bin/initdb")) or shutil.which("initdb")
    if not found:
        return "postgresql is not installed (apt install postgresql)"
    return _module("psycopg", "postgres")() or ("" if os.getuid() else _CHECKS["setpriv"]())


def _linux() -> str:
    return "only Linux has what this asks (PLAIT_PORTABLE is not to be set)" if IS_PORTABLE else ""


def _root() -> str:
    return "" if os.getuid() == 0 else "only root can do this (run it as root, in a container)"


@functools.cache
def _small_disk() -> str:
    """Return True if a process may mount a file system in a mount namespace of its own."""
    script = "mount -t tmpfs -o size=2m plait-needs /mnt || mount -t tmpfs plait-needs /tmp"
    argv = [*WITH_OWN_MOUNTS, "sh", "-c", script]
    try:
        done = subprocess.run(argv, capture_output=True, check=False)
    except OSError:
        return "unshare is not installed (apt install util-linux)"
    if done.returncode == 0:
        return ""
    return "no file system can be mounted for one process alone (run it as root, and in no chroot)"


@functools.cache
def _disk() -> str:
    """Return why tests do not lie where the kernel notes every write to a mapped file."""
    place = Path(tempfile.gettempdir())
    if sees_mapped_writes(place, place.stat().st_dev):
        return ""
    return f"{place} lies in memory (set TMPDIR to a folder on a disk)"


def _second_file_system() -> str:
    here, memory = Path(tempfile.gettempdir()), Path("/dev/shm")  # noqa: S108 - only looked at
    if (
        memory.is_dir()
        and os.access(memory, os.W_OK)
        and memory.stat().st_dev != here.stat().st_dev
    ):
        return ""
    return "there is no second file system to write to (mount /dev/shm)"


@functools.cache
def _networks() -> str:
    """Return True if networks with links may be made, as `tests.support.ray_apart` does."""
    if missing := _program("ip", "iproute2")() or _program("nsenter", "util-linux")() or _root():
        return missing
    name = f"pneed{os.getpid()}"
    if subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False).returncode:
        return "no network of its own may be made here (run it in a privileged container)"
    subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
    return ""


def _known_characters() -> str:
    if unidata_version == "14.0.0":
        return ""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return f"Python {version} knows other characters (run it with 3.11)"


_CHECKS: Mapping[str, Callable[[], str]] = {
    "bubblewrap": _bubblewrap,
    "landlock": _mechanism(Mechanism.LANDLOCK),
    "seccomp": _mechanism(Mechanism.SECCOMP),
    "overlay": _overlay,
    "systemd": _mechanism(Mechanism.SYSTEMD),
    "cgroup memory": _cgroup("memory"),
    "cgroup cpu": _cgroup("cpu"),
    "cgroup pids": _cgroup("pids"),
    "tmux": _program("tmux"),
    "dbus": _dbus,
    "git-lfs": _program("git-lfs"),
    "node": _program("node", "nodejs"),
    "bash": _program("bash"),
    "zsh": _program("zsh"),
    "fish": _program("fish"),
    "groff": _program("groff", "groff-base"),
    "ssh-keygen": _program("ssh-keygen", "openssh-client"),
    "setpriv": _program("setpriv", "util-linux"),
    "unshare": _program("unshare", "util-linux"),
    "postgresql": _postgres,
    "openssl": _program("openssl"),
    "grammars": _module("tree_sitter_python", "syntax"),
    "ray": _module("ray", "ray"),
    "Linux": _linux,
    "root": _root,
    "networks": _networks,
    "small disk": _small_disk,
    "disk": _disk,
    "second file system": _second_file_system,
    "Unicode 14": _known_characters,
}
