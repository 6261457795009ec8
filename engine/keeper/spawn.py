"""Starting the agent: by posix_spawn where that can say everything, else by a forked child.

The forked child exists for what spawn cannot set: cgroups, Landlock and hard limits. It does all of
that while the attempt is held and then waits, so that a start costs nothing more than the exec.
"""
# ruff: noqa: PTH113, PTH118, PTH208
# A keeper must not load pathlib: 2 MB in each of many.

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import resource
import signal
import struct
import termios

from engine.keeper import landlock
from engine.system import IS_PORTABLE, OWN_DESCRIPTORS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from engine.keeper.request import CgroupPath, Request

STATUS_FD = 3
"""The number under which the wrapper finds the descriptor for its reports."""
_STDERR = 2
_HIGH = 20  # ours are moved above every number that is given to the agent
_RESET = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}


class NotStarted(Exception):
    """The program could not be executed; the text says why, for a human."""


class Stdio:
    """Both ends of the agent's descriptors: pipes, or one terminal."""

    def __init__(self, terminal: list[int] | None, *, has_status: bool) -> None:
        self.status, self._status_theirs = _pipe() if has_status else (-1, -1)
        self.terminal_name = ""
        if terminal is None:
            theirs_in, self.stdin = _pipe()
            self.stdout, theirs_out = _pipe()
            self.stderr, theirs_err = _pipe()
            self._theirs = [theirs_in, theirs_out, theirs_err]
        else:
            master, slave = os.openpty()
            self.stdin, self.stdout, self.stderr = os.dup(master), master, -1
            set_size(master, *terminal)
            self.terminal_name = os.ttyname(slave)
            self._theirs = [slave] * 3
        for fd in {self.stdin, self.stdout, self.stderr, self.status} - {-1}:
            os.set_blocking(fd, False)

    @property
    def given(self) -> list[tuple[int, int]]:
        """Return the agent's descriptors, each with the number it gets."""
        pairs = [(fd, number) for number, fd in enumerate(self._theirs)]
        if self._status_theirs >= 0:
            pairs.append((self._status_theirs, STATUS_FD))
        return pairs

    def close_theirs(self) -> None:
        """Release the agent's ends, so that its end can be seen."""
        for fd in {*self._theirs, self._status_theirs} - {-1}:
            os.close(fd)


class Spawn:
    """One agent about to run: made while the attempt is held, released once."""

    def __init__(self, request: Request, stdio: Stdio, directory_fd: int) -> None:
        self._request, self._stdio, self._directory_fd = request, stdio, directory_fd
        joins = any(each.is_joined for each in request.cgroups)
        needs_fork = joins or request.is_fenced or request.rlimits
        self._forked = _ForkedChild(self) if needs_fork else None

    def go(self) -> int:
        """Execute the program; returns its process id, or raises `NotStarted`."""
        leaked = _inheritable()
        if leaked:
            raise NotStarted(f"descriptors would leak into the agent: {leaked}")
        if self._forked is not None:
            return self._forked.go()
        try:
            return self._spawn()
        except OSError as refused:
            raise _not_started(refused, self.argv[0]) from refused

    @property
    def argv(self) -> list[str]:
        """The wrapper's words and the agent's."""
        wrapper = [word.replace("{status_fd}", str(STATUS_FD)) for word in self._request.wrapper]
        return wrapper + self._request.argv

    def become_agent(self) -> None:
        """In the forked child: everything up to the exec that could not be undone."""
        request, stdio = self._request, self._stdio
        os.setsid()
        for cgroup in filter(_is_joined, request.cgroups):
            _write(f"{cgroup.path}/cgroup.procs", "0")
        _write("/proc/self/oom_score_adj", str(request.oom_score_adj))
        if stdio.terminal_name:  # opening it makes it the controlling terminal
            os.close(os.open(stdio.terminal_name, os.O_RDWR))
        for fd, number in stdio.given:
            os.dup2(fd, number)
        os.chdir(request.cwd)
        for name, value in request.rlimits:
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (value, value))
        if request.is_fenced:
            landlock.restrict(
                request.landlock_rules,
                is_scoped=request.landlock_is_scoped,
                seccomp=request.seccomp,
            )

    def execute(self) -> None:
        """In the forked child: the exec itself."""
        for number in _RESET:
            signal.signal(number, signal.SIG_DFL)
        program = _find(self.argv[0], self._request.env)
        os.execve(program, self.argv, self._request.env)  # noqa: S606 - a shell is what we avoid

    def _spawn(self) -> int:
        request, stdio = self._request, self._stdio
        actions: list[tuple[int, int, int] | tuple[int, int, str, int, int]] = []
        if stdio.terminal_name:
            actions.append((os.POSIX_SPAWN_OPEN, 0, stdio.terminal_name, os.O_RDWR, 0))
        actions += [(os.POSIX_SPAWN_DUP2, fd, number) for fd, number in stdio.given]
        before = _swap_oom_score(request.oom_score_adj)
        try:
            os.chdir(request.cwd)
            return os.posix_spawn(
                _find(self.argv[0], request.env),
                self.argv,
                request.env,
                file_actions=actions,
                setsid=True,
                setsigmask=[],
                setsigdef=_RESET,
            )
        finally:
            os.fchdir(self._directory_fd)
            _swap_oom_score(before)


class _ForkedChild:
    """A child that has made itself ready and waits for one byte before it executes."""

    def __init__(self, launch: Spawn) -> None:
        self._program = launch.argv[0]
        go_theirs, self._go = _pipe()
        self._said, said_theirs = _pipe()
        self._pid = os.fork()
        if self._pid == 0:
            _run_child(launch, go_theirs, said_theirs)
        os.close(go_theirs)
        os.close(said_theirs)

    def go(self) -> int:
        with contextlib.suppress(BrokenPipeError):  # it has failed already, and said why
            os.write(self._go, b"g")
        os.close(self._go)
        said = b""
        while part := os.read(self._said, 4096):
            said += part
        os.close(self._said)
        if said:
            number, text = said.decode().split(" ", 1)
            raise _not_started(OSError(int(number), text), self._program)
        return self._pid


def _run_child(launch: Spawn, go_fd: int, said_fd: int) -> None:
    """The forked child's whole life; never returns. A dead keeper is seen as the end of `go_fd`."""
    try:
        signal.set_wakeup_fd(-1)
        _keep_open = {go_fd, said_fd, *(fd for fd, _ in launch._stdio.given)}  # noqa: SLF001 - the same program, forked
        _close_others(_keep_open)
        launch.become_agent()
        if os.read(go_fd, 1):
            launch.execute()
    except OSError as refused:
        about = f" ({refused.filename})" if refused.filename else ""
        os.write(said_fd, f"{refused.errno or 0} {refused.strerror}{about}".encode())
    finally:
        os._exit(127)


def close_on_exec(fd: int) -> None:
    """A descriptor that was received or inherited must not reach the agent as an opening."""
    fcntl.fcntl(fd, fcntl.F_SETFD, fcntl.FD_CLOEXEC)


def set_size(fd: int, rows: int, columns: int) -> None:
    """Tell a terminal its size; its foreground processes hear of it."""
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def _find(name: str, env: dict[str, str]) -> str:
    """The program a shell would run under that name; looked up in the agent's PATH, not ours."""
    if "/" in name:
        return name
    for folder in env.get("PATH", os.defpath).split(os.pathsep):
        candidate = os.path.join(folder, name)
        if os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            return candidate
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)


def _inheritable() -> list[int]:
    """Descriptors of ours that an exec would hand on: there must be none."""
    numbers = [int(name) for name in os.listdir(OWN_DESCRIPTORS)]
    return [fd for fd in numbers if fd > _STDERR and _is_inheritable(fd)]


def _is_inheritable(fd: int) -> bool:
    try:
        return os.get_inheritable(fd)
    except OSError:  # the descriptor with which the folder was listed
        return False


def _close_others(keep: set[int]) -> None:
    for name in os.listdir(OWN_DESCRIPTORS):
        if int(name) > _STDERR and int(name) not in keep:
            try:
                os.close(int(name))
            except OSError:
                continue


def _swap_oom_score(value: int | None) -> int | None:
    """Set our own, which the agent inherits, and return what it was; None changes nothing."""
    path = "/proc/self/oom_score_adj"
    if value is None or IS_PORTABLE:
        return None
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        before = int(os.read(fd, 16))
        os.pwrite(fd, str(value).encode(), 0)
    except OSError:
        return None
    else:
        return before
    finally:
        os.close(fd)


def _is_joined(cgroup: CgroupPath) -> bool:
    return cgroup.is_joined


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    except OSError as refused:
        raise OSError(refused.errno, refused.strerror, path) from refused
    finally:
        os.close(fd)


def _pipe() -> tuple[int, int]:
    """A pipe whose ends lie above the numbers that are given to the agent."""
    low = os.pipe2(os.O_CLOEXEC)
    high = tuple(fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _HIGH) for fd in low)
    for fd in low:
        os.close(fd)
    return high[0], high[1]


def _not_started(refused: OSError, program: str) -> NotStarted:
    about = refused.filename or program
    return NotStarted(f"{refused.strerror}: {about}")
