"""The manifest's reference and its JSON Schema, made from the models that read it.

`python -m engine.spec.reference docs` writes both; a test holds them current.
"""

import json
import sys
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from engine.policies import LAWS
from engine.spec.pipeline import Manifest
from engine.spec.placeholders import OF_STEP, SIMPLE
from engine.spec.readiness import UNREADY
from engine.spec.reference_text import EXAMPLE, HEAD, LEVELS, PLACEHOLDERS, RULES
from engine.spec.words import PolicyText

PAGE = "pipeline.md"
SCHEMA = "plait.schema.json"


def schema() -> str:
    """The JSON Schema that editors complete and check a manifest with."""
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "plait.yaml",
        **Manifest.model_json_schema(),
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def page() -> str:
    """The reference in Markdown: rules, an example, every key, the levels of concurrency."""
    tables = "\n".join(_section(path, model) for path, model in _sections())
    names = ", ".join(f"`{{{name}}}`" for name in SIMPLE)
    of_steps = ", ".join(f"`{{steps.NAME.{value}}}`" for value in OF_STEP)
    refused = "\n".join(
        f"- `{row.path}`{': ' + ', '.join(row.only) if row.only else ''}: {row.reason}"
        for row in UNREADY
    )
    return "\n".join(
        (
            HEAD,
            "## Example\n",
            f"```yaml\n{EXAMPLE}```\n",
            RULES.format(policies="\n".join(_policies())),
            "## Keys\n",
            tables,
            PLACEHOLDERS.format(simple=names, of_steps=of_steps),
            LEVELS,
            "## Refused for now\n",
            "These are part of the grammar, and are refused with their reason, never ignored:\n",
            refused + "\n",
        )
    )


def _policies() -> Iterator[str]:
    """Yield the rows of the policies, each with the ways to write it."""
    for word, law in LAWS.items():
        ways = f"`{word}(N)`, `{word}:N`" if law.is_counted else f"`{word}`"
        yield f"| {ways} | {law.succeeded} | {law.others} |"


def _sections() -> Iterator[tuple[str, type[BaseModel]]]:
    """Every mapping of the manifest with the path it stands at, outer ones first."""
    seen: set[type[BaseModel]] = set()
    todo: list[tuple[str, type[BaseModel]]] = [("", Manifest)]
    while todo:
        path, model = todo.pop(0)
        if model in seen:
            continue
        seen.add(model)
        yield path, model
        for key, known in model.model_fields.items():
            below = f"{path}.{key}".removeprefix(".")
            todo.extend(_models(known.annotation, below))


def _models(annotation: Any, path: str) -> Iterator[tuple[str, type[BaseModel]]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield path, annotation
        return
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is tuple:
        path += "[]"
    elif origin is Mapping:
        arguments, path = arguments[1:], f"{path}.NAME"
    for argument in arguments[:1] if origin is Annotated else arguments:
        yield from _models(argument, path)


def _section(path: str, model: type[BaseModel]) -> str:
    title = f"### `{path}`" if path else "### The whole"
    rows = [_row(key, known) for key, known in model.model_fields.items()]
    doc = " ".join((model.__doc__ or "").split())
    return "\n".join(
        (title, "", doc, "", "| key | value | default | |", "|---|---|---|---|", *rows, "")
    )


def _row(key: str, known: FieldInfo) -> str:
    about = " ".join((known.description or "").split()).replace("|", "\\|")
    value = "policy" if get_args(PolicyText)[1] in known.metadata else _words(known.annotation)
    return f"| `{key}` | {value} | {_default(known)} | {about} |"


_NAMES = {str: "text", int: "whole number", float: "number", bool: "true, false", Any: "anything"}


def _words(annotation: Any) -> str:
    if annotation in _NAMES:
        return _NAMES[annotation]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return ", ".join(f"`{word}`" for word in arguments)
    if origin in (Union, types.UnionType):
        return " or ".join(_words(a) for a in arguments if a is not type(None))
    if origin is Annotated:
        return _words(arguments[0])
    if origin is tuple:
        of = _words(arguments[0])
        return "list of mappings" if of == "mapping" else f"list of {of}"
    if origin is Mapping:
        return f"name: {_words(arguments[1])}"
    return "mapping"


def _default(known: FieldInfo) -> str:
    if known.is_required():
        return "**required**"
    value = known.get_default(call_default_factory=True)
    if value is None or isinstance(value, BaseModel) or value in ((), {}):
        return ""
    shown = str(value).lower() if isinstance(value, bool) else value
    return f"`{shown:g}`" if isinstance(shown, float) else f"`{shown}`"


def write(folder: Path) -> None:
    """Write both documents into a folder."""
    (folder / PAGE).write_text(page(), encoding="utf-8")
    (folder / SCHEMA).write_text(schema(), encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
