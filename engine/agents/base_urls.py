"""Know the addresses of the providers that users chose, and refuse one where nothing answers.

A connection is opened and closed again: nothing is said on it, so no key goes anywhere.
"""

import errno
import socket
from collections.abc import Iterable, Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

import anyio

from engine.agents.contract import AgentLaunch, BaseUrl, LaunchRequest
from engine.errors import AgentError

_LONGEST_PROBE_S = 3.0
_PORTS = {"http": 80, "https": 443}
_UNREACHABLE = {
    errno.ECONNREFUSED: "the connection is refused",
    errno.EHOSTUNREACH: "there is no route to that host",
    errno.ENETUNREACH: "the network is unreachable",
    errno.ENETDOWN: "the network is down",
}
_Place = tuple[str, int]


def base_url_in(
    request: LaunchRequest, name: str, given: Mapping[str, str], *, file: str = ""
) -> BaseUrl | None:
    """Return the address that a variable names, in the environment of an agent.

    Args:
        request: What it is launched for.
        name: The variable.
        given: The environment, without that of the manifest.
        file: The file of the user's that names it, where one does.
    """
    own = request.choice.env.get(name)
    url = own or given.get(name)
    if not url:
        return None
    where = f"`env` of the agent {request.choice.name!r}" if own else file
    return BaseUrl(url=url, named_by=f"{name} in {where}" if where else name)


async def check_base_urls(launches: Iterable[tuple[LaunchRequest, AgentLaunch]]) -> None:
    """Refuse an agent whose user's own provider cannot be reached.

    One that takes too long to answer is not refused, nor one whose name no resolver could look up
    now: nobody knows then.

    Raises:
        AgentError: No host has that name, or nothing answers at that port.
    """
    wanted = {
        place: (request.choice.name, launch.base_url)
        for request, launch in launches
        if launch.base_url and (place := _place(launch.base_url.url, _environment(request)))
    }
    faults: dict[_Place, str] = {}

    async def look(place: _Place) -> None:
        with anyio.move_on_after(_LONGEST_PROBE_S):
            faults[place] = await _fault(*place)

    async with anyio.create_task_group() as group:
        for place in wanted:
            group.start_soon(look, place)
    for place, (agent, base_url) in wanted.items():
        if why := faults.get(place):
            host, port = place
            raise AgentError(
                f"the agent {agent!r} cannot reach its provider at {host}:{port}: {why}",
                hint=f"{base_url.named_by} sets this address. Start the server there, or correct "
                "the address.",
            )


def _environment(request: LaunchRequest) -> Mapping[str, str]:
    """Return the variables of the user and those that the manifest adds for this agent."""
    return {**request.environment, **request.choice.env}


def _place(url: str, environment: Mapping[str, str]) -> _Place | None:
    """Return host and port of an address; None where no connection would tell anything."""
    try:
        parts = urlsplit(url.strip())
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return None
    host = parts.hostname
    if not host or port is None or (_has_proxy(environment) and not _is_loopback(host)):
        return None
    return host, port


def _has_proxy(environment: Mapping[str, str]) -> bool:
    """Return True if a proxy may stand between: it knows names that nobody knows here."""
    names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    return any(environment.get(name) or environment.get(name.lower()) for name in names)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


async def _fault(host: str, port: int) -> str:
    """Return why nothing can be reached there; nothing if something can, or nobody knows."""
    try:
        found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError) as error:
        is_silent = getattr(error, "errno", None) == socket.EAI_AGAIN
        return "" if is_silent else "its host name cannot be resolved"
    why = ""
    for *_, place in found:
        try:
            stream = await anyio.connect_tcp(str(place[0]), port)
        except OSError as error:
            number = getattr(error.__cause__, "errno", None)
            if number not in _UNREACHABLE:
                return ""
            why = _UNREACHABLE[number]
        else:
            await stream.aclose()
            return ""
    return why
