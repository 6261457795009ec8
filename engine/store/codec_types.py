"""One codec per type, built once from its type hints: records, unions and containers.

Knows types, not files. A mistake in a type (two members of a union that JSON cannot tell apart, a
field called `type`) is a `TypeError` when its codec is built, not a wrong value when it is read.
"""

import json
import types
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from functools import cache, cached_property
from typing import Annotated, Any, Literal, NewType, Union, get_args, get_origin, get_type_hints

from engine.store.codec_scalars import (
    SCALARS,
    Codec,
    JsonValue,
    Misfit,
    Shape,
    as_is,
    enum_codec,
    literal_codec,
    misfit,
)

TAG = "type"
"""The key of the class name; no field of a dataclass may have this name."""


@cache
def codec_of(kind: Any) -> Codec:
    """The codec of a type: a class, a union, or one of the containers known here."""
    if kind in SCALARS:
        return SCALARS[kind]
    if isinstance(kind, NewType):
        return codec_of(kind.__supertype__)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return enum_codec(kind)
    if isinstance(kind, type) and is_dataclass(kind):
        record = _Record(kind)
        return Codec(record.encode, record.decode, Shape.OBJECT, (kind,))
    origin, args = get_origin(kind), get_args(kind)
    build = _GENERICS.get(origin)
    if build is None:
        raise TypeError(f"nothing known of how to write {kind!r} as JSON")
    return build(args)


class _Record:
    """A dataclass. Its fields' codecs are built at first use, because it may hold its own kind."""

    def __init__(self, kind: type) -> None:
        self._kind = kind
        self._name = kind.__name__
        if any(part.name == TAG for part in fields(kind)):
            raise TypeError(f"{self._name} has a field called {TAG!r}, the key of the class name")

    @cached_property
    def _parts(self) -> tuple[tuple[str, Codec, bool], ...]:
        hints = get_type_hints(self._kind, include_extras=True)
        return tuple(
            (part.name, codec_of(hints[part.name]), _is_required(part))
            for part in fields(self._kind)
            if part.init
        )

    def encode(self, value: Any) -> JsonValue:
        written: dict[str, JsonValue] = {}
        for key, codec, _ in self._parts:
            held = getattr(value, key)
            written[key] = held if codec.is_plain else _placed(key, codec.encode, held)
        return written

    def decode(self, value: Any) -> Any:
        if type(value) is not dict or value.get(TAG, self._name) != self._name:
            raise misfit(f"a {self._name}", value)
        held = {}
        for key, codec, is_required in self._parts:
            if key in value:
                held[key] = _placed(key, codec.decode, value[key])
            elif is_required:
                raise Misfit(f"{key} is missing in {self._name}")
        try:
            return self._kind(**held)
        except (TypeError, ValueError) as error:  # what its own __post_init__ refuses
            raise Misfit(f"no {self._name}: {error}") from error


def _is_required(part: Field[Any]) -> bool:
    return part.default is MISSING and part.default_factory is MISSING


def _placed(place: object, code: Callable[[Any], Any], value: Any) -> Any:
    try:
        return code(value)
    except Misfit as error:
        error.place.append(str(place))
        raise


def _union(args: tuple[Any, ...]) -> Codec:
    """A union. More than one record are told apart by their tag, all else by its shape."""
    members = _members(args)
    by_shape = {member.shape: member for member in members}
    if len(by_shape) < len(members) or Shape.SEVERAL in by_shape:
        raise TypeError(f"JSON cannot tell apart the members of {' | '.join(map(str, args))}")
    wanted = " or ".join(by_shape)

    def encode(value: Any) -> JsonValue:
        for member in members:
            if isinstance(value, member.kinds):
                return member.encode(value)
        raise misfit(wanted, value)

    def decode(value: Any) -> Any:
        member = by_shape.get(_SHAPES.get(type(value), Shape.SEVERAL))
        if member is None:
            raise misfit(wanted, value)
        return member.decode(value)

    kinds = tuple(kind for member in members for kind in member.kinds)
    shape = members[0].shape if len(members) == 1 else Shape.SEVERAL
    return Codec(encode, decode, shape, kinds, is_plain=all(m.is_plain for m in members))


def _members(args: tuple[Any, ...]) -> list[Codec]:
    if {int, float} <= set(args):
        args = tuple(arg for arg in args if arg is not int)  # JSON has one kind of number
    records = tuple(arg for arg in args if is_dataclass(arg) and arg not in SCALARS)
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
            raise misfit(f"one of {', '.join(by_name)}", value)
        name, codec = by_kind[type(value)]
        written = codec.encode(value)
        return {TAG: name, **written} if isinstance(written, dict) else written

    def decode(value: Any) -> Any:
        codec = by_name.get(str(value.get(TAG))) if type(value) is dict else None
        if codec is None:
            raise misfit(f"one of {', '.join(by_name)}", value)
        return codec.decode(value)

    return Codec(encode, decode, Shape.OBJECT, records)


def _sequence(args: tuple[Any, ...]) -> Codec:
    """`tuple[X, ...]`, `tuple[X, Y]` or `Sequence[X]`; all of them are read as tuples."""
    if len(args) == 2 and args[1] is Ellipsis:  # noqa: PLR2004 - tuple[X, ...]
        return _many(codec_of(args[0]), tuple, as_is, (tuple, list))
    parts = [codec_of(arg) for arg in args]

    def encode(value: Any) -> JsonValue:
        if len(value) != len(parts):
            raise misfit(f"{len(parts)} values", value)
        return [_placed(i, parts[i].encode, item) for i, item in enumerate(value)]

    def decode(value: Any) -> Any:
        if type(value) is not list or len(value) != len(parts):
            raise misfit(f"a list of {len(parts)}", value)
        return tuple(_placed(i, parts[i].decode, item) for i, item in enumerate(value))

    return Codec(encode, decode, Shape.LIST, (tuple, list))


def _many(
    item: Codec,
    make: Callable[[Any], Any],
    order: Callable[[list[JsonValue]], list[JsonValue]],
    kinds: tuple[type, ...],
) -> Codec:
    def encode(value: Any) -> JsonValue:
        if item.is_plain:
            return order(list(value))
        return order([_placed(i, item.encode, held) for i, held in enumerate(value)])

    def decode(value: Any) -> Any:
        if type(value) is not list:
            raise misfit(Shape.LIST, value)
        return make(_placed(i, item.decode, held) for i, held in enumerate(value))

    return Codec(encode, decode, Shape.LIST, kinds)


def _set(args: tuple[Any, ...]) -> Codec:
    """A set, written in a fixed order, so that equal sets make equal texts."""
    return _many(
        codec_of(args[0]),
        frozenset,
        lambda written: sorted(written, key=json.dumps),
        (frozenset, set),
    )


def _mapping(args: tuple[Any, ...]) -> Codec:
    key, held = codec_of(args[0]), codec_of(args[1])
    if key.shape is not Shape.TEXT:
        raise TypeError(f"the keys of a JSON object are texts, not {args[0]!r}")

    def encode(value: Any) -> JsonValue:
        return {str(key.encode(k)): _placed(k, held.encode, v) for k, v in value.items()}

    def decode(value: Any) -> Any:
        if type(value) is not dict:
            raise misfit(Shape.OBJECT, value)
        return {_placed(k, key.decode, k): _placed(k, held.decode, v) for k, v in value.items()}

    return Codec(encode, decode, Shape.OBJECT, (Mapping,))


_SHAPES: dict[type, Shape] = {
    type(None): Shape.NULL,
    bool: Shape.BOOL,
    int: Shape.NUMBER,
    float: Shape.NUMBER,
    str: Shape.TEXT,
    list: Shape.LIST,
    dict: Shape.OBJECT,
}
_GENERICS: dict[Any, Callable[[tuple[Any, ...]], Codec]] = {
    Union: _union,
    types.UnionType: _union,
    Annotated: lambda args: codec_of(args[0]),
    Literal: literal_codec,
    tuple: _sequence,
    Sequence: lambda args: _sequence((*args, ...)),
    list: lambda args: _many(codec_of(args[0]), list, as_is, (list, tuple)),
    frozenset: _set,
    AbstractSet: _set,
    Mapping: _mapping,
    dict: _mapping,
}
