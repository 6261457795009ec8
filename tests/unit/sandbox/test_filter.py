"""The filter of system calls, run by a small interpreter for machines that are not this one."""

import errno
import struct

import pytest

from engine.errors import MechanismMissing
from engine.sandbox.seccomp import FAMILIES, program

X86, I386, ARM, ARM32, OTHER = 0xC000003E, 0x40000003, 0xC00000B7, 0x40000028, 0x1234
ALLOWED, REFUSED, DENIED, UNKNOWN = "allowed", "refused", "denied", "unknown"
ANSWERS = {
    0x7FFF0000: ALLOWED,
    0x50000 | errno.EACCES: REFUSED,
    0x50000 | errno.EPERM: DENIED,
    0x50000 | errno.ENOSYS: UNKNOWN,
}
NATIVE = [("x86_64", X86), ("aarch64", ARM)]
EVERY = [*NATIVE, ("x86_64", I386), ("aarch64", ARM32), ("riscv64", 0xC00000F3)]
NUMBERS = {
    X86: {"prlimit64": 302, "sched_setaffinity": 203, "setpriority": 141, "ioprio_set": 251},
    I386: {"prlimit64": 340, "sched_setaffinity": 241, "setpriority": 97, "ioprio_set": 289},
    ARM: {"prlimit64": 261, "sched_setaffinity": 122, "setpriority": 140, "ioprio_set": 30},
    ARM32: {"prlimit64": 369, "sched_setaffinity": 241, "setpriority": 97, "ioprio_set": 314},
    0xC00000F3: {"prlimit64": 261, "sched_setaffinity": 122, "setpriority": 140, "ioprio_set": 30},
}
IOCTL = {X86: 16, I386: 54, ARM: 29, ARM32: 54, 0xC00000F3: 29}


def judge(
    machine: str, sockets: str, architecture: int, *numbers: int, among_others: bool = True
) -> str:
    """Return what the kernel would do with one system call."""
    code = program(machine, sockets, is_among_others=among_others)
    lines = list(struct.iter_unpack("=HBBI", code))
    call, *arguments = (*numbers, 0, 0, 0, 0, 0, 0)[:7]
    data = struct.pack("=IIQ6Q", call, architecture, 0, *arguments)
    place, loaded = 0, 0
    while True:
        code_of, then, other, number = lines[place]
        place += 1
        if code_of == 0x20:
            (loaded,) = struct.unpack_from("=I", data, number)
        elif code_of == 0x06:
            return ANSWERS[number]
        else:
            is_so = loaded == number if code_of == 0x15 else loaded >= number
            place += then if is_so else other


@pytest.mark.parametrize("machine", [("x86_64", X86, 41), ("aarch64", ARM, 198)])
@pytest.mark.parametrize("sockets", ["ordinary", "network", "none"])
@pytest.mark.parametrize("family", [0, 1, 2, 3, 10, 16, 17, 38, 40, 2**31])
def test_a_socket_is_made_only_of_the_families_named(
    machine: tuple[str, int, int], sockets: str, family: int
):
    name, native, call = machine
    expected = ALLOWED if family in FAMILIES[sockets] else REFUSED
    assert judge(name, sockets, native, call, family) == expected


@pytest.mark.parametrize(("machine", "native"), NATIVE)
def test_other_calls_pass_and_rings_seem_not_to_exist(machine: str, native: int):
    assert judge(machine, "none", native, 0) == ALLOWED
    assert judge(machine, "none", native, 53 if machine == "x86_64" else 199) == ALLOWED
    keyrings = (248, 249, 250) if machine == "x86_64" else (217, 218, 219)
    rings = (425, 426, 427)
    assert {judge(machine, "ordinary", native, call) for call in (*rings, *keyrings)} == {UNKNOWN}


@pytest.mark.parametrize(
    ("machine", "narrow", "calls"), [("x86_64", I386, (102, 359)), ("aarch64", ARM32, (102, 281))]
)
def test_programs_of_32_bits_run_without_sockets(machine: str, narrow: int, calls: tuple[int, int]):
    assert judge(machine, "ordinary", narrow, 4) == ALLOWED
    assert {judge(machine, "ordinary", narrow, call, 1) for call in calls} == {REFUSED}
    assert judge(machine, "ordinary", narrow, 425) == UNKNOWN


@pytest.mark.parametrize(("machine", "architecture"), EVERY)
@pytest.mark.parametrize("is_alone", [True, False])
def test_only_the_caller_is_changed_where_process_ids_are_shared(
    machine: str, architecture: int, *, is_alone: bool
):
    def asked(name: str, *arguments: int) -> str:
        number = NUMBERS[architecture][name]
        words = (machine, "network", architecture, number, *arguments)
        return judge(*words, among_others=not is_alone)

    foreign = ALLOWED if is_alone else DENIED
    assert asked("prlimit64", 0, 1, 0x7F00) == ALLOWED
    assert asked("prlimit64", 42, 1, 0, 0x7F00) == ALLOWED  # it only reads
    assert asked("prlimit64", 42, 1, 0x7F00) == foreign
    assert asked("prlimit64", 42, 1, 0x7F00000000) == foreign
    assert asked("sched_setaffinity", 0, 8, 1) == ALLOWED
    assert asked("sched_setaffinity", 42, 8, 1) == foreign
    assert asked("setpriority", 0, 0, 10) == ALLOWED
    assert asked("setpriority", 0, 42, 10) == foreign
    assert asked("setpriority", 2, 0, 10) == foreign  # all of the user's
    assert asked("ioprio_set", 1, 0) == ALLOWED
    assert asked("ioprio_set", 1, 42) == foreign
    assert asked("ioprio_set", 3, 0) == foreign


@pytest.mark.parametrize(("machine", "architecture"), EVERY)
def test_nothing_is_typed_into_a_terminal(machine: str, architecture: int):
    call = IOCTL[architecture]
    assert judge(machine, "ordinary", architecture, call, 0, 0x5412) == DENIED
    assert judge(machine, "ordinary", architecture, call, 0, 0x541C) == DENIED
    # The kernel reads the lower half of a request alone.
    assert judge(machine, "ordinary", architecture, call, 0, 0x1_0000_5412) == DENIED
    assert judge(machine, "ordinary", architecture, call, 0, 0x5413) == ALLOWED


@pytest.mark.parametrize(("machine", "native"), NATIVE)
def test_a_process_of_ones_own_namespace_may_be_held_by_a_descriptor(machine: str, native: int):
    assert judge(machine, "ordinary", native, 434, 42) == UNKNOWN
    assert judge(machine, "ordinary", native, 434, 42, among_others=False) == ALLOWED


def test_foreign_architectures_and_numbers_are_refused():
    assert judge("x86_64", "ordinary", OTHER, 0) == REFUSED
    assert judge("x86_64", "ordinary", X86, 0x40000000 | 41, 2) == REFUSED
    assert judge("riscv64", "ordinary", 0, 0) == REFUSED


def test_a_machine_that_is_not_known_is_refused_by_name():
    with pytest.raises(MechanismMissing, match="vax"):
        program("vax", "ordinary", is_among_others=True)
