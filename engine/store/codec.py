"""Write frozen dataclasses as JSON and read them back, by their type hints alone.

The outermost object carries its class name under `"type"`, and so does every object where a union
leaves open which class it is. A reader passes over unknown keys and gives missing ones their
defaults, so that a newer program reads an old file. A value of the wrong type is a `StoreError`
that names its place. A mistake in a type is a `TypeError` when its codec is built, not a wrong
value when it is read: two members of a union that JSON cannot tell apart, or a field called `type`.

Each type has one codec, built once. msgspec is about ten times as fast on plain records, but cannot
write the values kept here (decision 7). It writes bytes as base64 and a `WorkerId` as an object,
and asks no hook for either. It knows no union of two dataclasses and writes NaN as null. It refuses
the lone surrogates that stand for bytes that are no UTF-8 in paths and logs.
"""

import json
import math
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from enum import Enum, StrEnum
from functools import cache, cached_property
from operator import attrgetter
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Literal,
    NewType,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

from engine.errors import StoreError, UnstorableValue
from engine.ids import AttemptId, WorkerId

__all__ = ["JsonValue", "codec_of", "dump", "dump_as", "from_json", "load", "to_json"]

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"
T = TypeVar("T")

TAG = "type"
"""The key of the class name; no field of a dataclass may have this name."""

_HINT = "It may come from another version of plait, or be damaged."
_to_text = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode


def dump(value: object) -> dict[str, JsonValue]:
    """Return a dataclass instance as plain JSON values, its class name first.

    Raises:
        UnstorableValue: It holds something that its type hints do not allow and JSON cannot carry.
    """
    kind: Any = type(value)
    try:
        written = codec_of(kind).encode(value)
    except Misfit as misfit:
        raise UnstorableValue(f"{kind.__name__} cannot be written: {misfit}") from misfit
    if not isinstance(written, dict):
        raise TypeError(f"{kind.__name__} is not a dataclass")
    return {TAG: kind.__name__, **written}


def dump_as(kind: Any, value: object) -> JsonValue:
    """Return a value as plain JSON, as `load` reads it back by the same type hint.

    Raises:
        StoreError: It is none of that kind.
    """
    try:
        return codec_of(kind).encode(value)
    except Misfit as misfit:
        raise StoreError(f"not a {_name(kind)}: {misfit}") from misfit


@overload
def load(kind: type[T], value: JsonValue) -> T: ...
@overload
def load(kind: types.UnionType, value: JsonValue) -> Any: ...
def load(kind: Any, value: JsonValue) -> Any:
    """Return the instance of `kind`, a dataclass or a union of them, that `value` describes.

    Raises:
        StoreError: `value` describes none; the sentence names the place.
    """
    try:
        return codec_of(kind).decode(value)
    except Misfit as misfit:
        raise StoreError(f"not a {_name(kind)}: {misfit}", hint=_HINT) from misfit


def to_json(value: object) -> str:
    """Return a dataclass instance as one line of ASCII JSON.

    Raises:
        UnstorableValue: JSON cannot carry something that it holds.
    """
    plain = dump(value)
    try:
        return _to_text(plain)
    except (TypeError, ValueError) as error:
        raise UnstorableValue(f"{type(value).__name__} cannot be written: {error}") from error


@overload
def from_json(kind: type[T], text: str) -> T: ...
@overload
def from_json(kind: types.UnionType, text: str) -> Any: ...
def from_json(kind: Any, text: str) -> Any:
    """Return the instance of `kind` that a text written by `to_json` describes.

    Raises:
        StoreError: The text is no JSON, or describes none.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise StoreError(f"not a {_name(kind)}: not JSON: {error}", hint=_HINT) from error
    return load(kind, value)


def _name(kind: Any) -> str:
    return getattr(kind, "__name__", str(kind))


class Shape(StrEnum):
    """The kinds of values that JSON tells apart."""

    NULL = "null"
    BOOL = "true or false"
    NUMBER = "a number"
    TEXT = "a text"
    LIST = "a list"
    OBJECT = "an object"
    SEVERAL = "one of several"


_SHAPES: dict[type, Shape] = {
    type(None): Shape.NULL,
    bool: Shape.BOOL,
    int: Shape.NUMBER,
    float: Shape.NUMBER,
    str: Shape.TEXT,
    list: Shape.LIST,
    dict: Shape.OBJECT,
}


class Misfit(Exception):
    """A value that its type does not allow; every container adds its place on the way out."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
        self.place: list[str] = []

    def __str__(self) -> str:
        return f"{'.'.join(reversed(self.place))}: {self.message}" if self.place else self.message


def _misfit(wanted: str, value: object) -> Misfit:
    shown = repr(value)
    return Misfit(f"expected {wanted}, found {shown if len(shown) < 80 else shown[:77] + '...'}")  # noqa: PLR2004


@dataclass(frozen=True, slots=True)
class Codec:
    """The way to write and read one type.

    Attributes:
        encode: Makes a JSON value of an instance.
        decode: Makes an instance of a JSON value, or raises `Misfit`.
        shape: Its form in JSON, which distinguishes the members of a union when they are read.
        kinds: The classes of the instances, by which they are distinguished when they are written.
        is_plain: Every instance is its own JSON value, so a container need not call `encode`.
        read_as_is: JSON values of these classes are instances already, so a container need not
            call `decode`.
    """

    encode: Callable[[Any], JsonValue]
    decode: Callable[[Any], Any]
    shape: Shape
    kinds: tuple[type, ...]
    is_plain: bool = False
    read_as_is: frozenset[type] = frozenset()


@cache
def codec_of(kind: Any) -> Codec:
    """Return the codec of a type: a class, a union, or one of the containers known here."""
    if kind in _SCALARS:
        return _SCALARS[kind]
    if isinstance(kind, NewType):
        return codec_of(kind.__supertype__)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _enum(kind)
    if isinstance(kind, type) and is_dataclass(kind):
        record = _Record(kind)
        return Codec(record.encode, record.decode, Shape.OBJECT, (kind,))
    build = _GENERICS.get(get_origin(kind))
    if build is None:
        raise TypeError(f"{kind!r} has no JSON form")
    return build(get_args(kind))


def _as_is(value: Any) -> Any:
    return value


def _exact(kind: type, shape: Shape, wanted: str) -> Codec:
    """Return the codec of a type that JSON has too. A bool is no int here."""

    def decode(value: Any) -> Any:
        if type(value) is not kind:
            raise _misfit(wanted, value)
        return value

    return Codec(_as_is, decode, shape, (kind,), is_plain=True, read_as_is=frozenset({kind}))


def _encode_float(value: float) -> float:
    if not math.isfinite(value):
        raise _misfit("a finite number", value)
    return value


def _decode_float(value: Any) -> float:
    if type(value) is float or type(value) is int:
        return float(value)
    raise _misfit("a number", value)


def _text(kind: Any, wanted: str, make: Callable[[str], Any], write: Callable[[Any], str]) -> Codec:
    """Return the codec of a type that is written as text."""

    def decode(value: Any) -> Any:
        if type(value) is not str:
            raise _misfit(wanted, value)
        try:
            return make(value)
        except ValueError as error:
            raise _misfit(wanted, value) from error

    return Codec(write, decode, Shape.TEXT, (kind,))


def _encode_bytes(value: bytes) -> str:
    return value.decode("utf-8", "surrogateescape")


def _decode_bytes(value: str) -> bytes:
    return value.encode("utf-8", "surrogateescape")


_SCALARS: dict[Any, Codec] = {
    type(None): _exact(type(None), Shape.NULL, Shape.NULL),
    bool: _exact(bool, Shape.BOOL, Shape.BOOL),
    int: _exact(int, Shape.NUMBER, "a whole number"),
    float: Codec(
        _encode_float, _decode_float, Shape.NUMBER, (float, int), read_as_is=frozenset({float})
    ),
    str: _exact(str, Shape.TEXT, Shape.TEXT),
    # Paths are mostly text and should be readable; any other byte goes through as an escape that
    # comes back exactly. Valid only in ASCII JSON, which `to_json` writes.
    bytes: _text(bytes, "bytes", _decode_bytes, _encode_bytes),
    Path: _text(Path, "a path", Path, str),
    WorkerId: _text(WorkerId, "a worker's name", WorkerId.parse, str),
    AttemptId: _text(AttemptId, "an attempt's name", AttemptId.parse, str),
    Any: Codec(_as_is, _as_is, Shape.SEVERAL, (object,), is_plain=True),
}


def _enum(kind: type[Enum]) -> Codec:
    """Return the codec of an enum whose values JSON can write."""
    by_value = {member.value: member for member in kind}
    wanted = "one of " + ", ".join(map(repr, by_value))
    shape = Shape.TEXT if all(isinstance(value, str) for value in by_value) else Shape.NUMBER

    def decode(value: Any) -> Any:
        try:
            return by_value[value]
        except (KeyError, TypeError):
            raise _misfit(wanted, value) from None

    # `_value_` is the documented attribute behind `value`, and four times as fast to read.
    return Codec(attrgetter("_value_"), decode, shape, (kind,))


def _literal(values: tuple[Any, ...]) -> Codec:
    """Return the codec of a `Literal` of texts or whole numbers."""
    wanted = "one of " + ", ".join(map(repr, values))
    kinds = tuple({type(value) for value in values})
    shape = Shape.TEXT if kinds == (str,) else Shape.NUMBER

    def decode(value: Any) -> Any:
        if type(value) not in kinds or value not in values:
            raise _misfit(wanted, value)
        return value

    return Codec(_as_is, decode, shape, kinds, is_plain=True)


class _Record:
    """A dataclass. Its fields' codecs are built at first use, because it may hold its own kind."""

    def __init__(self, kind: type) -> None:
        self._kind = kind
        self._name = kind.__name__
        if any(part.name == TAG for part in fields(kind)):
            raise TypeError(f"{self._name} has a field called {TAG!r}, the key of the class name")

    @cached_property
    def _parts(self) -> tuple[tuple[str, Codec], ...]:
        hints = get_type_hints(self._kind, include_extras=True)
        return tuple(
            (part.name, codec_of(hints[part.name])) for part in fields(self._kind) if part.init
        )

    @cached_property
    def _required(self) -> tuple[str, ...]:
        return tuple(
            part.name
            for part in fields(self._kind)
            if part.init and part.default is MISSING and part.default_factory is MISSING
        )

    def encode(self, value: Any) -> JsonValue:
        written: dict[str, JsonValue] = {}
        key = ""
        try:
            for key, codec in self._parts:
                held = getattr(value, key)
                written[key] = held if codec.is_plain else codec.encode(held)
        except Misfit as misfit:
            misfit.place.append(key)
            raise
        return written

    def decode(self, value: Any) -> Any:
        if type(value) is not dict or value.get(TAG, self._name) != self._name:
            raise _misfit(f"a {self._name}", value)
        for key in self._required:
            if key not in value:
                raise Misfit(f"{key} is missing in {self._name}")
        held = self._held(value)
        try:
            return self._kind(**held)
        except (TypeError, ValueError) as error:  # its own __post_init__ refuses
            raise Misfit(f"no {self._name}: {error}") from error

    def _held(self, value: dict[str, Any]) -> dict[str, Any]:
        held = {}
        key = ""
        try:
            for key, codec in self._parts:
                if key in value:
                    found = value[key]
                    held[key] = found if type(found) in codec.read_as_is else codec.decode(found)
        except Misfit as misfit:
            misfit.place.append(key)
            raise
        return held


def _union(args: tuple[Any, ...]) -> Codec:
    """Return the codec of a union: records differ by their tag, all else by its shape."""
    members = _members(args)
    by_shape = {member.shape: member for member in members}
    if len(by_shape) < len(members) or Shape.SEVERAL in by_shape:
        raise TypeError(f"JSON cannot tell apart the members of {' | '.join(map(str, args))}")
    wanted = " or ".join(by_shape)

    def encode(value: Any) -> JsonValue:
        for member in members:
            if isinstance(value, member.kinds):
                return member.encode(value)
        raise _misfit(wanted, value)

    def decode(value: Any) -> Any:
        member = by_shape.get(_SHAPES.get(type(value), Shape.SEVERAL))
        if member is None:
            raise _misfit(wanted, value)
        return member.decode(value)

    return Codec(
        encode,
        decode,
        members[0].shape if len(members) == 1 else Shape.SEVERAL,
        tuple(kind for member in members for kind in member.kinds),
        is_plain=all(member.is_plain for member in members),
        read_as_is=frozenset().union(*(member.read_as_is for member in members)),
    )


def _members(args: tuple[Any, ...]) -> list[Codec]:
    if {int, float} <= set(args):
        args = tuple(arg for arg in args if arg is not int)  # JSON has one kind of number
    records = tuple(arg for arg in args if is_dataclass(arg) and arg not in _SCALARS)
    if len(records) < 2:  # noqa: PLR2004 - one alone needs no tag
        return [codec_of(arg) for arg in args]
    return [*(codec_of(arg) for arg in args if arg not in records), _tagged(records)]


def _tagged(records: tuple[Any, ...]) -> Codec:
    by_name = {record.__name__: codec_of(record) for record in records}
    by_kind = {record: (record.__name__, codec_of(record)) for record in records}
    if len(by_name) < len(records):
        raise TypeError(f"two classes of one union have the same name: {records}")

    def encode(value: Any) -> JsonValue:
        if type(value) not in by_kind:
            raise _misfit(f"one of {', '.join(by_name)}", value)
        name, codec = by_kind[type(value)]
        written = codec.encode(value)
        return {TAG: name, **written} if isinstance(written, dict) else written

    def decode(value: Any) -> Any:
        codec = by_name.get(str(value.get(TAG))) if type(value) is dict else None
        if codec is None:
            raise _misfit(f"one of {', '.join(by_name)}", value)
        return codec.decode(value)

    return Codec(encode, decode, Shape.OBJECT, records)


def _placed(place: object, code: Callable[[Any], Any], value: Any) -> Any:
    try:
        return code(value)
    except Misfit as misfit:
        misfit.place.append(str(place))
        raise


def _sequence(args: tuple[Any, ...]) -> Codec:
    """Return the codec of `tuple[X, ...]`, `tuple[X, Y]` or `Sequence[X]`, read as tuples."""
    if len(args) == 2 and args[1] is Ellipsis:  # noqa: PLR2004 - tuple[X, ...]
        return _many(codec_of(args[0]), tuple, (tuple, list))
    parts = [codec_of(arg) for arg in args]

    def encode(value: Any) -> JsonValue:
        if len(value) != len(parts):
            raise _misfit(f"{len(parts)} values", value)
        return [_placed(i, parts[i].encode, item) for i, item in enumerate(value)]

    def decode(value: Any) -> Any:
        if type(value) is not list or len(value) != len(parts):
            raise _misfit(f"a list of {len(parts)}", value)
        return tuple(_placed(i, parts[i].decode, item) for i, item in enumerate(value))

    return Codec(encode, decode, Shape.LIST, (tuple, list))


def _many(item: Codec, make: Callable[[Any], Any], kinds: tuple[type, ...]) -> Codec:
    """Return the codec of any number of values of one type."""

    def each(code: Callable[[Any], Any], values: Iterable[Any]) -> list[Any]:
        done: list[Any] = []
        try:
            done.extend(map(code, values))
        except Misfit as misfit:
            misfit.place.append(str(len(done)))
            raise
        return done

    def encode(value: Any) -> JsonValue:
        return list(value) if item.is_plain else each(item.encode, value)

    def decode(value: Any) -> Any:
        if type(value) is not list:
            raise _misfit(Shape.LIST, value)
        return make(each(item.decode, value))

    return Codec(encode, decode, Shape.LIST, kinds)


def _set(args: tuple[Any, ...]) -> Codec:
    """Return the codec of a set, written in a fixed order, so that equal sets give equal texts."""
    many = _many(codec_of(args[0]), frozenset, (frozenset, set))

    def encode(value: Any) -> JsonValue:
        written: Any = many.encode(value)
        return sorted(written, key=json.dumps)

    return replace(many, encode=encode)


def _mapping(args: tuple[Any, ...]) -> Codec:
    key, held = codec_of(args[0]), codec_of(args[1])
    if key.shape is not Shape.TEXT:
        raise TypeError(f"the keys of a JSON object are texts, not {args[0]!r}")

    def encode(value: Any) -> JsonValue:
        return {str(key.encode(k)): _placed(k, held.encode, v) for k, v in value.items()}

    def decode(value: Any) -> Any:
        if type(value) is not dict:
            raise _misfit(Shape.OBJECT, value)
        return {_placed(k, key.decode, k): _placed(k, held.decode, v) for k, v in value.items()}

    return Codec(encode, decode, Shape.OBJECT, (Mapping,))


_GENERICS: dict[Any, Callable[[tuple[Any, ...]], Codec]] = {
    Union: _union,
    types.UnionType: _union,
    Annotated: lambda args: codec_of(args[0]),
    Literal: _literal,
    tuple: _sequence,
    Sequence: lambda args: _sequence((*args, ...)),
    list: lambda args: _many(codec_of(args[0]), list, (list, tuple)),
    frozenset: _set,
    AbstractSet: _set,
    Mapping: _mapping,
    dict: _mapping,
}
