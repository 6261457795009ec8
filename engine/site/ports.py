"""Lease network ports to workers, so that two of them never start a server on the same one."""

import errno
import socket
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field


@dataclass
class Ports:
    """The leases of one engine, over all its runs."""

    _held: dict[str, dict[str, str]] = field(default_factory=dict)

    def lease(self, holder: str, wanted: Mapping[str, int]) -> dict[str, str]:
        """Lease ports and return their variables: `PORT`, or `PORT`, `PORT_2`, … for several.

        The same holder gets the same ports again until they are released.
        """
        if holder not in self._held and wanted:
            taken = {port for held in self._held.values() for port in held.values()}
            names = [
                name if n == 1 else f"{name}_{n}"
                for name, count in wanted.items()
                for n in range(1, count + 1)
            ]
            self._held[holder] = dict(zip(names, _free(len(names), taken), strict=True))
        return dict(self._held.get(holder, {}))

    def release(self, holder: str) -> None:
        """Return a holder's ports for others to use."""
        self._held.pop(holder, None)


def _free(count: int, taken: set[str]) -> list[str]:
    """Return ports that nobody uses or has leased; hold all open while looking."""
    found: list[str] = []
    with ExitStack() as stack:
        while len(found) < count:
            probe = stack.enter_context(socket.socket())
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
            if str(port) not in taken and _is_free_everywhere(port, stack):
                found.append(str(port))
    return found


def _is_free_everywhere(port: int, stack: ExitStack) -> bool:
    """Return whether nobody listens on IPv6 either: `localhost` leads there first."""
    if not socket.has_ipv6:
        return True
    try:
        probe = stack.enter_context(socket.socket(socket.AF_INET6))
        probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        probe.bind(("::1", port))
    except OSError as error:
        return error.errno != errno.EADDRINUSE  # a machine without IPv6 has nobody there
    return True
