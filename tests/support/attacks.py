"""What a hostile agent tries: one function an attack, true where it got what it must not get.

Run inside a sandbox as `python -I attacks.py SCENE.json [NAME …]`, with the standard library alone;
prints `{"name": true, …}`. Every attack must succeed where nothing guards against it.
"""

import ctypes
import json
import os
import select
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Scene = dict[str, Any]
ATTACKS: dict[str, Callable[[Scene], bool]] = {}
ROOT_ONLY = frozenset(
    {
        *("remount", "raise_own_limit", "leave_cgroup", "device_node", "sysctl"),
        *("sysctl_of_an_own_proc", "read_shadow", "keep_capabilities"),
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
    with socket.create_connection(("127.0.0.1", scene["tcp_port"]), timeout=2) as client:
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


def _succeeds(step: Callable[[], bool]) -> bool:
    try:
        return step()
    except OSError:
        return False


def hog(children: int, megabytes: int) -> dict[str, int]:
    """Children that each fill so much memory and stay; how many were left alive."""
    pids = []
    ready, writing = os.pipe()
    for _ in range(children):
        pid = os.fork()
        if pid == 0:
            held = bytearray(megabytes << 20)
            held[::4096] = b"x" * len(held[::4096])
            os.write(writing, b".")
            signal.pause()
        pids.append(pid)
    filled, alive = 0, pids
    while filled + children - len(alive) < children:
        if select.select([ready], [], [], 0.02)[0]:
            filled += len(os.read(ready, children))
        alive = [pid for pid in alive if os.waitpid(pid, os.WNOHANG) == (0, 0)]
    for pid in alive:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return {"alive": len(alive)}


def fork_bomb(most: int) -> dict[str, int]:
    """Forks until it is refused, or until there are enough; how many there were."""
    pids = []
    try:
        for _ in range(most):
            pid = os.fork()
            if pid == 0:
                signal.pause()
            pids.append(pid)
    except BlockingIOError:
        pass
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return {"forks": len(pids)}


def fill(path: str, megabytes: int) -> dict[str, int]:
    """Writes one file until it is stopped; how big it became."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        with Path(path).open("wb", buffering=0) as file:
            file.writelines(bytes(1 << 20) for _ in range(megabytes))
    except OSError:
        pass
    return {"megabytes": Path(path).stat().st_size >> 20}


_OPTIONAL = ("host_of_the_virtual_machine", "ring", "keyring")


def absent() -> frozenset[str]:
    """What this kernel does not have to be attacked by."""
    keep_key()
    tried = {name: _succeeds(lambda name=name: ATTACKS[name]({})) for name in _OPTIONAL}  # type: ignore[misc]
    return frozenset(name for name, worked in tried.items() if not worked)


def main() -> None:
    words = sys.argv[1:]
    programs: dict[str, Callable[..., dict[str, int]]] = {"bomb": fork_bomb, "hog": hog}
    if words[0] in programs:
        answer: Any = programs[words[0]](*map(int, words[1:]))
    elif words[0] == "fill":
        answer = fill(words[1], int(words[2]))
    else:
        scene = json.loads(Path(words[0]).read_text())
        answer = {name: _succeeds(lambda name=name: ATTACKS[name](scene)) for name in words[1:]}  # type: ignore[misc]
    print(json.dumps(answer))  # noqa: T201 - the answer


if __name__ == "__main__":
    main()
