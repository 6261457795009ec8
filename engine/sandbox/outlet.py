"""A network of some hosts only: the words that put a proxy outside and a forwarder inside.

The programs are the keeper's (`engine/keeper/egress.py`), which is run and never imported here.
"""

from collections.abc import Iterator
from pathlib import Path

from engine.sandbox.machine import MachineSupport
from engine.sandbox.request import ConfineRequest, NetworkAccess

SOCKET = Path("/run/plait-egress")
"""The proxy's place inside: short, because a long path cannot be connected to."""

_SOCKET_NAME, _PORT = "egress.sock", 41789
_NEVER_BY_PROXY = "localhost,127.0.0.1,::1"


def around(machine: MachineSupport, request: ConfineRequest) -> Iterator[str]:
    """Return the words before the whole wrapper: the proxy ends when the wrapper ends."""
    if request.network is NetworkAccess.ALLOW_LIST:
        folder, hosts = str(request.egress_dir), request.allowed_hosts
        yield from (*machine.python, _program(machine), "around", folder, *hosts, "--")


def inside(machine: MachineSupport, request: ConfineRequest) -> Iterator[str]:
    """Return the words before the agent: the forwarder, which does nothing without a proxy."""
    if request.network is NetworkAccess.ALLOW_LIST:
        yield from (*machine.python, _program(machine), "inside", str(SOCKET), "--")


def mounts(request: ConfineRequest) -> Iterator[str]:
    """Bubblewrap's words for the socket; a program without a keeper has no proxy, and no socket."""
    if request.egress_dir is not None:
        yield from ("--bind-try", str(request.egress_dir.resolve() / _SOCKET_NAME), str(SOCKET))


def shown(machine: MachineSupport, request: ConfineRequest) -> Iterator[Path]:
    """Return what the forwarder needs to be seen: its interpreter and itself."""
    if request.network is NetworkAccess.ALLOW_LIST:
        yield from (Path(machine.python_home), Path(_program(machine)))


def variables(request: ConfineRequest) -> Iterator[tuple[str, str]]:
    """Return the variables by which programs find the way out."""
    if request.network is not NetworkAccess.ALLOW_LIST:
        return
    web, any_kind = f"http://127.0.0.1:{_PORT}", f"socks5h://127.0.0.1:{_PORT}"
    pairs = (("HTTP_PROXY", web), ("HTTPS_PROXY", web), ("ALL_PROXY", any_kind))
    for name, value in (*pairs, ("NO_PROXY", _NEVER_BY_PROXY)):
        yield name, value
        yield name.lower(), value
    yield "NODE_USE_ENV_PROXY", "1"


def _program(machine: MachineSupport) -> str:
    return str(Path(machine.launcher).with_name("egress.py"))
