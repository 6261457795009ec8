"""Attack as a hostile agent does: one function an attack, true where it got what it must not get.

Run inside a sandbox as `python -I attacks.py SCENE.json [NAME …]`, with the standard library alone;
prints `{"name": true, …}`. Every attack must succeed where nothing guards against it.
"""

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import socket
import stat
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path
from typing import Any

Scene = dict[str, Any]
ATTACKS: dict[str, Callable[[Scene], bool]] = {}
ROOT_ONLY = frozenset(
    {
        *("remount", "raise_own_limit", "leave_cgroup", "device_node", "sysctl"),
        *("sysctl_of_an_own_proc", "read_shadow", "keep_capabilities", "open_by_handle"),
        *("raw_packets", "load_a_kernel_program", "write_into_dev"),
    }
)
"""Attacks that nobody but root can try."""


def attack(function: Callable[[Scene], bool]) -> Callable[[Scene], bool]:
    ATTACKS[function.__name__] = function
    return function


def _reads(path: str) -> bool:
    return "treasure" in Path(path).read_text()


def _writes(path: str) -> bool:
    with Path(path).open("a") as file:
        file.write("# attacked\n")
    return "attacked" in Path(path).read_text()


@attack
def read_sibling(scene: Scene) -> bool:
    return _reads(f"{scene['sibling']}/treasure.txt")


@attack
def write_sibling(scene: Scene) -> bool:
    return _writes(f"{scene['sibling']}/treasure.txt")


@attack
def list_siblings(scene: Scene) -> bool:
    return Path(scene["sibling"]).name in os.listdir(Path(scene["sibling"]).parent)  # noqa: PTH208


@attack
def read_checkout(scene: Scene) -> bool:
    return _reads(f"{scene['checkout']}/treasure.txt")


@attack
def write_checkout(scene: Scene) -> bool:
    return _writes(f"{scene['checkout']}/treasure.txt")


@attack
def write_shared_hook(scene: Scene) -> bool:
    hook = Path(scene["checkout"], ".git/hooks/post-checkout")
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ntouch /tmp/owned\n")
    hook.chmod(0o755)
    return hook.exists()


@attack
def write_shared_config(scene: Scene) -> bool:
    return _writes(f"{scene['checkout']}/.git/config")


@attack
def move_the_users_branch(scene: Scene) -> bool:
    path = Path(scene["checkout"], ".git/refs/heads/main")
    path.write_text("0" * 39 + "1\n")
    return path.read_text().endswith("1\n")


@attack
def delete_shared_object(scene: Scene) -> bool:
    victim = next(
        path
        for path in sorted(Path(scene["checkout"], ".git/objects").rglob("??/*"))
        if path.is_file()
    )
    victim.unlink()
    return not victim.exists()


@attack
def read_recording(scene: Scene) -> bool:
    return _reads(f"{scene['attempt']}/recording")


@attack
def alter_recording(scene: Scene) -> bool:
    return _writes(f"{scene['attempt']}/recording")


@attack
def read_secret(scene: Scene) -> bool:
    return _reads(scene["secret"])


@attack
def read_shadow(_: Scene) -> bool:
    return "root" in Path("/etc/shadow").read_text()


@attack
def replace_git_file(scene: Scene) -> bool:
    path = Path(scene["workspace"], ".git")
    if path.is_dir():
        path.rename(path.with_name("old-git"))
    else:
        path.unlink()
    path.mkdir()
    return path.is_dir()


@attack
def symlink_farm(scene: Scene) -> bool:
    """Links in the own tree, and the roots of other processes, all leading outside."""
    farm = Path(scene["workspace"], "farm")
    farm.mkdir(exist_ok=True)
    for number, target in enumerate((scene["secret"], f"{scene['sibling']}/treasure.txt")):
        link = farm / str(number)
        link.symlink_to(target)
        chained = farm / f"chained-{number}"
        chained.symlink_to(link)
    roots = [f"/proc/{pid}/root" for pid in ("self", "1", str(scene["outside_pid"]))]
    paths = [*farm.iterdir(), *(Path(root + scene["secret"]) for root in roots)]
    return any(_succeeds(lambda path=path: _reads(str(path))) for path in paths)  # type: ignore[misc]


@attack
def signal_outside(scene: Scene) -> bool:
    """Any process of the machine whose name shows that it is the one meant."""
    os.kill(scene["outside_pid"], 0)
    name = Path(f"/proc/{scene['outside_pid']}/cmdline").read_bytes()
    return scene["outside_mark"].encode() in name


@attack
def read_environment_outside(scene: Scene) -> bool:
    return b"treasure" in Path(f"/proc/{scene['outside_pid']}/environ").read_bytes()


@attack
def abstract_socket(scene: Scene) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect("\0" + scene["abstract"])
        return client.recv(8) == b"treasure"


@attack
def unix_socket(scene: Scene) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(scene["unix_socket"])
        return client.recv(8) == b"treasure"


@attack
def tcp(scene: Scene) -> bool:
    with socket.create_connection(("127.0.0.1", scene["tcp_port"]), timeout=30) as client:
        return client.recv(8) == b"treasure"


@attack
def udp(scene: Scene) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(2)
        client.sendto(b"x", ("127.0.0.1", scene["udp_port"]))
        return client.recv(8) == b"treasure"


@attack
def host_of_the_virtual_machine(_: Scene) -> bool:
    """A socket that no network namespace holds."""
    socket.socket(socket.AF_VSOCK).close()
    return True


@attack
def ring(_: Scene) -> bool:
    """A ring makes sockets behind the back of a filter of system calls."""
    libc = ctypes.CDLL(None, use_errno=True)
    return bool(libc.syscall(425, 1, ctypes.create_string_buffer(120)) >= 0)


KEY = b"plait-test"
_KEYCTL = {"x86_64": (248, 250)}.get(os.uname().machine, (217, 219))


def keep_key() -> None:
    """Put a secret where the user's tickets lie: into the keyring of a new session."""
    libc = ctypes.CDLL(None)
    libc.syscall(_KEYCTL[1], 1, None)
    libc.syscall(_KEYCTL[0], b"user", KEY, b"treasure", 8, ctypes.c_int(-3))


@attack
def keyring(_: Scene) -> bool:
    libc = ctypes.CDLL(None)
    key = libc.syscall(_KEYCTL[1], 10, ctypes.c_int(-3), b"user", KEY, 0)
    held = ctypes.create_string_buffer(8)
    return libc.syscall(_KEYCTL[1], 11, ctypes.c_int(key), held, 8) == 8 and held.raw == b"treasure"


@attack
def remount(_: Scene) -> bool:
    done = [
        subprocess.run(["mount", "-o", f"remount,{how}", where], capture_output=True, check=False)
        for how, where in (("rw,bind", "/usr"), ("rw,bind", "/etc"))
    ]
    return any(each.returncode == 0 for each in done)


@attack
def own_namespace(scene: Scene) -> bool:
    """A user namespace of its own gives every capability back, mounting among them."""
    uncover = f"umount -l {scene['workspace']}/.git || mount -t tmpfs none /etc"
    done = subprocess.run(
        ["unshare", "-Urm", "sh", "-c", uncover], capture_output=True, check=False
    )
    return done.returncode == 0


@attack
def raise_own_limit(scene: Scene) -> bool:
    group, more = Path(scene["memory_group"]), str(8 << 30)
    # In version 1 memory with swap must be raised first.
    names = ("memory.memsw.limit_in_bytes", "memory.limit_in_bytes", "memory.max")
    files = [group / name for name in names if (group / name).exists()]
    for file in files:
        file.write_text(more)
    return bool(files) and files[-1].read_text().strip() == more


@attack
def leave_cgroup(scene: Scene) -> bool:
    group = Path(scene["memory_group"])
    (group.parent / "cgroup.procs").write_text("0")
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    own = next((line for line in lines if ":memory:" in line), None)
    return group.name not in (own or next(line for line in lines if line.startswith("0::")))


@attack
def device_node(scene: Scene) -> bool:
    path = Path(scene["workspace"], "device")
    os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 5))
    return path.open("rb").read(1) == b"\0"


@attack
def sysctl(_: Scene) -> bool:
    """Opening is enough: writing would change the machine."""
    os.close(os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY))
    return True


@attack
def sysctl_of_an_own_proc(_: Scene) -> bool:
    """A fresh `/proc` in a namespace of its own has none of the covers of the old one."""
    script = ": >> /proc/sys/kernel/core_pattern"
    fresh = ["unshare", "-Urmpf", "--mount-proc", "sh", "-c", script]
    return subprocess.run(fresh, capture_output=True, check=False).returncode == 0


@attack
def keep_capabilities(_: Scene) -> bool:
    lines = Path("/proc/self/status").read_text().splitlines()
    return any(line.startswith("CapEff") and int(line.split()[1], 16) for line in lines)


def _call(number: dict[str, int], *arguments: Any) -> int:
    """A system call by its number on this machine; the numbers of the other one are generic."""
    libc = ctypes.CDLL(None, use_errno=True)
    which = number["x86_64"] if os.uname().machine == "x86_64" else number["other"]
    # A plain int is passed as 32 bits, and what lies above them on the stack is anything.
    words = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    got: int = libc.syscall(ctypes.c_long(which), *words)
    if got < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return got


def _victim(scene: Scene) -> int:
    """The process outside, if the number means it here and not another."""
    pid: int = scene["outside_pid"]
    if scene["outside_mark"].encode() not in Path(f"/proc/{pid}/cmdline").read_bytes():
        raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH))
    return pid


@attack
def truncate_checkout(scene: Scene) -> bool:
    os.truncate(f"{scene['checkout']}/code.c", 0)
    return True


@attack
def link_secret_into_own_tree(scene: Scene) -> bool:
    link = Path(scene["workspace"], "linked")
    link.hardlink_to(scene["secret"])
    return _reads(str(link))


@attack
def move_own_file_over_a_hook(scene: Scene) -> bool:
    own = Path(scene["workspace"], "evil")
    own.write_text("#!/bin/sh\n")
    own.rename(Path(scene["checkout"], ".git/evil"))
    return True


@attack
def reopen_a_path_descriptor(scene: Scene) -> bool:
    """A descriptor that may only name a file, opened again through `/proc`."""
    named = os.open(scene["secret"], os.O_PATH)
    return _reads(f"/proc/self/fd/{named}")


@attack
def open_by_handle(scene: Scene) -> bool:
    """A file opened by its number, past all folders."""
    size = 128
    handle = ctypes.create_string_buffer(struct.pack("=Ii", size, 0) + bytes(size))
    mount = ctypes.c_int()
    path = str(scene["secret"]).encode()
    _call({"x86_64": 303, "other": 264}, -100, path, handle, ctypes.byref(mount), 0)
    where = os.open(scene["workspace"], os.O_RDONLY)
    opened = _call({"x86_64": 304, "other": 265}, where, handle, os.O_RDONLY)
    return b"treasure" in os.read(opened, 64)


@attack
def change_modes(scene: Scene) -> bool:
    path = Path(scene["checkout"], "treasure.txt")
    path.chmod(0o640)
    return True


@attack
def change_times(scene: Scene) -> bool:
    os.utime(f"{scene['checkout']}/treasure.txt", (1, 1))
    return True


@attack
def change_attributes(scene: Scene) -> bool:
    os.setxattr(f"{scene['checkout']}/treasure.txt", "user.plait-test", b"x")
    return True


@attack
def learn_sizes(scene: Scene) -> bool:
    return Path(scene["checkout"], "treasure.txt").stat().st_size > 0


@attack
def watch_a_file(scene: Scene) -> bool:
    libc = ctypes.CDLL(None, use_errno=True)
    path = f"{scene['checkout']}/treasure.txt".encode()
    return bool(libc.inotify_add_watch(libc.inotify_init1(0), path, 2) > 0)


@attack
def know_variables(_: Scene) -> bool:
    return "treasure" in os.environ.values()


@attack
def read_command_lines(scene: Scene) -> bool:
    return _victim(scene) > 0


@attack
def limit_outside(scene: Scene) -> bool:
    """The limit of a process's files, set to nothing, ends it at its next write."""
    pair = struct.pack("=QQ", 1 << 20, 1 << 20)
    pid, core = _victim(scene), 4
    return (
        _call({"x86_64": 302, "other": 261}, pid, core, ctypes.create_string_buffer(pair), 0) == 0
    )


@attack
def bind_outside_to_a_processor(scene: Scene) -> bool:
    os.sched_setaffinity(_victim(scene), os.sched_getaffinity(0))
    return True


@attack
def schedule_outside(scene: Scene) -> bool:
    os.sched_setscheduler(_victim(scene), os.SCHED_BATCH, os.sched_param(0))
    return True


@attack
def schedule_outside_by_attributes(scene: Scene) -> bool:
    batch = struct.pack("=IIQiIQQQ", 48, 3, 0, 19, 0, 0, 0, 0)
    held = ctypes.create_string_buffer(batch)
    return _call({"x86_64": 314, "other": 274}, _victim(scene), held, 0) == 0


@attack
def slow_outside(scene: Scene) -> bool:
    os.setpriority(os.PRIO_PROCESS, _victim(scene), 19)
    return True


@attack
def slow_a_group_outside(scene: Scene) -> bool:
    os.setpriority(os.PRIO_PGRP, _victim(scene), 19)  # it leads its own group
    return True


@attack
def starve_outside_of_disk(scene: Scene) -> bool:
    idle = 3 << 13
    return _call({"x86_64": 251, "other": 30}, 1, _victim(scene), idle) == 0


@attack
def signal_outside_by_descriptor(scene: Scene) -> bool:
    held = os.pidfd_open(_victim(scene))
    return _call({"x86_64": 424, "other": 424}, held, 0, None, 0) == 0


@attack
def take_a_descriptor_of_outside(scene: Scene) -> bool:
    held = os.pidfd_open(_victim(scene))
    return _call({"x86_64": 438, "other": 438}, held, 0, 0) >= 0


@attack
def read_memory_outside(scene: Scene) -> bool:
    return Path(f"/proc/{_victim(scene)}/mem").open("rb").fileno() >= 0


@attack
def read_memory_by_call(scene: Scene) -> bool:
    pid = _victim(scene)
    start = int(Path(f"/proc/{pid}/maps").read_text().partition("-")[0], 16)
    held = ctypes.create_string_buffer(8)
    own = struct.pack("=QQ", ctypes.addressof(held), 8)
    theirs = struct.pack("=QQ", start, 8)
    return _call({"x86_64": 310, "other": 270}, pid, own, 1, theirs, 1, 0) == 8


@attack
def trace_outside(scene: Scene) -> bool:
    pid, seize, detach = _victim(scene), 0x4206, 17
    call = {"x86_64": 101, "other": 117}
    _call(call, seize, pid, None, None)
    with contextlib.suppress(OSError):  # it would have to be stopped first
        _call(call, detach, pid, None, None)
    return True


@attack
def offer_outside_to_the_memory_killer(scene: Scene) -> bool:
    Path(f"/proc/{_victim(scene)}/oom_score_adj").write_text("900")
    return True


@attack
def gain_rights_by_a_set_id_program(_: Scene) -> bool:
    """Nothing is run: without this mark `su` and `sudo` would give their rights."""
    return "NoNewPrivs:\t0" in Path("/proc/self/status").read_text()


@attack
def list_sockets(scene: Scene) -> bool:
    """Return where the user's daemons listen, the engine among them."""
    return scene["unix_socket"] in Path("/proc/net/unix").read_text()


@attack
def raw_packets(_: Scene) -> bool:
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close()
    return True


@attack
def count_performance(_: Scene) -> bool:
    """Counters of the processor tell what others compute."""
    attributes = struct.pack("=IIQ", 1, 112, 1).ljust(40, b"\0") + struct.pack("=Q", 0b1100001)
    held = ctypes.create_string_buffer(attributes.ljust(112, b"\0"))
    return _call({"x86_64": 298, "other": 241}, held, 0, -1, -1, 0) >= 0


@attack
def load_a_kernel_program(_: Scene) -> bool:
    array = struct.pack("=IIIII", 2, 4, 8, 1, 0).ljust(72, b"\0")
    return _call({"x86_64": 321, "other": 280}, 0, ctypes.create_string_buffer(array), 72) >= 0


@attack
def hold_page_faults(_: Scene) -> bool:
    """Stopping the kernel in the middle of a copy is how its races are won."""
    return _call({"x86_64": 323, "other": 282}, os.O_CLOEXEC | 1) >= 0


@attack
def type_into_the_terminal(_: Scene) -> bool:
    """Type for the user into a terminal that is shared with them; here it is one of our own."""
    master, slave = os.openpty()
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
            fcntl.ioctl(slave, termios.TIOCSTI, b"x")
        except OSError:
            os._exit(1)
        os._exit(0)
    done = os.waitpid(pid, 0)[1]
    os.close(master)
    os.close(slave)
    return done == 0


@attack
def write_into_dev(_: Scene) -> bool:
    """A folder in memory that no limit counts."""
    path = Path("/dev/plait-test")
    try:
        path.write_bytes(bytes(1 << 20))
        return True
    finally:
        path.unlink(missing_ok=True)


def _succeeds(step: Callable[[], bool]) -> bool:
    try:
        return step()
    except OSError:
        return False


_OPTIONAL = (
    *("host_of_the_virtual_machine", "ring", "keyring", "count_performance", "hold_page_faults"),
    *("load_a_kernel_program", "type_into_the_terminal", "raw_packets"),
)


def absent() -> frozenset[str]:
    """Return what this machine does not have to be attacked by."""
    keep_key()
    tried = {name: _succeeds(lambda name=name: ATTACKS[name]({})) for name in _OPTIONAL}  # type: ignore[misc]
    missing = {name for name, worked in tried.items() if not worked}
    if not has_user_namespaces():
        missing |= {"own_namespace", "sysctl_of_an_own_proc"}
    return frozenset(missing)


def has_user_namespaces() -> bool:
    """Return whether this user may make a user namespace; a chroot and some containers refuse."""
    try:
        argv = ["unshare", "-Ur", "true"]
        return subprocess.run(argv, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def main() -> None:
    scene = json.loads(Path(sys.argv[1]).read_text())
    answer = {name: _succeeds(lambda name=name: ATTACKS[name](scene)) for name in sys.argv[2:]}  # type: ignore[misc]
    print(json.dumps(answer))  # noqa: T201 - the answer


if __name__ == "__main__":
    main()
