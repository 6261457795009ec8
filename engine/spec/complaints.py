"""Report everything wrong with a manifest in its own words, found by us or by pydantic."""

import types
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from engine.errors import SpecProblem
from engine.spec.nearest import nearest
from engine.spec.tree import Node, Path, place_of, written
from engine.values import dataclass

_MOST = 20
_LONGEST = 600
_LONGEST_KEY = 200
_TYPES = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a number",
    "string_type": "text",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "mapping_type": "a mapping",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}
_BOUNDS = {
    "greater_than": ("more than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than_equal": ("at most", "le"),
}
_LIKE_BOOLEANS = {"yes": "true", "on": "true", "no": "false", "off": "false"}


@dataclass(frozen=True)
class Complaint:
    """Something wrong at a path; `guess` is what was probably meant."""

    path: Path
    message: str
    guess: str | None = None

    def placed(self, root: Node, *, file: str) -> SpecProblem:
        """Return the problem, with the line and column of its path."""
        line, column = place_of(root, self.path)
        return SpecProblem(
            file=file,
            line=line,
            column=column,
            key=written(self.path),
            message=self.message,
            nearest=self.guess,
        )


def unknown(path: Path, name: str, what: str, known: Iterable[str]) -> Complaint:
    """Return a problem on an unknown name, with the nearest known one or all of them."""
    names = list(known)
    guess = nearest(name, names)
    there = ", ".join(names[:_MOST]) or "none"
    more = "" if guess else f"; known here: {there}"
    return Complaint(path, f"there is no {what} {name!r:.60}{more}", guess)


def cleaned(problem: SpecProblem) -> SpecProblem:
    """Return the problem safe for a terminal: a manifest's words go into messages raw.

    Control characters, line ends and invisible ones are written as escapes, and nothing is long.
    """
    guess = problem.nearest
    return replace(
        problem,
        key=_printable(problem.key, _LONGEST_KEY),
        message=_printable(problem.message, _LONGEST),
        nearest=None if guess is None else _printable(guess, _LONGEST_KEY),
    )


def _printable(text: str, most: int) -> str:
    cut = text if len(text) <= most else text[: most - 1] + "…"
    if cut.isprintable():
        return cut
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut)


def problem_of(
    error: ErrorDetails, root: Node, model: type[BaseModel], *, file: str
) -> SpecProblem:
    """Return one problem from one complaint of pydantic's."""
    path = _path(error["loc"])
    kind = error["type"]
    about_key = kind == "extra_forbidden" or "[key]" in error["loc"]
    line, column = place_of(root, path, of_key=about_key)
    guess = None
    if kind == "extra_forbidden":
        guess = nearest(str(path[-1]), keys_at(model, path[:-1]))
    elif kind == "literal_error" and isinstance(error["input"], str):
        guess = nearest(error["input"], words_at(model, path))
    return SpecProblem(
        file=file,
        line=line,
        column=column,
        key=written(path),
        message=_sentence(error, model, path, has_guess=guess is not None),
        nearest=guess,
    )


def is_echo(error: ErrorDetails) -> bool:
    """Return whether a list seems too short only because its members are wrong."""
    return error["type"] == "too_short" and bool(error["input"])


def _path(loc: tuple[int | str, ...]) -> Path:
    """Return the location without what pydantic adds to it: union tags and `[key]`."""
    return tuple(s for s in loc if isinstance(s, int) or (s[:1] != "<" and s != "[key]"))


def _sentence(error: ErrorDetails, model: type[BaseModel], path: Path, *, has_guess: bool) -> str:
    kind, found = error["type"], error["input"]
    if kind == "extra_forbidden":
        known = ", ".join(keys_at(model, path[:-1]))
        return "is not a known key" + ("" if has_guess else f"; known here: {known}")
    if kind == "missing":
        return "is missing"
    if kind == "expected":
        return f"{error['msg']}, found {shown(found)}" if found else error["msg"]
    if kind == "literal_error":
        return f"expected one of {', '.join(words_at(model, path))}, found {shown(found)}"
    if kind in _TYPES:
        return f"expected {_TYPES[kind]}, found {shown(found)}{_advice(kind, found)}"
    return _about_size(error)


def _about_size(error: ErrorDetails) -> str:
    kind, context = error["type"], error.get("ctx", {})
    if kind in _BOUNDS:
        words, name = _BOUNDS[kind]
        bound = context[name]
        figure = f"{bound:g}" if isinstance(bound, float) else bound
        return f"expected {words} {figure}, found {shown(error['input'])}"
    if kind == "too_short":
        return f"expected at least {context['min_length']} of them, found none"
    if kind == "too_long":
        return f"expected at most {context['max_length']} of them"
    return f"{error['msg'][:1].lower()}{error['msg'][1:]}, found {shown(error['input'])}"


def _advice(kind: str, found: object) -> str:
    if kind == "bool_type" and isinstance(found, str):
        meant = _LIKE_BOOLEANS.get(found.lower(), found.lower())
        return f"; write {meant} (no other word is a boolean)" if meant in ("true", "false") else ""
    if kind == "string_type" and isinstance(found, int | float):
        return "; put it in quotes"
    if kind in ("int_type", "float_type") and isinstance(found, str) and found.strip().isdigit():
        return "; leave the quotes out"
    return ""


def shown(value: object) -> str:
    """Return a value for a message: short, on one line, without control characters."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true" if value else "false"
        case int() if abs(value) > _HUGE:
            return "a huge number"
        case int() | float():
            return f"the number {value}"
        case str():
            cut = value if len(value) <= _SHOWN else value[: _SHOWN - 1] + "…"
            return f"the text {cut!r}"
        case Mapping():
            return "a mapping"
        case _:
            return "a list"


_SHOWN = 40
_HUGE = 10**30
"""Python itself refuses to write numbers of more than some thousand digits."""


def keys_at(model: type[BaseModel], path: Path) -> tuple[str, ...]:
    """Return the keys known to the mapping at the end of a path."""
    found = next((m for m in _candidates(model, path) if _is_model(m)), None)
    return tuple(found.model_fields) if found is not None else ()


def words_at(model: type[BaseModel], path: Path) -> tuple[str, ...]:
    """Return the words allowed at the end of a path, if only certain words are."""
    allowed = [a for a in _candidates(model, path) if get_origin(a) is Literal]
    return tuple(str(word) for literal in allowed for word in get_args(literal))


def _candidates(model: type[BaseModel], path: Path) -> list[Any]:
    """Return every type the value at the end of a path may have, unions taken apart."""
    current: list[Any] = [model]
    for step in path:
        current = [t for a in current for t in _alternatives(_below(a, step))]
    return current


def _below(annotation: Any, step: str | int) -> Any:
    if _is_model(annotation):
        known = annotation.model_fields.get(step)
        return known.annotation if known is not None else None
    arguments = get_args(annotation)
    return arguments[0 if isinstance(step, int) else -1] if arguments else None


def _alternatives(annotation: Any) -> list[Any]:
    origin = get_origin(annotation)
    if origin is Annotated:
        return _alternatives(get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        return [t for a in get_args(annotation) for t in _alternatives(a)]
    return [annotation]


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)
