"""Ways through a closed network: the words that put a helper outside and its other half inside.

One way leads out, to some hosts only. One leads in, from a port of this machine to the same port
inside, for a program that a human wants to see.

The programs are the keeper's (`engine/keeper/egress.py`), which is run and never imported here.
"""

from collections.abc import Iterator
from pathlib import Path

from engine.sandbox.machine import MachineSupport
from engine.sandbox.request import ConfineRequest, NetworkAccess

SOCKET = Path("/run/plait-egress")
"""The proxy's place inside: short, because a long path cannot be connected to."""

INLET = Path("/run/plait-inlet")
"""The place inside where those wait who bring in whoever comes."""

_SOCKET_NAME, _INLET_NAME, _PORT = "egress.sock", "inlet.sock", 41789
_NEVER_BY_PROXY = "localhost,127.0.0.1,::1"


def around(machine: MachineSupport, request: ConfineRequest) -> Iterator[str]:
    """Return the words before the whole wrapper: what they start ends when the wrapper ends."""
    if _is_let_in(request):
        folder, port = str(request.way_dir), str(request.served_port)
        yield from (*machine.python, _program(machine), "admit", folder, port, "--")
    if request.network is NetworkAccess.ALLOW_LIST:
        folder, hosts = str(request.way_dir), request.allowed_hosts
        yield from (*machine.python, _program(machine), "around", folder, *hosts, "--")


def inside(machine: MachineSupport, request: ConfineRequest) -> Iterator[str]:
    """Return the words before the agent: forwarders, which do nothing without a helper outside."""
    if _is_let_in(request):
        port = str(request.served_port)
        yield from (*machine.python, _program(machine), "receive", str(INLET), port, "--")
    if request.network is NetworkAccess.ALLOW_LIST:
        yield from (*machine.python, _program(machine), "inside", str(SOCKET), "--")


def mounts(request: ConfineRequest) -> Iterator[str]:
    """Words of bubblewrap for the sockets; a program without a keeper has no helpers outside."""
    if request.way_dir is None:
        return
    folder = request.way_dir.resolve()
    if request.network is NetworkAccess.ALLOW_LIST:
        yield from ("--bind-try", str(folder / _SOCKET_NAME), str(SOCKET))
    if _is_let_in(request):
        yield from ("--bind-try", str(folder / _INLET_NAME), str(INLET))


def shown(machine: MachineSupport, request: ConfineRequest) -> Iterator[Path]:
    """Return what a forwarder needs to be seen: its interpreter and itself."""
    if request.network is NetworkAccess.ALLOW_LIST or _is_let_in(request):
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


def _is_let_in(request: ConfineRequest) -> bool:
    """Return whether somebody is to be let in; to an open network everybody comes by himself."""
    return request.served_port is not None and request.network is not NetworkAccess.OPEN


def _program(machine: MachineSupport) -> str:
    return str(Path(machine.launcher).with_name("egress.py"))
