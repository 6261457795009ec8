"""A user with a repository, secrets and sockets, two workers, and a way to run in a profile.

Everything lies below one folder, laid out as the engine lays it out. `run` does by hand what the
keeper does with a profile, so that the sandbox is tested without it.
"""

import contextlib
import json
import os
import resource
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from engine.keeper import landlock
from engine.sandbox.cgroups import PREFIX
from engine.sandbox.confine import confine, release
from engine.sandbox.environment import environment
from engine.sandbox.machine import MachineSupport
from engine.sandbox.profile import Profile
from engine.sandbox.request import ConfineRequest
from tests.support.attacks import ATTACKS, keep_key
from tests.support.repositories import RepositoryBuilder

PROGRAM = Path(__file__).with_name("attacks.py")
EXCESSES = Path(__file__).with_name("excesses.py")
PYTHON = os.path.realpath(sys.executable)


def attempts_with_cgroups(machine: MachineSupport) -> frozenset[str]:
    """Return the names of the attempts that have cgroups, those of killed engines too."""
    return frozenset(
        place.name.removeprefix(PREFIX)
        for hierarchy in machine.hierarchies
        for place in Path(hierarchy.parent).glob(f"{PREFIX}*")
    )


@dataclass
class Scene:
    """The user's side and the worker's side; `close` ends its listeners and its outside process."""

    root: Path
    repository: RepositoryBuilder
    workspace: Path
    sibling: Path
    attempt: Path
    home: Path
    temp: Path
    outside: "subprocess.Popen[bytes]"
    listeners: list[socket.socket]
    facts: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def build(cls, root: Path) -> Self:
        """Make everything below an empty folder."""
        root = root.resolve()
        repository = RepositoryBuilder(root / "user" / "repo")
        repository.commit({"treasure.txt": "treasure\n", "code.c": "int main(){return 0;}\n"})
        repository.git("branch", "feature")
        user = repository.home
        (user / ".ssh").mkdir()
        (user / ".ssh" / "id_ed25519").write_text("treasure\n")
        run = Path(".git/plait/runs/r/s")
        attempt = repository.path / run / "worker_1" / "attempt_1"
        home = attempt.parent / "home"
        state = user / ".local/state/plait/repo-1/r/s"
        workspace, sibling = state / "worker_1/attempt_1", state / "worker_2/attempt_1"
        temp = root / "temp"
        for folder in (attempt, home, workspace.parent, sibling, temp, root / "run"):
            folder.mkdir(parents=True)
        (sibling / "treasure.txt").write_text("treasure\n")
        (attempt / "recording").write_text("treasure\n")
        _worktree(repository, workspace, attempt)
        command = [PYTHON, "-I", "-c", "import signal; signal.pause()", f"mark-{root.name}"]
        outside = subprocess.Popen(command, env={"TOKEN": "treasure"}, start_new_session=True)
        scene = cls(
            root=root,
            repository=repository,
            workspace=workspace,
            sibling=sibling,
            attempt=attempt,
            home=home,
            temp=temp,
            outside=outside,
            listeners=[],
        )
        scene.listen()
        return scene

    def listen(self) -> None:
        """Open the sockets that an agent might try, each of which answers `treasure`."""
        keep_key()
        abstract = f"plait-test-{self.outside.pid}"
        path = str(self.root / "run" / "s")
        for family, address in (
            (socket.AF_UNIX, "\0" + abstract),
            (socket.AF_UNIX, path),
            (socket.AF_INET, ("127.0.0.1", 0)),
        ):
            listener = socket.socket(family)
            listener.bind(address)
            listener.listen()
            self.listeners.append(listener)
            threading.Thread(target=_answer, args=(listener,), daemon=True).start()
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.bind(("127.0.0.1", 0))
        threading.Thread(target=_answer_udp, args=(udp,), daemon=True).start()
        self.facts = {
            "sibling": str(self.sibling),
            "checkout": str(self.repository.path),
            "attempt": str(self.attempt),
            "workspace": str(self.workspace),
            "secret": str(self.repository.home / ".ssh/id_ed25519"),
            "outside_pid": self.outside.pid,
            "outside_mark": f"mark-{self.root.name}",
            "abstract": abstract,
            "unix_socket": path,
            "tcp_port": self.listeners[2].getsockname()[1],
            "udp_port": udp.getsockname()[1],
            "memory_group": "/nonexistent",
        }
        self.listeners.append(udp)

    def request(self, **changes: Any) -> ConfineRequest:
        """Return what this worker asks for, as the engine would."""
        request = ConfineRequest(
            name=f"test-{os.getpid()}-{self.outside.pid}",
            workspace=self.workspace,
            home=self.home,
            temp=self.temp,
            private_clone=self.attempt / "git",
            git_file=self.attempt / "gitfile",
            git_objects=(self.repository.path / ".git/objects",),
            hide=(self.repository.path, self.repository.home, self.workspace.parents[4]),
            read_only=(Path(sys.base_prefix), Path(sys.prefix), PROGRAM, EXCESSES),
            env={**os.environ, "HOME": str(self.repository.home), "MY_TOKEN": "treasure"},
        )
        return replace(request, **changes)

    def try_attacks(
        self, machine: MachineSupport | None, request: ConfineRequest, names: Sequence[str] = ()
    ) -> dict[str, bool]:
        """Run attacks as the worker, in a profile or (without a machine) in nothing at all."""
        profile = Profile() if machine is None else confine(machine, request)
        groups = [each.path for each in profile.cgroups if "memory" in each.controllers]
        scene = {**self.facts, "memory_group": groups[0] if groups else "/nonexistent"}
        file = self.workspace / "scene.json"
        file.write_text(json.dumps(scene))
        argv = [PYTHON, "-I", str(PROGRAM), str(file), *(names or ATTACKS)]
        env = dict(request.env if machine is None else environment(machine, request))
        try:
            done = run(profile, argv, env=env, cwd=self.workspace)
        finally:
            left = release(profile)
        assert done.returncode == 0, done.stderr
        assert not left
        answer: dict[str, bool] = json.loads(done.stdout)
        return answer

    def close(self) -> None:
        """End what was started."""
        for listener in self.listeners:
            with contextlib.suppress(OSError):  # one without a connection says so, and is woken
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        self.outside.kill()
        self.outside.wait()


def run(
    profile: Profile,
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path,
    timeout_s: float = 60,
) -> subprocess.CompletedProcess[str]:
    """Carry out a profile: join its cgroups, take its limits, fence files, execute its wrapper."""
    reading, writing = os.pipe()

    def become() -> None:
        for group in profile.cgroups:
            Path(group.path, "cgroup.procs").write_text("0")
        for name, value in profile.rlimits:
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (value, value))
        if profile.landlock_rules or profile.landlock_is_scoped or profile.seccomp:
            landlock.restrict(
                profile.landlock_rules,
                is_scoped=profile.landlock_is_scoped,
                seccomp=bytes.fromhex(profile.seccomp),
            )

    words = [word.replace("{status_fd}", str(writing)) for word in profile.wrapper]
    try:
        return subprocess.run(
            [*words, *argv],
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            pass_fds=(writing,),
            preexec_fn=become,
            timeout=timeout_s,
        )
    finally:
        os.close(reading)
        os.close(writing)


def _worktree(repository: RepositoryBuilder, workspace: Path, attempt: Path) -> None:
    """A linked worktree outside, a private git directory behind it inside."""
    branch, private = "plait/r/s/worker_1", attempt / "git"
    repository.git("worktree", "add", "-q", "--lock", "-b", branch, str(workspace))
    repository.git("clone", "-q", "--shared", "--bare", "-b", branch, ".", str(private))
    for key, value in (
        ("core.bare", "false"),
        ("user.name", "Ada User"),
        ("user.email", "ada@example.org"),
    ):
        repository.git("config", key, value, cwd=private)
    index = repository.path / ".git/worktrees" / workspace.name / "index"
    (private / "index").write_bytes(index.read_bytes())
    (attempt / "gitfile").write_text(f"gitdir: {private}\n")


def _answer(listener: socket.socket) -> None:
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        with client:
            client.sendall(b"treasure")


def _answer_udp(listener: socket.socket) -> None:
    while True:
        try:
            _, sender = listener.recvfrom(16)
            if sender is None:  # it was shut
                return
            listener.sendto(b"treasure", sender)
        except OSError:
            return
