"""The ways through a closed network: out to some hosts only, and in to one port.

Standard library only. Four launchers, each of which leaves a helper behind and becomes the program
that follows: `around FOLDER HOST… -- PROGRAM …` listens on a unix socket in that folder and lets
through what the list allows; `inside SOCKET -- PROGRAM …`, in a sandbox without network, brings
TCP on the loopback to that socket. The proxy speaks HTTP (CONNECT and plain) and SOCKS 5. It knows
names and ports; what flows after a host was allowed it does not look at.

`admit FOLDER PORT -- PROGRAM …` listens on a port of this machine's loopback, and on a unix socket
in that folder; `receive SOCKET PORT -- PROGRAM …`, in the sandbox, brings who comes there to the
same port inside. The one outside never connects to anything: those inside wait on its socket until
somebody comes. So nothing in the sandbox can lead it elsewhere. No socket of this machine's network
is handed in either: its holder could connect it anew, to any address.
"""

import contextlib
import ctypes
import errno
import ipaddress
import json
import os
import queue
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

PORT = 41789
SOCKET_NAME, LOG_NAME, INLET_NAME = "egress.sock", "egress.log", "inlet.sock"
_WAITING, _COMES, _WAKING_S = 8, b"+", 10.0
_WEB_PORTS = (80, 443)
_CONNECTIONS, _NOTES, _HEAD, _CHUNK = 256, 4096, 1 << 16, 1 << 16
_CONNECT_S = 30.0
_PR_SET_PDEATHSIG, _PR_SET_NAME = 1, 15
_SOCKS, _SOCKS_CONNECT = 5, 1
_SOCKS_IPV4, _SOCKS_NAME, _SOCKS_IPV6 = 1, 3, 4
_GRANTED, _UNREACHABLE, _FORBIDDEN, _UNSUPPORTED = 0, 4, 2, 7

Connect = Callable[[str, int], socket.socket]


class HostRefused(Exception):
    """This host and port are not on the list."""


class Gate:
    """Decides about hosts by a list, and notes every decision once, as a line of JSON."""

    def __init__(self, hosts: Iterable[str], log_fd: int) -> None:
        self._rules = [_rule(host) for host in hosts]
        self._log_fd = log_fd
        self._noted: set[tuple[str, int]] = set()
        self._lock = threading.Lock()

    def connect(self, host: str, port: int) -> socket.socket:
        """A connection to a host on the list.

        Raises:
            HostRefused: It is not on the list, or its name leads back to this machine.
            OSError: It cannot be reached.
        """
        name = canonical(host)
        is_allowed = any(_matches(rule, name, port) for rule in self._rules)
        self._note(name, port, is_allowed=is_allowed)
        if not is_allowed:
            raise HostRefused(f"{name}:{port} is not on the allow-list")
        return _reach(name, port)

    def _note(self, host: str, port: int, *, is_allowed: bool) -> None:
        with self._lock:
            if (host, port) in self._noted or len(self._noted) >= _NOTES:
                return
            self._noted.add((host, port))
        line = {"egress": "allowed" if is_allowed else "denied", "host": host, "port": port}
        with contextlib.suppress(OSError):  # a full disk must not close the way out
            os.write(self._log_fd, json.dumps(line).encode() + b"\n")


def canonical(host: str) -> str:
    """Return the one spelling of a host; addresses have many (`0x7f.1`, `::ffff:127.0.0.1`)."""
    name = host.lower().rstrip(".").strip("[]")
    try:
        there = ipaddress.ip_address(name)
    except ValueError:
        try:
            return str(ipaddress.IPv4Address(socket.inet_aton(name)))
        except (OSError, ValueError):
            return name
    mapped = there.ipv4_mapped if isinstance(there, ipaddress.IPv6Address) else None
    return str(mapped or there)


def _rule(text: str) -> tuple[str, tuple[int, ...]]:
    host, colon, port = text.lower().rpartition(":")
    if colon and port.isdigit() and (":" not in host or host.endswith("]")):
        return canonical(host), (int(port),)
    return canonical(text), _WEB_PORTS


def _matches(rule: tuple[str, tuple[int, ...]], host: str, port: int) -> bool:
    pattern, ports = rule
    if port not in ports:
        return False
    if not pattern.startswith("*."):
        return host == pattern
    return host.endswith(pattern[1:]) and not _is_address(host)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _reach(host: str, port: int) -> socket.socket:
    """Connect; a name must not lead to this machine, where the user's own services listen."""
    failure: OSError = OSError(errno.EHOSTUNREACH, "no address")
    for family, kind, _, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        there = str(address[0])
        if host not in ("localhost", canonical(there)) and _leads_back(family, address):
            raise HostRefused(f"{host}:{port} resolves to {there}, an address of this machine")
        found = socket.socket(family, kind)
        try:
            found.settimeout(_CONNECT_S)
            found.connect(address)
            found.settimeout(None)
        except OSError as problem:
            failure = problem
            found.close()
        else:
            return found
    raise failure


_NEVER = tuple(
    ipaddress.ip_network(text)
    for text in (
        *("0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "192.0.0.0/24", "224.0.0.0/4"),
        *("240.0.0.0/4", "100.100.100.200/32", "168.63.129.16/32"),
        *("::/128", "::1/128", "100::/64", "fe80::/10", "fec0::/10", "ff00::/8", "fd00:ec2::/32"),
    )
)
"""Nobody's address in a network: this machine, its link, many at once, what is reserved, and the
services by which clouds hand out credentials. Private networks are not here: a company's own
hosts live there, and the user named them. Python's own classes differ from version to version."""

_CARRIERS = tuple(
    (ipaddress.IPv6Network(text), shift, mask)
    for text, shift, mask in (
        ("::/96", 0, 0),
        ("::ffff:0:0/96", 0, 0),
        ("::ffff:0:0:0/96", 0, 0),
        ("64:ff9b::/96", 0, 0),
        ("64:ff9b:1::/48", 0, 0),
        ("2002::/16", 80, 0),
        ("2001::/32", 0, 0xFFFFFFFF),
    )
)
"""IPv6 networks whose addresses carry one of IPv4 (mapped, translated, 6to4, Teredo): how far from
the right it lies, and what flips it."""
_ISATAP = (0x00005EFE, 0x02005EFE)


def leads_astray(text: str) -> bool:
    """Return whether an address means this machine or nobody's host, in any of its disguises."""
    there = ipaddress.ip_address(text.partition("%")[0])
    return any(each in network for each in _meanings(there) for network in _NEVER)


def _meanings(
    there: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> Iterable[ipaddress.IPv4Address | ipaddress.IPv6Address]:
    yield there
    if isinstance(there, ipaddress.IPv4Address):
        return
    number = int(there)
    for network, shift, mask in _CARRIERS:
        if there in network:
            yield ipaddress.IPv4Address((number >> shift & 0xFFFFFFFF) ^ mask)
    if number >> 32 & 0xFFFFFFFF in _ISATAP:
        yield ipaddress.IPv4Address(number & 0xFFFFFFFF)


def _leads_back(family: int, address: tuple[Any, ...]) -> bool:
    """Return whether an address that a name led to is this machine's own, or nobody's."""
    if leads_astray(str(address[0])):
        return True
    # The kernel answers an address of this machine from that same address. No packet is sent.
    with socket.socket(family, socket.SOCK_DGRAM) as probe, contextlib.suppress(OSError):
        probe.connect(address)
        return bool(probe.getsockname()[0] == address[0])
    return False


def serve(listener: socket.socket, handle: Callable[[socket.socket], None]) -> None:
    """Handle every connection in a thread of its own; never returns while the listener lives."""
    free = threading.BoundedSemaphore(_CONNECTIONS)

    def one(client: socket.socket) -> None:
        try:
            with client:
                handle(client)
        except (OSError, ValueError):
            pass  # whoever is at the other end sees the connection close
        finally:
            free.release()

    while True:
        free.acquire()
        client, _ = listener.accept()
        threading.Thread(target=one, args=(client,), daemon=True).start()


def answer(client: socket.socket, connect: Connect) -> None:
    """Serve one client of the proxy, whichever of its languages it speaks."""
    if client.recv(1, socket.MSG_PEEK) == bytes([_SOCKS]):
        _answer_socks(client, connect)
    else:
        _answer_http(client, connect)


def _answer_http(client: socket.socket, connect: Connect) -> None:
    head, rest = _read_head(client)
    lines = head.split("\r\n")
    method, target, version = lines[0].split(" ", 2)
    try:
        if method == "CONNECT":
            host, port = _host_and_port(target, 443)
            with connect(host, port) as there:
                client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                there.sendall(rest)
                _relay(client, there)
            return
        authority, slash, path = target.removeprefix("http://").partition("/")
        host, port = _host_and_port(authority, 80)
        with connect(host, port) as there:
            kept = [line for line in lines[1:] if not _is_for_proxy(line)]
            request = [f"{method} {slash}{path} {version}" if slash else f"{method} / {version}"]
            request += [f"Host: {authority}", *kept, "Connection: close", "", ""]
            there.sendall("\r\n".join(request).encode("latin-1") + rest)
            _relay(client, there)
    except HostRefused as refusal:
        client.sendall(_page("403 Forbidden", str(refusal)))
    except OSError as problem:
        client.sendall(_page("502 Bad Gateway", f"{target} cannot be reached: {problem.strerror}"))


def _is_for_proxy(line: str) -> bool:
    name = line.partition(":")[0].strip().lower()
    return name in ("host", "connection") or name.startswith("proxy-")


def _page(status: str, text: str) -> bytes:
    body = f"plait: {text}\n".encode()
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode() + body


def _read_head(client: socket.socket) -> tuple[str, bytes]:
    data = b""
    while b"\r\n\r\n" not in data:
        more = client.recv(_CHUNK)
        if not more or len(data) > _HEAD:
            raise ValueError("no request")
        data += more
    head, _, rest = data.partition(b"\r\n\r\n")
    return head.decode("latin-1"), rest


def _host_and_port(text: str, default: int) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        host, port = text, str(default)
    return host.strip("[]"), int(port)


def _answer_socks(client: socket.socket, connect: Connect) -> None:
    _, methods = _exactly(client, 2)
    _exactly(client, methods)
    client.sendall(bytes([_SOCKS, 0]))
    _, command, _, kind = _exactly(client, 4)
    if kind == _SOCKS_NAME:
        host = _exactly(client, _exactly(client, 1)[0]).decode("ascii")
    else:
        size = {_SOCKS_IPV4: 4, _SOCKS_IPV6: 16}.get(kind, 0)
        host = str(ipaddress.ip_address(_exactly(client, size)))
    port = int.from_bytes(_exactly(client, 2), "big")
    if command != _SOCKS_CONNECT:
        client.sendall(_socks_reply(_UNSUPPORTED))
        return
    try:
        there = connect(host, port)
    except HostRefused:
        client.sendall(_socks_reply(_FORBIDDEN))
    except OSError:
        client.sendall(_socks_reply(_UNREACHABLE))
    else:
        with there:
            client.sendall(_socks_reply(_GRANTED))
            _relay(client, there)


def _socks_reply(code: int) -> bytes:
    return bytes([_SOCKS, code, 0, _SOCKS_IPV4]) + bytes(6)


def _exactly(client: socket.socket, size: int) -> bytes:
    data = client.recv(size, socket.MSG_WAITALL)
    if len(data) != size:
        raise ValueError("the client left")
    return data


def _relay(one: socket.socket, other: socket.socket) -> None:
    """Pass bytes both ways until both have said all they had to say.

    Each way has a thread: neither may wait for the other, or two that only send would stop both.
    """
    back = threading.Thread(target=_pass, args=(other, one), daemon=True)
    back.start()
    _pass(one, other)
    back.join()


def _pass(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(_CHUNK):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def forward(path: str) -> Callable[[socket.socket], None]:
    """Return the forwarder's answer to each connection inside."""

    def pass_on(client: socket.socket) -> None:
        with socket.socket(socket.AF_UNIX) as proxy:
            proxy.connect(path)
            _relay(client, proxy)

    return pass_on


def _bound(place: int, name: str) -> socket.socket:
    """Return a socket of that name in an open folder, in place of one that is there."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name, dir_fd=place)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"/proc/self/fd/{place}/{name}")  # the real path may be too long to bind
    listener.listen(_CONNECTIONS)
    return listener


def around(folder: str, hosts: Sequence[str]) -> None:
    """Leave a proxy behind that ends with this process, whatever it becomes."""
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    listener = _bound(place, SOCKET_NAME)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    log_fd = os.open(LOG_NAME, flags, 0o600, dir_fd=place)
    os.close(place)

    def help_on() -> None:
        gate = Gate(hosts, log_fd)
        serve(listener, lambda client: answer(client, gate.connect))

    _leave_behind(help_on, keep=(listener.fileno(), log_fd))
    listener.close()
    os.close(log_fd)


def inside(path: str) -> None:
    """Leave a forwarder behind; without a proxy outside there is no network, and that is all."""
    if not os.path.exists(path):  # noqa: PTH110 - pathlib costs 5 ms of imports
        return
    listener = socket.create_server(("127.0.0.1", PORT), backlog=_CONNECTIONS)
    _leave_behind(lambda: serve(listener, forward(path)), keep=(listener.fileno(),))
    listener.close()


def admit(folder: str, port: int) -> None:
    """Leave one behind that listens on a port here, and gives who comes to those who wait inside.

    Raises:
        OSError: Somebody else listens there.
    """
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    inner = _bound(place, INLET_NAME)
    os.close(place)
    outer = [socket.create_server(("127.0.0.1", port), backlog=_CONNECTIONS)]
    if socket.has_ipv6:
        with contextlib.suppress(OSError):  # a machine without IPv6 has nobody there
            there = socket.socket(socket.AF_INET6)
            there.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            there.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            there.bind(("::1", port))
            there.listen(_CONNECTIONS)
            outer.append(there)
    every = (inner, *outer)
    _leave_behind(lambda: _admit(inner, outer), keep=tuple(each.fileno() for each in every))
    for each in every:
        each.close()


def _admit(inner: socket.socket, outer: Sequence[socket.socket]) -> None:
    waiting: queue.Queue[socket.socket] = queue.Queue(_CONNECTIONS)

    def wait() -> None:
        while True:
            one, _ = inner.accept()
            try:
                waiting.put_nowait(one)
            except queue.Full:
                one.close()

    def bring(client: socket.socket) -> None:
        with _awake(waiting) as one:
            _relay(client, one)

    threading.Thread(target=wait, daemon=True).start()
    for there in outer[1:]:
        threading.Thread(target=serve, args=(there, bring), daemon=True).start()
    serve(outer[0], bring)


def _awake(waiting: queue.Queue[socket.socket]) -> socket.socket:
    """Return a connection from inside that learns that somebody comes.

    Raises:
        OSError: Nobody waits there any more.
    """
    while True:
        try:
            one = waiting.get(timeout=_WAKING_S)
        except queue.Empty:
            raise OSError(errno.ECONNREFUSED, "nothing listens inside") from None
        try:
            one.sendall(_COMES)
        except OSError:  # it has gone since
            one.close()
        else:
            return one


def receive(path: str, port: int) -> None:
    """Leave one behind that waits at the socket, and brings who comes to a port of the loopback.

    Without a socket there nobody can come, and that is all.
    """
    if os.path.exists(path):  # noqa: PTH110 - pathlib costs 5 ms of imports
        _leave_behind(lambda: _receive(path, port), keep=())


def _receive(path: str, port: int) -> None:
    free = threading.BoundedSemaphore(_CONNECTIONS)

    def wait() -> None:
        while True:
            one = socket.socket(socket.AF_UNIX)
            one.connect(path)
            if one.recv(1) != _COMES:
                os._exit(0)  # the one outside has gone
            free.acquire()
            threading.Thread(target=bring, args=(one,), daemon=True).start()

    def bring(one: socket.socket) -> None:
        try:
            with one, _loopback(port) as program:
                _relay(one, program)
        except OSError:
            pass  # nobody listens yet: whoever came sees the connection close
        finally:
            free.release()

    for _ in range(_WAITING - 1):
        threading.Thread(target=wait, daemon=True).start()
    wait()


def _loopback(port: int) -> socket.socket:
    """Return a connection to who listens on a port of the loopback, by IPv4 or IPv6."""
    try:
        return socket.create_connection(("127.0.0.1", port), timeout=None)
    except OSError:
        return socket.create_connection(("::1", port), timeout=None)


def _leave_behind(work: Callable[[], None], keep: tuple[int, ...]) -> None:
    """A helper that holds none of the agent's pipes, ignores what ends agents, and dies with it."""
    parent = os.getpid()
    if os.fork():
        return
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    libc.prctl(_PR_SET_NAME, b"plait-egress", 0, 0, 0)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nowhere, fd)
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - the same imports
        if int(name) not in (0, 1, 2, *keep):
            with contextlib.suppress(OSError):
                os.close(int(name))
    try:
        if os.getppid() == parent:
            work()
    finally:
        os._exit(0)


def main(arguments: Sequence[str]) -> int:
    """`ROLE PLACE HOST-OR-PORT… -- PROGRAM …`; see above.

    Returns:
        126 when the helper could not be started, 127 when the program could not be executed.
    """
    end = arguments.index("--")
    role, place, *more = arguments[:end]
    program = list(arguments[end + 1 :])
    try:
        if role == "around":
            around(place, more)
        elif role == "inside":
            inside(place)
        else:
            (admit if role == "admit" else receive)(place, int(more[0]))
    except OSError as problem:
        print(f"egress: {problem}", file=sys.stderr)
        return 126
    try:
        os.execvp(program[0], program)  # noqa: S606 - to become the program is the purpose
    except OSError as problem:
        print(f"egress: {program[0]}: {problem}", file=sys.stderr)
    return 127


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
