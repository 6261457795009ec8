"""The openings that a user makes on purpose: where they lead, and how a worker's HOME shows them.

What lies below the real home is reached from the worker's HOME by a link. A mount there would have
to be made inside a folder that the worker writes. If the worker had left a link in its way,
bubblewrap would create files wherever that link points.
"""

# ruff: noqa: PTH110
# pathlib raises where a folder on the way is closed.

import os
from collections.abc import Iterator
from pathlib import Path

from engine.beneath import make_link, read_link, remove_file
from engine.sandbox.request import ConfineRequest

_WRITABLE = ":rw"
_DOCKER_SOCKET = "/var/run/docker.sock"


def hole_paths(request: ConfineRequest) -> Iterator[tuple[Path, bool]]:
    """Each path that is opened and exists, resolved, and whether it may be written."""
    for hole in request.holes.paths:
        path = _named(request, hole)
        if path is not None:
            yield path.resolve(), hole.endswith(_WRITABLE)


def missing_holes(request: ConfineRequest) -> tuple[str, ...]:
    """Name what was to be opened and is not there."""
    holes = request.holes
    missing = [hole for hole in holes.paths if _named(request, hole) is None]
    if holes.docker and not os.path.exists(docker_socket(request)):
        missing.append("docker")
    agent = request.env.get("SSH_AUTH_SOCK", "")
    if holes.ssh_agent and not (agent and os.path.exists(agent)):
        missing.append("ssh agent")
    return tuple(missing)


def _named(request: ConfineRequest, hole: str) -> Path | None:
    text = hole.removesuffix(_WRITABLE).removesuffix(":ro")
    path = _real_home(request) / text[2:] if text.startswith("~/") else Path(text)
    return path if path.is_absolute() and os.path.exists(path) else None


def hole_sockets(request: ConfineRequest) -> Iterator[Path]:
    """The sockets that are opened, under the names by which programs look for them."""
    named = (
        docker_socket(request) if request.holes.docker else "",
        request.env.get("SSH_AUTH_SOCK", "") if request.holes.ssh_agent else "",
    )
    yield from (Path(name) for name in named if name.startswith("/") and os.path.exists(name))


def docker_socket(request: ConfineRequest) -> str:
    """Return the address at which the Docker daemon listens for this user."""
    return request.env.get("DOCKER_HOST", f"unix://{_DOCKER_SOCKET}").removeprefix("unix://")


def link_into_home(request: ConfineRequest) -> None:
    """Let the worker's HOME show what is opened below the real one; what is there already stays."""
    real = _real_home(request)
    for path, _ in hole_paths(request):
        if real in path.parents:
            make_link(request.home, path.relative_to(real), path)


def unlink_inside(home: Path, name: Path, place: Path) -> None:
    """Remove a link from a folder that a worker writes, if it leads below a place."""
    to = read_link(home, name)
    if isinstance(to, bytes) and place in Path(os.fsdecode(to)).parents:
        remove_file(home, name)


def _real_home(request: ConfineRequest) -> Path:
    return Path(request.env.get("HOME") or "/nonexistent").resolve()
