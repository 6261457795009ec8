"""Attack limits as a greedy agent does: each attack takes as much as its words say.

`python -I excesses.py NAME WORD …` prints how much it got; `… try NAME WORD …` ends with 0 where it
got all of it and with 3 where something stopped it.
"""

import json
import os
import select
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path


def hog(children: int, megabytes: int, seconds: int = 0) -> dict[str, int]:
    """Children that each fill so much memory and stay so long; how many were left alive."""
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
    select.select([], [], [], seconds)
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


def hide(megabytes: int) -> dict[str, int]:
    """Fill a file in memory that no folder shows and no process maps, and hold it."""
    held = os.memfd_create("plait-test")
    written = sum(os.write(held, bytes(1 << 20)) for _ in range(megabytes)) >> 20
    sys.stdout.write("hidden\n")
    sys.stdout.flush()
    select.select([], [], [], 1.5)  # long enough for every look
    return {"megabytes": written}


def scatter(prefix: str, files: int, seconds: int) -> dict[str, int]:
    """Write many files of a megabyte, at once, and wait to be counted."""
    for number in range(files):
        Path(f"{prefix}{number}").write_bytes(os.urandom(1 << 20))
    select.select([], [], [], seconds)
    return {"megabytes": files}


def flood(megabytes: int) -> dict[str, int]:
    """Write to the terminal."""
    for _ in range(megabytes):
        sys.stdout.write("x" * (1 << 20))
    return {"megabytes": megabytes}


def linger(seconds: int) -> dict[str, int]:
    """Go on for longer than allowed."""
    select.select([], [], [], seconds)
    return {"seconds": seconds}


def outlive(mark: str) -> dict[str, int]:
    """Leave a daemon behind that no parent, group or session ties to anybody."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            words = [sys.executable, "-c", "import signal; signal.pause()", mark]
            os.execve(words[0], words, {})  # noqa: S606 - nothing of it is to be recognized
        os._exit(0)
    os.wait()
    return {"left": 1}


def fill(path: str, megabytes: int) -> dict[str, int]:
    """Writes one file until it is stopped; how big it became."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        with Path(path).open("wb", buffering=0) as file:
            file.writelines(bytes(1 << 20) for _ in range(megabytes))
    except OSError:
        pass
    return {"megabytes": Path(path).stat().st_size >> 20}


def _run(name: str, words: Sequence[str]) -> dict[str, int]:
    arguments = [int(word) if word.isdigit() else word for word in words]
    tried = (hog, hide, fork_bomb, fill, scatter, flood, linger, outlive)
    known: dict[str, Callable[..., dict[str, int]]] = {each.__name__: each for each in tried}
    return known["fork_bomb" if name == "bomb" else name](*arguments)


def _gets_all(name: str, words: Sequence[str]) -> bool:
    """Return whether an attack on a limit gets all that it asks for."""
    numbers = [int(word) for word in words if word.isdigit()]
    wanted = {"hog": ("alive", 0), "bomb": ("forks", 0), "linger": ("seconds", 0)}
    wanted["scatter"] = ("megabytes", 0)
    key, place = wanted.get(name, ("megabytes", -1))
    answer = _run(name, words)
    return name == "outlive" or answer[key] == numbers[place]


def main() -> None:
    words = sys.argv[1:]
    if words[0] == "try":
        sys.exit(0 if _gets_all(words[1], words[2:]) else 3)
    print(json.dumps(_run(words[0], words[1:])))  # noqa: T201 - the answer


if __name__ == "__main__":
    main()
