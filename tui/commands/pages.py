"""`plait completions` and `plait man`: shell completions and a manual page.

Both are made from the parsers of the commands, so that they know every option and nothing else.
"""

import argparse
from importlib.metadata import version

from tui.commands.base import EXIT_OK, parser_of, put
from tui.commands.completing import Described, Word, bash, fish, man_page, zsh
from tui.commands.names import COMMANDS

_SHELLS = {"bash": bash, "zsh": zsh, "fish": fish}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say for which shell."""
    if parser.get_default("command") == "completions":
        parser.add_argument("shell", choices=sorted(_SHELLS), metavar="bash|zsh|fish")


def run(args: argparse.Namespace) -> int:
    """Print it; nothing is installed."""
    commands = described()
    if args.command == "man":
        put(man_page(commands, version("plait")))
    else:
        put(_SHELLS[args.shell](commands))
    return EXIT_OK


def described() -> tuple[Described, ...]:
    """Every command as its own parser knows it."""
    return tuple(_described(name, summary) for name, summary in COMMANDS.items())


def _described(name: str, summary: str) -> Described:
    _, parser = parser_of(name)
    actions = parser._actions  # noqa: SLF001  argparse has no other list of them
    places = [_place(action) for action in actions if not action.option_strings]
    usage = " ".join([f"plait {name}", "[OPTION...]", *places])
    return Described(name, summary, usage, tuple(map(_word, actions)))


def _place(action: argparse.Action) -> str:
    """A place for words, as a usage line has it."""
    word = _word(action).value
    return {"?": f"[{word}]", "*": f"[{word}...]", "+": f"{word}..."}.get(str(action.nargs), word)


def _word(action: argparse.Action) -> Word:
    metavar = action.metavar or (action.dest if action.nargs != 0 else "")
    shown = metavar if isinstance(metavar, str) else " ".join(metavar)
    return Word(
        flags=tuple(action.option_strings),
        value=shown if action.nargs != 0 else "",
        choices=tuple(map(str, action.choices or ())),
        help=action.help or "",
    )
