"""Our frozen dataclasses as JSON and back, by their type hints alone.

The outermost object carries its class name under `"type"`, and so does every object where a union
leaves open which class it is. On the way back unknown keys are passed over and missing ones take
their defaults, so that an old file can be read by a newer program; a value of the wrong type is a
`StoreError` that names its place. How each kind of type is written is `engine.store.codec_types`.

A validation library reads the plainest of our records three times as fast, but it wants a tag field
in each member of a union, knows nothing of names written as text or of bytes that are no text, and
costs more to import than a thousand facts cost to read (3 to 13 µs each).
"""

import json
from types import UnionType
from typing import Any, TypeVar, overload

from engine.errors import StoreError
from engine.store.codec_scalars import JsonValue, Misfit
from engine.store.codec_types import TAG, codec_of

__all__ = ["JsonValue", "dump", "dump_as", "from_json", "load", "to_json"]

T = TypeVar("T")

_HINT = "It may come from another version of plait, or be damaged."
_to_text = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode


def dump(value: object) -> dict[str, JsonValue]:
    """A dataclass instance as plain JSON values, its class name first.

    Raises:
        StoreError: it holds something that its type hints do not allow and JSON cannot carry.
    """
    kind: Any = type(value)
    try:
        fields = codec_of(kind).encode(value)
    except Misfit as misfit:
        raise StoreError(f"{kind.__name__} cannot be written: {misfit}") from misfit
    if not isinstance(fields, dict):
        raise TypeError(f"{kind.__name__} is no dataclass")
    return {TAG: kind.__name__, **fields}


def dump_as(kind: Any, value: object) -> JsonValue:
    """A value as plain JSON, as `load` reads it back by the same type hint.

    Raises:
        StoreError: it is none of that kind.
    """
    try:
        return codec_of(kind).encode(value)
    except Misfit as misfit:
        raise StoreError(f"not a {_name(kind)}: {misfit}") from misfit


@overload
def load(kind: type[T], value: JsonValue) -> T: ...
@overload
def load(kind: UnionType, value: JsonValue) -> Any: ...
def load(kind: Any, value: JsonValue) -> Any:
    """The instance of `kind`, a dataclass or a union of them, that `value` describes.

    Raises:
        StoreError: `value` describes none; the sentence names the place.
    """
    try:
        return codec_of(kind).decode(value)
    except Misfit as misfit:
        raise StoreError(f"not a {_name(kind)}: {misfit}", hint=_HINT) from misfit


def to_json(value: object) -> str:
    """A dataclass instance as one line of ASCII JSON."""
    plain = dump(value)
    try:
        return _to_text(plain)
    except (TypeError, ValueError) as error:
        raise StoreError(f"{type(value).__name__} cannot be written: {error}") from error


@overload
def from_json(kind: type[T], text: str) -> T: ...
@overload
def from_json(kind: UnionType, text: str) -> Any: ...
def from_json(kind: Any, text: str) -> Any:
    """The instance of `kind` that a text written by `to_json` describes.

    Raises:
        StoreError: the text is no JSON, or describes none.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise StoreError(f"not a {_name(kind)}: not JSON: {error}", hint=_HINT) from error
    return load(kind, value)


def _name(kind: Any) -> str:
    return getattr(kind, "__name__", str(kind))
