"""Run command lines in an engine, for shells that have loaded nothing but a socket.

The command is the one that a shell would run by itself, with the shell's words, folder and streams.
It hears from the engine what it would hear over the socket. Where the two would differ, the answer
is null, and the shell runs the command.
"""

import argparse
import os
from collections.abc import Mapping
from functools import cache
from itertools import groupby
from operator import itemgetter
from typing import Any, NoReturn, Protocol, cast

from anyio import to_thread

from engine.port.as_heard import AsHeard
from tui.commands import base
from tui.commands.quick import LOOKING, code_mark, environment_seen
from tui.commands.shells import HEARING, Shell

_OURS = code_mark()


class _Looks(Protocol):
    """The module of a command that only looks."""

    async def act(self, args: argparse.Namespace) -> int:
        """Do it; the exit code."""


class _NotHere(Exception):
    """The shell must run this command by itself."""


class _Parser(base.Parser):
    """A parser that prints nothing: a wrong word is for the shell to explain."""

    def error(self, message: str) -> NoReturn:
        raise _NotHere(message)

    def format_help(self) -> NoReturn:
        raise _NotHere(self.prog)


async def answered(port: AsHeard, request: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what a command says and its exit code; None where the shell must run it."""
    try:
        name, *words = request["words"]
        if not _is_like_ours(request) or name not in LOOKING:
            return None
        module, args = await to_thread.run_sync(_parsed, name, words)
    except _NotHere:
        return None
    args.repo = os.path.join(request["cwd"], args.repo)  # noqa: PTH118  as the shell has joined it
    is_quick = getattr(module, "is_quick", None)
    if args.repo != request["folder"] or not (is_quick is None or is_quick(args)):
        return None
    shell = Shell(
        port,
        has_lived=True,
        is_unicode=request["is_unicode"],
        is_colored=request["is_colored"],
    )
    code = await _run(module, args, shell)
    said = groupby(shell.said, key=itemgetter(0))
    return {"code": code, "said": [[way, "".join(text for _, text in each)] for way, each in said]}


def _is_like_ours(request: Mapping[str, Any]) -> bool:
    """Say if a shell has our code and an environment that reads as ours does."""
    is_our_code = request["code"] == _OURS == code_mark()
    return is_our_code and bool(request["environment"] == environment_seen(os.environ))


def _parsed(name: str, words: list[str]) -> tuple[_Looks, argparse.Namespace]:
    module, parser = _command(name)
    return module, parser.parse_args(words)


@cache
def _command(name: str) -> tuple[_Looks, base.Parser]:
    module, parser = base.parser_of(name, _Parser)
    return cast("_Looks", module), parser


async def _run(module: _Looks, args: argparse.Namespace, shell: Shell) -> int:
    before = HEARING.set(shell)
    try:
        return await module.act(args)
    except Exception as error:  # noqa: BLE001  an error is a sentence, as in `base.dispatch`
        return base.failed(error)
    finally:
        HEARING.reset(before)
