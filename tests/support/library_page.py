"""Gather the library reference from the public names.

`python -m tests.support.library_page` writes it.
"""

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import engine
from engine.limits import KINDS, Limits
from engine.messages import commands
from tests.support.library_types import HIDDEN, lines_of, types_of

PAGE = Path(__file__).parents[2] / "docs/library.md"
_HEAD = """# Library reference

`import engine` gives you these names. The [cookbook](cookbook.md) shows how they work together.
`engine.sync` has `Agent`, `Engine`, `IsolatedAgentSession` and `Run` for programs without an event
loop: the same members, without `await`.

If a signature begins with `await` or `async with`, use it in that way. The type after `->` is then
the result of the `await`, or the name after `as`.

This page is made from the source.
"""
GROUPS = {
    "Agents and sessions": (
        "Agent",
        "Reply",
        "Turn",
        "AgentRunFailed",
        "IsolatedAgentSession",
        "CallContext",
    ),
    "Runs": ("Engine", "Run", "Plan", "PlanDefaults", "Limits", "Usage"),
    "Outcomes of commands": ("Accepted", "Refused", "Landed", "Conflicted", "EngineError"),
    "Concurrent work": (
        "Success",
        "Failure",
        "gather",
        "settled",
        "race",
        "first",
        "fan_in",
        "in_batches",
        "stages",
        "balanced",
        "map_chunks",
        "with_retry",
        "retry_failed",
        "with_timeout",
        "Pool",
    ),
    "Merges": ("open_merge", "OpenMerge"),
}
NOT_CALLED = {"Engine", "Run", "OpenMerge", "CallContext", "Plan", "AgentRunFailed"}
"""Classes that you get from a function, so their constructors are no part of the page."""
_WIDEST = 92
_SECTION = re.compile(r"^(Args|Attributes|Raises|Returns):$", re.MULTILINE)
_ENTRY = re.compile(r"^    ([\w*]+): ", re.MULTILINE)


def library_page() -> str:
    """Return the whole page."""
    parts = [_HEAD]
    for group, names in GROUPS.items():
        parts.append(f"## {group}\n")
        for name in names:
            parts += _of_name(name, getattr(engine, name))
    parts += lines_of(types_of(_annotations()), _of_class)
    return "\n".join(parts)


def _annotations() -> Iterator[tuple[ast.expr, str]]:
    """Yield every annotation on the page, with the module that understands it."""
    for name in [name for names in GROUPS.values() for name in names]:
        found = getattr(engine, name)
        if not inspect.isclass(found):
            yield from _annotations_of(found)
            continue
        for node in ast.parse(_fields(found)).body:
            assert isinstance(node, ast.AnnAssign)
            yield node.annotation, found.__module__
        members = [each for name, each in vars(found).items() if not name.startswith("_")]
        if name not in NOT_CALLED and not _fields(found) and "__init__" in vars(found):
            members.append(vars(found)["__init__"])
        for member in filter(_is_documented, members):
            yield from _annotations_of(_function(member))


def _annotations_of(function: Callable[..., Any]) -> Iterator[tuple[ast.expr, str]]:
    node = _node_of(function)
    takes = [each for each in ast.walk(node.args) if isinstance(each, ast.arg)]
    for annotation in (*(each.annotation for each in takes), node.returns):
        if annotation is not None:
            yield annotation, function.__module__


def _of_name(name: str, found: Any) -> Iterator[str]:
    yield f"### `{name}`\n"
    if inspect.isclass(found):
        yield from _of_class(name, found)
        yield from _of_members(name, found)
    else:
        yield _code(signature(found, name))
        yield prose(found)


def _of_class(name: str, found: type) -> Iterator[str]:
    fields = _fields(found)
    is_called = name not in NOT_CALLED and not fields and "__init__" in vars(found)
    if fields:
        base = "(Exception)" if issubclass(found, Exception) else ""
        yield _code(f"class {name}{base}:\n" + textwrap.indent(fields, "    "))
    elif is_called:
        yield _code(signature(vars(found)["__init__"], name))
    yield prose(found)
    if found is Limits:
        yield "\n".join(f"- `{kind.name}`: {kind.about}" for kind in KINDS.values()) + "\n"
    if is_called and vars(found)["__init__"].__doc__:
        yield prose(vars(found)["__init__"])


def _of_members(name: str, found: type) -> Iterator[str]:
    for member_name, member in sorted(vars(found).items()):
        if not member_name.startswith("_") and _is_documented(member):
            yield f"#### `{name}.{member_name}`\n"
            yield _code(_of_member(member, member_name))
            yield prose(_function(member))


def _of_member(member: Any, name: str) -> str:
    """Return how a member is called or read."""
    function = _function(member)
    if isinstance(member, property | cached_property):
        returns = ast.unparse(_node_of(function).returns or ast.Constant(...))
        return f"{name}: {returns}  # a property"
    lead = "@classmethod\n" if isinstance(member, classmethod) else ""
    return lead + signature(function, name)


def _is_documented(member: Any) -> bool:
    return inspect.isfunction(member) or isinstance(
        member, (property, cached_property, classmethod, staticmethod)
    )


def _function(member: Any) -> Callable[..., Any]:
    """Return the function behind a property or a method of a class."""
    for name in ("fget", "func", "__func__"):
        if inner := getattr(member, name, None):
            return inner  # type: ignore[no-any-return]
    return member  # type: ignore[no-any-return]


def _fields(of: type) -> str:
    """Return the public fields of a dataclass, as they are written."""
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(of))).body
    assert isinstance(body, ast.ClassDef)
    return "\n".join(
        ast.unparse(_plain(node, getattr(of, ast.unparse(node.target), ...)))
        for node in body.body
        if isinstance(node, ast.AnnAssign) and not ast.unparse(node.target).startswith("_")
    )


def _plain(node: ast.AnnAssign, default: object) -> ast.AnnAssign:
    """Return a field whose default is a plain value, whatever function says it."""
    is_made = isinstance(node.value, ast.Call)
    value = ast.Constant(None if default is None else ...) if is_made else node.value
    return ast.AnnAssign(node.target, node.annotation, value, node.simple)


def signature(found: Callable[..., Any], name: str) -> str:
    """Return how a function is called; a long signature has a line for each word."""
    node = _node_of(found)
    takes = node.args
    if takes.args and takes.args[0].arg in {"self", "cls"}:
        takes.args = takes.args[1:]
    given = f" -> {_returned(node)}" if node.returns and node.name != "__init__" else ""
    lead = ""
    if _opens(node):
        lead = "async with "
    elif isinstance(node, ast.AsyncFunctionDef) and not _yields(node):
        lead = "await "
    each = [_plainly(word) for word in _split(ast.unparse(takes))]
    given = _plainly(given)
    line = f"{lead}{name}({', '.join(each)}){given}"
    if len(line) <= _WIDEST:
        return line
    rows = "".join(f"    {word},\n" for word in each)
    return f"{lead}{name}(\n{rows}){given}"


def _plainly(words: str) -> str:
    """Return words of a signature as a program that imports the names writes them."""
    for name in HIDDEN:
        words = words.replace(f" | {name}", "")
    return re.sub(r"\bc\.(\w+)", _of_a_command, words)


def _of_a_command(found: re.Match[str]) -> str:
    """Return the name of a class of `engine.messages.commands`: `Reply` alone is an agent's."""
    name = found[1]
    is_public = getattr(engine, name, None) is getattr(commands, name)
    return name if is_public else f"commands.{name}"


def _node_of(found: Callable[..., Any]) -> ast.FunctionDef | ast.AsyncFunctionDef:
    """Return the definition of a function."""
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(found))).body
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    return node


def _yields(node: ast.AST) -> bool:
    return any(isinstance(inner, ast.Yield | ast.YieldFrom) for inner in ast.walk(node))


def _opens(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether a function is used with `async with`, although its source is a generator."""
    return "asynccontextmanager" in map(ast.unparse, node.decorator_list)


def _returned(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """Return the type that a caller gets: of a context manager, the type after `as`."""
    match node.returns:
        case ast.Constant(value=str(text)):
            return text
        case ast.Subscript(slice=inner) if _opens(node):
            return ast.unparse(inner)
        case returns:
            return ast.unparse(returns or ast.Constant(...))


def _split(words: str) -> list[str]:
    """Return the parameters of a signature, one by one."""
    parts, depth = [""], 0
    for sign in words:
        depth += (sign in "([{") - (sign in ")]}")
        if sign == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += sign
    named = (part.strip().partition("=") for part in parts if part.strip())
    return [f"{word} = {value}" if sign else word for word, sign, value in named]


def prose(found: Any) -> str:
    """Return a docstring as Markdown: its sections become lists."""
    text = inspect.getdoc(found) or ""
    lead, *sections = _SECTION.split(text)
    parts = [lead.strip()]
    for title, entries in zip(sections[::2], sections[1::2], strict=True):
        body = textwrap.dedent(entries.strip("\n"))
        _, *named = _ENTRY.split(textwrap.indent(body, "    "))
        rows = [
            f"- `{name}`: {_begun(' '.join(said.split()))}"
            for name, said in zip(named[::2], named[1::2], strict=True)
        ]
        parts.append(f"{title}:\n\n" + "\n".join(rows or [" ".join(body.split())]))
    return "\n\n".join(parts) + "\n"


def _begun(text: str) -> str:
    return text[:1].upper() + text[1:]


def _code(text: str) -> str:
    return f"```py\n{text}\n```\n"


if __name__ == "__main__":
    PAGE.write_text(library_page())
