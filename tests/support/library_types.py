"""Find the types that the signatures of the library name, and describe each for its reference."""

import ast
import importlib
import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import engine

READ = ("RunReport", "StepResult", "WorkerResult", "Change", "Told", "Question", "RunSummary")
"""Types whose fields a program reads."""
HIDDEN = ("Seat",)
"""Ways in which `engine.sync` passes an engine on: programs pass an `Engine`."""
_OURS = "engine."
_MOST = 90
"""A longer union is not shown."""


class Type(NamedTuple):
    """A type with its module, and what an alias stands for."""

    name: str
    module: str
    means: str
    about: str


def types_of(functions: Iterable[tuple[ast.expr, str]]) -> list[Type]:
    """Return our own types in annotations, each with its module, by their names."""
    found: set[Type] = set()
    left = list(functions)
    while left:
        annotation, module = left.pop()
        for name in _names(annotation):
            one = None if name in HIDDEN else _type(name, module)
            if one is None or _is_public(one) or one in found:
                continue
            found.add(one)
            left += _inside(one)
    return sorted(found)


def _inside(one: Type) -> Iterator[tuple[ast.expr, str]]:
    """Yield the annotations that a type itself names, where the page shows them."""
    if _is_short(one):
        yield ast.parse(one.means, mode="eval").body, one.module
    if one.name in READ:
        (body,) = ast.parse(
            inspect.getsource(getattr(importlib.import_module(one.module), one.name))
        ).body
        for node in getattr(body, "body", ()):
            if isinstance(node, ast.AnnAssign):
                yield node.annotation, one.module


def _is_public(one: Type) -> bool:
    """Return whether the page describes it above."""
    home = importlib.import_module(one.module)
    return getattr(engine, one.name, None) is getattr(home, one.name, ...)


def _is_short(one: Type) -> bool:
    return 0 < len(one.means) <= _MOST


def _names(annotation: ast.expr) -> Iterator[str]:
    for node in ast.walk(annotation):
        match node:
            case ast.Name(id=name):
                yield name
            case ast.Attribute():
                yield ast.unparse(node)
            case ast.Constant(value=str(text)):
                yield from re.findall(r"\w+", text)
            case _:
                pass


def _type(name: str, module: str) -> Type | None:
    """Return a type, from the module that defines it; None for others than ours."""
    lead, _, last = name.rpartition(".")
    if lead:
        home = getattr(importlib.import_module(module), lead, None)
        return _type(last, home.__name__) if isinstance(home, ModuleType) else None
    body = list(ast.walk(ast.parse(_source(module))))
    for node in body:
        match node:
            case ast.ImportFrom(module=str(where), names=names) if where.startswith(_OURS):
                for each in names:
                    if (each.asname or each.name) == name:
                        return _type(each.name, where)
            case ast.ClassDef(name=defined) if defined == name:
                return Type(name, module, "", _said(getattr(importlib.import_module(module), name)))
            case (
                ast.Assign(targets=[ast.Name(id=defined)], value=value)
                | ast.AnnAssign(target=ast.Name(id=defined), value=ast.expr() as value)
            ) if defined == name and not _is_variable(value):
                return Type(name, module, ast.unparse(value), _below(body, node))
            case _:
                pass
    return None


def _source(module: str) -> str:
    found = importlib.import_module(module).__file__
    assert found is not None
    return Path(found).read_text()


def _is_variable(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and ast.unparse(value.func) == "TypeVar"


def _said(found: type) -> str:
    """Return the first paragraph of a docstring; the values of an enumeration."""
    about = " ".join((inspect.getdoc(found) or "").partition("\n\n")[0].split())
    if issubclass(found, Enum):
        return f"{about} One of {', '.join(f'`{member.value}`' for member in found)}."
    return about


def _below(body: list[ast.AST], node: ast.AST) -> str:
    """Return the first sentence of the text below an assignment."""
    for parent in body:
        lines = getattr(parent, "body", None)
        if isinstance(lines, list) and node in lines:
            match lines[lines.index(node) + 1 :][:1]:
                case [ast.Expr(value=ast.Constant(value=str(text)))]:
                    return " ".join(text.partition("\n\n")[0].split())
    return ""


def lines_of(types: Iterable[Type], fields: Callable[[str, Any], Iterator[str]]) -> Iterator[str]:
    """Yield the section of types: one line for each, and the fields of those that programs read."""
    known = list(types)
    yield "## Types\n"
    yield (
        "The signatures above name these types. Import a type from the module beside it. Capital\n"
        "letters such as `T` stand for any type.\n"
    )
    for name in READ:
        module = next(each.module for each in known if each.name == name)
        yield f"### `{name}`\n"
        yield f"From `{module}`.\n"
        yield from fields(name, getattr(importlib.import_module(module), name))
    yield "### Other types\n"
    yield "\n".join(_line(each, known) for each in known if each.name not in READ) + "\n"


def _line(one: Type, known: Iterable[Type]) -> str:
    of = ", ".join(sorted(set(re.findall(r"\b[A-Z]\b", one.means)))) if _is_short(one) else ""
    name = f"{one.name}[{of}]" if of else one.name
    means = f" = `{one.means}`" if _is_short(one) else ""
    about = f": {one.about}" if one.about else ""
    return f"- `{name}`{means}, from `{one.module}`{about}{_unlike(one, known)}"


def _unlike(one: Type, known: Iterable[Type]) -> str:
    """Return a sentence about the other types of this name; empty if there are none."""
    homes = [each.module for each in known if each.name == one.name and each != one]
    homes += ["engine"] * hasattr(engine, one.name)
    others = " or ".join(f"`{home}`" for home in homes)
    return f" Not the `{one.name}` of {others}." if others else ""
