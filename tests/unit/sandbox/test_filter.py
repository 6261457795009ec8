"""The filter of system calls, run by a small interpreter for machines that are not this one."""

import errno
import struct

import pytest

from engine.keeper.landlock import _FAMILIES, _filter

X86, I386, ARM, ARM32, OTHER = 0xC000003E, 0x40000003, 0xC00000B7, 0x40000028, 0x1234
ALLOWED, REFUSED, UNKNOWN = "allowed", "refused", "unknown"


def judge(machine: str, sockets: str, architecture: int, *numbers: int) -> str:
    """What the kernel would do with one system call."""
    program = list(struct.iter_unpack("=HBBI", _filter(machine, _FAMILIES[sockets])))
    call, first = (*numbers, 0)[:2]
    data = struct.pack("=IIQQ", call, architecture, 0, first)
    place, loaded = 0, 0
    while True:
        code, then, other, number = program[place]
        place += 1
        if code == 0x20:
            (loaded,) = struct.unpack_from("=I", data, number)
        elif code == 0x06:
            names = {0x7FFF0000: ALLOWED, 0x50000 | errno.EACCES: REFUSED}
            return names.get(number, UNKNOWN)
        else:
            is_so = loaded == number if code == 0x15 else loaded >= number
            place += then if is_so else other


@pytest.mark.parametrize("machine", [("x86_64", X86, 41), ("aarch64", ARM, 198)])
@pytest.mark.parametrize("sockets", ["ordinary", "network", "none"])
@pytest.mark.parametrize("family", [0, 1, 2, 3, 10, 16, 17, 38, 40, 2**31])
def test_a_socket_is_made_only_of_the_families_named(
    machine: tuple[str, int, int], sockets: str, family: int
):
    name, native, call = machine
    expected = ALLOWED if family in _FAMILIES[sockets] else REFUSED
    assert judge(name, sockets, native, call, family) == expected


@pytest.mark.parametrize(("machine", "native"), [("x86_64", X86), ("aarch64", ARM)])
def test_other_calls_pass_and_rings_seem_not_to_exist(machine: str, native: int):
    assert judge(machine, "none", native, 0) == ALLOWED
    assert judge(machine, "none", native, 53 if machine == "x86_64" else 199) == ALLOWED
    keyrings = (248, 249, 250) if machine == "x86_64" else (217, 218, 219)
    assert {judge(machine, "ordinary", native, call) for call in (425, *keyrings)} == {UNKNOWN}


@pytest.mark.parametrize(
    ("machine", "narrow", "calls"), [("x86_64", I386, (102, 359)), ("aarch64", ARM32, (102, 281))]
)
def test_programs_of_32_bits_run_without_sockets(machine: str, narrow: int, calls: tuple[int, int]):
    assert judge(machine, "ordinary", narrow, 4) == ALLOWED
    assert {judge(machine, "ordinary", narrow, call, 1) for call in calls} == {REFUSED}
    assert judge(machine, "ordinary", narrow, 425) == UNKNOWN


def test_foreign_architectures_and_numbers_are_refused():
    assert judge("x86_64", "ordinary", OTHER, 0) == REFUSED
    assert judge("x86_64", "ordinary", X86, 0x40000000 | 41, 2) == REFUSED
    assert judge("riscv64", "ordinary", 0, 0) == REFUSED


def test_a_machine_that_is_not_known_is_refused_by_name():
    with pytest.raises(OSError, match="vax"):
        _filter("vax", (1,))
