"""The list of the way out: which hosts it lets through, and what it makes of odd requests."""

import contextlib
import ipaddress
import json
import os
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from engine.keeper.egress import Gate, HostRefused, answer, leads_astray


def own_address() -> str:
    """An address of this machine that other machines reach it by."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # nothing is sent
        except OSError:
            pytest.skip("this machine has no address but the loopback (connect it to a network)")
        return str(probe.getsockname()[0])


@pytest.fixture
def log() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    yield reading, writing
    os.close(reading)
    os.close(writing)


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """No name leads anywhere, so that what is allowed is seen by another error."""

    def find(*_: Any, **__: Any) -> list[Any]:
        return []

    monkeypatch.setattr(socket, "getaddrinfo", find)


@pytest.mark.usefixtures("nowhere")
@pytest.mark.parametrize(
    "case",
    [
        "example.org lets through example.org 443",
        "example.org lets through EXAMPLE.org. 80",
        "example.org stops example.org 22",
        "example.org:22 lets through example.org 22",
        "example.org:22 stops example.org 443",
        "example.org stops sub.example.org 443",
        "example.org stops evilexample.org 443",
        "*.example.org lets through a.b.example.org 443",
        "*.example.org stops example.org 443",
        "*.example.org stops evilexample.org 443",
        "10.0.0.1:5 lets through 10.0.0.1 5",
        "10.0.0.1 stops 10.0.0.2 80",
        "[2001:db8::1]:5 lets through 2001:db8::1 5",
        "2001:db8::1 lets through 2001:db8::1 443",
        "10.0.0.1 lets through 0xa.1 80",
        "10.0.0.1 lets through ::ffff:10.0.0.1 80",
        "example.org stops 2130706433 443",
        "*.1 stops 127.0.0.1 80",
    ],
)
def test_a_rule_allows_a_host_and_its_ports(log: tuple[int, int], case: str):
    rule, *words, host, port = case.split()
    is_allowed = words == ["lets", "through"]
    gate = Gate([rule], log[1])
    with pytest.raises(OSError if is_allowed else HostRefused):
        gate.connect(host, int(port))
    noted = json.loads(os.read(log[0], 4096))
    assert noted["egress"] == ("allowed" if is_allowed else "denied")


V4_ASTRAY = ("127.0.0.1", "127.255.0.9", "169.254.169.254", "0.0.0.0", "224.0.0.1")  # noqa: S104
V4_FINE = ("93.184.215.14", "10.1.2.3", "192.168.7.7", "172.16.0.1", "100.64.0.1")
DISGUISES = (
    "{}",
    "::ffff:{}",
    "::{}",
    "::ffff:0:{}",
    "64:ff9b::{}",
    "64:ff9b:1::{}",
    "2002:{hex}::1",
    "2001:0:{fine}:0:0:{flipped}",
    "2001:db8::5efe:{}",
    "2001:db8::200:5efe:{}",
)


def disguised(how: str, address: str) -> str:
    number = int(ipaddress.IPv4Address(address))

    def halves(value: int) -> str:
        return f"{value >> 16:x}:{value & 0xFFFF:x}"

    flipped, fine = halves(number ^ 0xFFFFFFFF), halves(0x5DB8D70E)
    return how.format(address, hex=halves(number), flipped=flipped, fine=fine)


@pytest.mark.parametrize("how", DISGUISES)
def test_an_address_is_seen_through_each_disguise(how: str):
    assert [leads_astray(disguised(how, each)) for each in V4_ASTRAY] == [True] * len(V4_ASTRAY)
    assert [leads_astray(disguised(how, each)) for each in V4_FINE] == [False] * len(V4_FINE)


@pytest.mark.parametrize(
    ("address", "is_astray"),
    [
        *((each, True) for each in ("::", "::1", "fe80::1%1", "ff02::1", "fd00:ec2::254")),
        *((each, True) for each in ("255.255.255.255", "168.63.129.16", "100.100.100.200")),
        *((each, False) for each in ("2606:4700::1111", "fd12:3456::1", "2001:db8::1")),
    ],
)
def test_each_class_of_address_is_known_on_every_python(address: str, *, is_astray: bool):
    assert leads_astray(address) is is_astray


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "169.254.169.254", "0.0.0.0", "::1", "::ffff:127.0.0.1", "own"],  # noqa: S104
)
def test_an_allowed_name_does_not_lead_back_to_this_machine(
    log: tuple[int, int], monkeypatch: pytest.MonkeyPatch, address: str
):
    if address == "own":
        address = own_address()
    family = socket.AF_INET6 if ":" in address else socket.AF_INET

    def find(*_: Any, **__: Any) -> list[Any]:
        return [(family, socket.SOCK_STREAM, 0, "", (address, 443))]

    monkeypatch.setattr(socket, "getaddrinfo", find)
    with pytest.raises(HostRefused, match="resolves to"):
        Gate(["example.org"], log[1]).connect("example.org", 443)


@pytest.mark.usefixtures("nowhere")
def test_a_decision_is_noted_once(log: tuple[int, int]):
    gate = Gate([], log[1])
    for port in (1, 1, 2):
        with pytest.raises(HostRefused):
            gate.connect("example.org", port)
    assert len(os.read(log[0], 4096).splitlines()) == 2


@pytest.mark.parametrize(
    ("said", "beginning"),
    [
        (b"CONNECT example.org:443 HTTP/1.1\r\n\r\n", b"HTTP/1.1 403"),
        (b"GET http://[::1]/ HTTP/1.1\r\n\r\n", b"HTTP/1.1 403"),
        (b"GET http://example.org HTTP/1.1\r\nHost: x\r\n\r\n", b"HTTP/1.1 403"),
        (b"\x05\x01\x00\x05\x01\x00\x03\x03a.b\x00\x50", b"\x05\x00\x05\x02"),
        (b"\x05\x01\x00\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x50", b"\x05\x00\x05\x02"),
        (b"\x05\x01\x00\x05\x03\x00\x01\x7f\x00\x00\x01\x00\x50", b"\x05\x00\x05\x07"),
        (b"\x05\x01\x00\x05\x01\x00\x09", b"\x05\x00"),
        (b"\x05", b""),
        (b"no request at all\r\n\r\n", b"HTTP/1.1 403"),
        (b"no request\r\n\r\n", b""),
        (b"CONNECT example.org:port HTTP/1.1\r\n\r\n", b""),
        (b"x" * 100_000, b""),
        (b"", b""),
    ],
)
def test_whatever_is_said_gets_a_refusal_or_nothing(
    log: tuple[int, int], said: bytes, beginning: bytes
):
    ours, theirs = socket.socketpair()
    gate = Gate([], log[1])

    def serve() -> None:
        with theirs, contextlib.suppress(OSError, ValueError):
            answer(theirs, gate.connect)

    worker = threading.Thread(target=serve)
    worker.start()
    with ours:
        with contextlib.suppress(OSError):  # it leaves in the middle of too long a request
            ours.sendall(said)
            ours.shutdown(socket.SHUT_WR)
        heard = _all(ours)
    worker.join(30)
    assert not worker.is_alive()
    assert heard.startswith(beginning)
    assert bool(heard) is bool(beginning)


def _all(client: socket.socket) -> bytes:
    heard = b""
    with contextlib.suppress(OSError):
        while more := client.recv(4096):
            heard += more
    return heard
