"""Landlock, the kernel's file fence for a process that gives up rights: binding and launcher.

Standard library only, so that the keeper can use it and `python -I -S landlock.py run …` can stand
before any program. It knows how to restrict the calling process; which paths, others decide.

Landlock does not see a connection to a unix socket that lies in a folder, nor UDP, nor calls that
change another process. A filter of system calls closes these; what it says, others decide too.
"""

import ctypes
import errno
import os
import struct
import sys
from collections.abc import Iterable, Sequence

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_RULE_PATH_BENEATH = 1
_PR_SET_NO_NEW_PRIVS, _PR_CAPBSET_DROP, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 38, 24, 47, 4
_CAPABILITY_VERSION_3 = 0x20080522

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_CHAR, _MAKE_BLOCK = 1 << 6, 1 << 11
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_FIRST_RIGHTS = (1 << 13) - 1
_LATER_RIGHTS = ((2, _REFER), (3, _TRUNCATE), (5, _IOCTL_DEV))
_ON_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_READING = _EXECUTE | _READ_FILE | _READ_DIR
# Whoever may make a device node reads the raw disk: never part of "may write here".
_DEVICE_NODES = _MAKE_CHAR | _MAKE_BLOCK

_SCOPE_ABI, _SCOPE_SIZE, _FIRST_SIZE = 6, 24, 8
_SCOPE_ABSTRACT_SOCKETS, _SCOPE_SIGNALS = 1, 2

_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2
_INSTRUCTION_BYTES = 8

_libc = ctypes.CDLL(None, use_errno=True)


def abi() -> int:
    """The kernel's Landlock version; 0 where there is none."""
    got: int = _libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    return max(got, 0)


def restrict(
    rules: Iterable[tuple[str, str]], *, is_scoped: bool = False, seccomp: bytes = b""
) -> None:
    """Take from this process, forever, every file that no rule names.

    Capabilities go too when files are fenced: root could otherwise undo the fence from elsewhere.

    Args:
        rules: `(path, access)` with access `ro` or `rw`; a path that does not exist is passed over.
            Without any rule files are left alone.
        is_scoped: Also forbid abstract unix sockets and signals to processes outside. Mounting
            stays possible where no files are fenced, so this alone can stand before bubblewrap.
        seccomp: A filter of system calls, as the kernel wants it; empty for none.

    Raises:
        OSError: The kernel cannot do what is asked; the process is not to go on.
    """
    fence = tuple(rules)
    if fence or is_scoped:
        _restrict_files(fence, is_scoped=is_scoped)
    if seccomp:
        load_filter(seccomp)


def _restrict_files(fence: tuple[tuple[str, str], ...], *, is_scoped: bool) -> None:
    version, needed = abi(), _SCOPE_ABI if is_scoped else 1
    if version < needed:
        raise OSError(errno.ENOSYS, f"Landlock ABI {needed} is needed, this kernel has {version}")
    handled = _rights(version) if fence else 0
    scoped = (_SCOPE_ABSTRACT_SOCKETS | _SCOPE_SIGNALS) if is_scoped else 0
    attributes = struct.pack("=QQQ", handled, 0, scoped)
    size = _SCOPE_SIZE if is_scoped else _FIRST_SIZE
    ruleset = _checked(_libc.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(size), 0))
    try:
        for path, access in fence:
            _allow(ruleset, path, handled & ~_DEVICE_NODES if access == "rw" else _READING)
        _checked(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        if fence:
            drop_capabilities()
        _checked(_libc.syscall(_RESTRICT_SELF, ruleset, 0))
    finally:
        os.close(ruleset)


def load_filter(program: bytes) -> None:
    """Let every system call of this process pass through a filter, forever.

    Raises:
        OSError: The kernel does not take it.
    """
    code = ctypes.create_string_buffer(program)
    length = len(program) // _INSTRUCTION_BYTES
    header = struct.pack("@HP", length, ctypes.addressof(code))
    _checked(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    _checked(_libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, header, 0, 0))


def drop_capabilities() -> None:
    """Give up every capability, also for programs executed later; nothing happens without any."""
    _checked(_libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0))
    number = 0
    while _libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0) == 0:
        number += 1
    header = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0)
    _checked(_libc.capset(header, bytes(24)))


def _rights(version: int) -> int:
    """Every file right that this version of the kernel knows."""
    rights = _FIRST_RIGHTS
    for since, right in _LATER_RIGHTS:
        if version >= since:
            rights |= right
    return rights


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        there = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return
    try:
        if not os.path.isdir(path):  # noqa: PTH112 - pathlib would cost the keeper 5 ms of imports
            rights &= _ON_FILES
        beneath = struct.pack("=Qi", rights, there)
        _checked(_libc.syscall(_ADD_RULE, ruleset, _RULE_PATH_BENEATH, beneath, 0))
    finally:
        os.close(there)


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def main(arguments: Sequence[str]) -> int:
    """`abi` prints the version; `run [--scoped] [--seccomp=HEX] {ro|rw} PATH … -- PROGRAM …` runs.

    Returns:
        126 when the fence could not be put up, 127 when the program could not be executed.
    """
    if list(arguments) == ["abi"]:
        print(abi())
        return 0
    end = arguments.index("--")
    pairs = list(arguments[1:end])
    is_scoped = "--scoped" in pairs
    seccomp = next((word[10:] for word in pairs if word.startswith("--seccomp=")), "")
    pairs = [word for word in pairs if not word.startswith("--")]
    rules = list(zip(pairs[1::2], pairs[0::2], strict=True))
    program = list(arguments[end + 1 :])
    os.get_exec_path()  # imports `warnings`, which may lie behind the fence in a moment
    try:
        restrict(rules, is_scoped=is_scoped, seccomp=bytes.fromhex(seccomp))
    except OSError as problem:
        print(f"landlock: {problem}", file=sys.stderr)
        return 126
    try:
        os.execvp(program[0], program)  # noqa: S606 - to become the program is the purpose
    except OSError as problem:
        print(f"landlock: {program[0]}: {problem}", file=sys.stderr)
    return 127


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
