"""The seam of every host: operations on an attempt in plain data; nothing behind it matters.

The only error that crosses it is `HostLost`. An attempt that could not start, or that ended badly,
is an `AttemptExit` like any other.
"""

from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from engine.ids import AttemptId, RunId
from engine.limits import LimitHit, Limits, Usage
from engine.phases import StopCause
from engine.sandbox.profile import Profile


class Stream(StrEnum):
    """The stream that recorded bytes came from or went to."""

    OUT = "out"
    ERR = "err"
    IN = "in"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Frame:
    """One piece of a recording: seconds since the start, the stream, the bytes."""

    at_s: float
    stream: Stream
    data: bytes


@dataclass(frozen=True, kw_only=True)
class AttemptSpec:
    """Everything a host needs to start one attempt; starting the same attempt twice is harmless.

    Attributes:
        directory: The attempt's own folder: recording, keeper.json, exit.json.
        env: The whole environment of the agent; nothing is inherited.
        mark: A value put into the environment by which stray processes are found.
        first_input: Bytes written to stdin at the start.
        keeps_stdin: Leave stdin open for `send`; else it is closed after `first_input`.
        terminal: Rows and columns when the agent wants a terminal, else pipes.
        is_held: Start the keeper now, the agent only on `go`.
        is_tethered: The attempt must end when the process that started it ends.
    """

    attempt: AttemptId
    directory: str
    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    cwd: str
    mark: str
    first_input: bytes = b""
    keeps_stdin: bool = False
    terminal: tuple[int, int] | None = None
    limits: Limits = field(default_factory=Limits)
    grace_s: float = 5.0
    is_held: bool = False
    is_tethered: bool = True
    profile: Profile = field(default_factory=Profile)


@dataclass(frozen=True, kw_only=True)
class AttemptExit:
    """The end of an attempt, as its keeper wrote it down.

    Attributes:
        cause: Why it was ended from outside; None when it ended by itself.
        exit_code: The leader's own; None when it was killed by `signal` or never started.
        not_started: Why the program could not be executed, if it could not.
        leader_end: Recording offset up to which everything the leader wrote is contained.
        is_truncated: The recording met its cap and says so at its end.
        left_over: Names of processes that outlived the leader and were ended.
        unkillable: Processes that could not be ended (stuck in the kernel).
    """

    cause: StopCause | None = None
    exit_code: int | None = None
    signal: int | None = None
    not_started: str | None = None
    limit: LimitHit | None = None
    usage: Usage = field(default_factory=Usage)
    wall_s: float = 0.0
    paused_s: float = 0.0
    leader_end: int = 0
    is_truncated: bool = False
    left_over: tuple[str, ...] = ()
    unkillable: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """A part of a recording: frames, the next offset, and the end once all has been read.

    A chunk without frames brings news of something else. While `is_clogged`, the disk takes no more
    of the recording and the attempt waits for space.
    """

    frames: tuple[Frame, ...]
    next_offset: int
    usage: Usage | None = None
    is_clogged: bool = False
    end: AttemptExit | None = None


@dataclass(frozen=True, kw_only=True)
class Capacity:
    """The resources that the host has to give."""

    cores: int
    memory_mb: int
    memory_available_mb: int
    disk_free_mb: int


class WatchedHost(Protocol):
    """The part of a host that one who watches an attempt uses."""

    async def read(
        self, attempt: AttemptId, after_offset: int, *, wait: bool = True, is_focused: bool = False
    ) -> Chunk:
        """Return what was recorded after an offset; wait for more if the caller wants that."""

    async def send(self, attempt: AttemptId, n: int, data: bytes | None) -> None:
        """Write to its stdin the n-th message (repeats are dropped); None closes stdin."""

    async def interrupt(self, attempt: AttemptId) -> None:
        """Send SIGINT to the leader once."""

    async def freeze(self, attempt: AttemptId) -> None:
        """Stop the whole tree where it stands; its clocks stop too."""

    async def thaw(self, attempt: AttemptId) -> None:
        """Let it go on."""

    async def hold_clock(self, attempt: AttemptId, *, held: bool) -> None:
        """Stop or restart the time limit without freezing: a human is awaited."""

    async def set_limits(self, attempt: AttemptId, limits: Limits) -> None:
        """Change the limits of a running attempt."""

    async def cancel(
        self, attempt: AttemptId, cause: StopCause, *, grace_s: float | None = None
    ) -> None:
        """End the whole tree: gracefully, or at once with a grace of 0; the first cause is kept."""


class Host(WatchedHost, Protocol):
    """A place where attempts run."""

    async def start(self, spec: AttemptSpec) -> None:
        """Start the attempt, or find it already started; returns once its keeper lives."""

    async def go(self, attempt: AttemptId) -> None:
        """Let a held attempt begin."""

    async def resize(self, attempt: AttemptId, rows: int, columns: int) -> None:
        """Tell a terminal agent its new size."""

    async def forget(self, attempt: AttemptId) -> None:
        """Drop what is held in memory for an attempt that has ended and been read."""

    async def attempts(self, directories: Sequence[str]) -> tuple[AttemptId, ...]:
        """Return the attempts recorded in these folders that can still be read, living or ended."""

    async def capacity(self) -> Capacity:
        """Return what this host has to give now."""

    async def aclose(self, *, detach: bool, stay: Container[RunId] = ()) -> None:
        """Release all attempts: leave them running, or end them and wait until they are dead."""
