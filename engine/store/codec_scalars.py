"""What a codec is, and the codecs of all that JSON writes as one word: numbers, texts, names.

It knows nothing of records and containers; `engine.store.codec_types` builds those of these.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, StrEnum
from pathlib import Path
from typing import Any, TypeAlias

from engine.ids import AttemptId, WorkerId

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"


class Shape(StrEnum):
    """What JSON can tell apart."""

    NULL = "null"
    BOOL = "true or false"
    NUMBER = "a number"
    TEXT = "a text"
    LIST = "a list"
    OBJECT = "an object"
    SEVERAL = "one of several"


class Misfit(Exception):
    """A value that its type does not allow; the place is collected on the way out."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
        self.place: list[str] = []

    def __str__(self) -> str:
        return f"{'.'.join(reversed(self.place))}: {self.message}" if self.place else self.message


@dataclass(frozen=True, slots=True)
class Codec:
    """How one type is written and read.

    Attributes:
        encode: makes a JSON value of an instance.
        decode: makes an instance of a JSON value, or raises `Misfit`.
        shape: what it is in JSON; the members of a union are told apart by it.
        kinds: the classes of the instances; the members of a union are told apart by them.
        is_plain: what is written is the instance itself, so that a container need not ask.
    """

    encode: Callable[[Any], JsonValue]
    decode: Callable[[Any], Any]
    shape: Shape
    kinds: tuple[type, ...]
    is_plain: bool = False


def misfit(wanted: str, value: object) -> Misfit:
    """The complaint that `value` stands where `wanted` should."""
    shown = repr(value)
    return Misfit(f"expected {wanted}, found {shown if len(shown) < 80 else shown[:77] + '...'}")  # noqa: PLR2004


def as_is(value: Any) -> Any:
    """The value itself."""
    return value


def _scalar(kind: type, shape: Shape) -> Codec:
    def decode(value: Any) -> Any:
        if type(value) is not kind:  # a bool is no int here
            raise misfit(shape, value)
        return value

    return Codec(as_is, decode, shape, (kind,), is_plain=True)


def _decode_int(value: Any) -> int:
    if type(value) is not int:
        raise misfit("a whole number", value)
    return value


def _decode_float(value: Any) -> float:
    if type(value) is float or type(value) is int:
        return float(value)
    raise misfit("a number", value)


def _encode_float(value: float) -> float:
    if not math.isfinite(value):
        raise misfit("a finite number", value)
    return value


def _encode_bytes(value: bytes) -> str:
    return value.decode("utf-8", "surrogateescape")


def _parsed(
    kind: Any, wanted: str, make: Callable[[str], Any], write: Callable[[Any], str]
) -> Codec:
    """A type whose instances are written as text and made from text."""

    def decode(value: Any) -> Any:
        if type(value) is not str:
            raise misfit(wanted, value)
        try:
            return make(value)
        except ValueError as error:
            raise misfit(wanted, value) from error

    return Codec(write, decode, Shape.TEXT, (kind,))


def enum_codec(kind: type[Enum]) -> Codec:
    """The codec of an enum whose values JSON can write: it writes the value."""
    by_value = {member.value: member for member in kind}
    wanted = "one of " + ", ".join(map(repr, by_value))
    shape = Shape.TEXT if all(isinstance(value, str) for value in by_value) else Shape.NUMBER

    def encode(value: Any) -> JsonValue:
        written: JsonValue = value.value
        return written

    def decode(value: Any) -> Any:
        try:
            return by_value[value]
        except (KeyError, TypeError):
            raise misfit(wanted, value) from None

    return Codec(encode, decode, shape, (kind,))


def literal_codec(values: tuple[Any, ...]) -> Codec:
    """The codec of a `Literal` of texts or whole numbers."""
    wanted = "one of " + ", ".join(map(repr, values))
    kinds = tuple({type(value) for value in values})
    shape = Shape.TEXT if kinds == (str,) else Shape.NUMBER

    def decode(value: Any) -> Any:
        if type(value) not in kinds or value not in values:
            raise misfit(wanted, value)
        return value

    return Codec(as_is, decode, shape, kinds, is_plain=True)


SCALARS: dict[Any, Codec] = {
    type(None): _scalar(type(None), Shape.NULL),
    bool: _scalar(bool, Shape.BOOL),
    int: Codec(as_is, _decode_int, Shape.NUMBER, (int,), is_plain=True),
    float: Codec(_encode_float, _decode_float, Shape.NUMBER, (float, int)),
    str: _scalar(str, Shape.TEXT),
    # Paths are mostly text and should be readable; any other byte goes through as an escape that
    # comes back exactly. Valid only in ASCII JSON, which `to_json` writes.
    bytes: _parsed(bytes, "bytes", lambda t: t.encode("utf-8", "surrogateescape"), _encode_bytes),
    Path: _parsed(Path, "a path", Path, str),
    WorkerId: _parsed(WorkerId, "a worker's name", WorkerId.parse, str),
    AttemptId: _parsed(AttemptId, "an attempt's name", AttemptId.parse, str),
    Any: Codec(as_is, as_is, Shape.SEVERAL, (object,), is_plain=True),
}
