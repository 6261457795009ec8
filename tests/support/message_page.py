"""Gather every message from the source; `python -m tests.support.message_page` writes the page.

A message is a text of several words in a module of the engine or the console. The page leaves out
what only a program reads, by its shape or its place: SQL, code, patterns, commands, annotations,
names in tables. It also leaves out the words of assertions. A gap that is filled at run time stands
as the name of what fills it.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from engine.merge.ideas import DOUBTED
from engine.merge.shares import GUESSED, SHARES

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/messages.md"
_HEAD = """# Messages

Every message that plait shows: on the screen, in the shell, to agents, in commits and in git's
logs. The page is made from the source, so change a message there. `{name}` is filled in at run
time, and `{name2}` with another value. Single words are not listed. The [keys](keys.md) and the
[manifest](pipeline.md) have pages of their own.
"""
ROOMS = ("engine", "tui")
ON_A_PAGE = {
    "engine/spec/reference.py",  # docs/pipeline.md
    "tui/keys/table.py",  # docs/keys.md
    "tui/keys/ideas.py",
    "tui/commands/completing.py",  # the manual page and the shells' completions
    "engine/plan/starter.py",  # what `plait init` writes
}
DATA = {"engine/merge/shares.py"}  # a table of learned rates, by the names of proposals
ASSERTED = {"engine/core/invariants.py"}  # only tests and a recovery check these
NAMES = {key.partition(",")[0] for key in (*SHARES, *GUESSED)} | {
    DOUBTED,
    "remembered well",  # a kind of proposal
    "own merge",  # a lock
    "notice bell",  # how a program is asked to notify
}
"""Names of several words that stand in tables and files, never on a screen."""
SIMULATED = ("engine/testing/", "tui/demo/")
_TO_A_MACHINE = {
    *("compile", "cast", "TypeVar", "execute", "executemany", "split", "strptime"),
    *("startswith", "endswith", "removeprefix", "removesuffix", "partition", "rpartition"),
    "AssertionError",
}
_CODE = re.compile(
    r"\\[bdsw.]|exec 9<|-- %f|^bool \||\(\?|\[\^|%\(|\$\(|\$g|=\"|->|2>|<svg|:://|\.\*|\|\w+\||"
    r"^[A-Z]+ \d|^(SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|FROM|HTTP|GET)\b|"
    r"^\s*(import sys|import socket|trap '|echo [a-z]+;|for i in|exec \"|cat /|tty=|command -v|"
    r"Connection:|user\.name)|\) VALUES|\bIS NULL|\(SELECT\b|"
    r"^(git|npm|uv|git-lfs|poetry|pipenv) [\w-]+( [-@\w./+=]+)*$|"
    r"^[A-Z]\w+(\[.*\])? \| |^str \||^\[core\]|^\[extensions\]|^\(\w+ "
)
_NAMES = re.compile(r"[A-Z]\w+( [A-Z]\w+)+( \w+)*|[a-z]+_\w+( \w+)+|([a-z]+_\w+ )+\w+")
_MODULE = re.compile(r"engine\.\w+\.")
_KEY = r"(?:ctrl\+\w+|insert|delete|\S)"
_KEYS = re.compile(rf"(?=.*ctrl){_KEY}( {_KEY})+")
_WORD = re.compile(r"(?<![\w./\-{<$%])[A-Za-z][a-z']+(?![\w/(=}])")
_FEWEST_WORDS = 2


@cache
def messages_in(path: Path) -> tuple[str, ...]:
    """Return the messages of a file; more than one test asks for them."""
    return tuple(messages(path.read_text()))


def messages(source: str) -> Iterator[str]:
    """Yield the messages of a module, in the order of its lines."""
    tree = ast.parse(source)
    silent = set(_silent(tree))
    found = [
        (node.lineno, node.col_offset, node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant | ast.JoinedStr) and node not in silent
    ]
    for _, _, node in sorted(found, key=lambda each: each[:2]):
        text = said(node)
        if is_message(text):
            yield text


def said(node: ast.expr) -> str:
    """Return the text of a string, with a name for each of its gaps."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr():
            known: dict[str, list[str]] = {}
            return "".join(
                _gap(part, known) if isinstance(part, ast.FormattedValue) else said(part)
                for part in node.values
            )
        case _:
            return ""


def _gap(part: ast.FormattedValue, known: dict[str, list[str]]) -> str:
    """Return the name of a gap: another value has another name."""
    name, value = _name(part.value), ast.dump(part.value)
    values = known.setdefault(name, [])
    if value not in values:
        values.append(value)
    number = values.index(value) + 1
    return f"{{{name}{number if number > 1 else ''}}}"


def is_message(text: str) -> bool:
    """Tell a message from names, patterns and commands."""
    if text in NAMES or _CODE.search(text) or _NAMES.fullmatch(text) or _KEYS.fullmatch(text):
        return False
    return " " in text and len(_WORD.findall(text)) >= _FEWEST_WORDS


def _silent(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the strings that are no message by their place."""
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant() as text) | ast.keyword(arg="key", value=text):
                yield text
            case ast.JoinedStr():
                yield from (part for part in ast.walk(node) if part is not node)
            case ast.Compare(left=left, comparators=others):
                yield from (left, *others)
            case _:
                yield from (part for each in _to_a_machine(node) for part in ast.walk(each))


def _to_a_machine(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a program that hold no message."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Attribute(attr="cache"))):
            yield from node.args
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)) if name in _TO_A_MACHINE:
            yield from node.args
        case ast.Dict(keys=[ast.Constant(value=str(module)), *_]) if _MODULE.match(module):
            yield node
        case ast.AnnAssign(annotation=ast.expr() as part) | ast.arg(annotation=ast.expr() as part):
            yield part
        case ast.FunctionDef(returns=ast.expr() as part):
            yield part
        case ast.AsyncFunctionDef(returns=ast.expr() as part):
            yield part
        case ast.Assert(msg=ast.expr() as part):
            yield part
        case _:
            pass


def _name(value: ast.expr) -> str:
    """Return a name for what fills a gap."""
    match value:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.strip("_")
        case ast.Call(args=[first, *_]) if (name := _name(first)) != "…":
            return name
        case ast.Call(func=func):
            return _name(func)
        case ast.Subscript(value=of):
            return _name(of)
        case _:
            return "…"


def modules() -> Iterator[Path]:
    """Yield every module that can hold messages."""
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if name not in ON_A_PAGE | DATA | ASSERTED and not name.startswith(SIMULATED):
                yield path


def message_page() -> str:
    """Return the whole page."""
    parts = [_HEAD]
    room = ""
    for path in modules():
        name = path.relative_to(ROOT).as_posix()
        lines = [text.strip().replace("\n", " ⏎ ") for text in messages_in(path)]
        if not lines:
            continue
        if room != (room := path.parent.relative_to(ROOT).as_posix()):
            parts.append(f"## {room}\n")
        parts.append(f"### `{name}`\n\n```text\n" + "\n".join(dict.fromkeys(lines)) + "\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(message_page())
