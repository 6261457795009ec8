"""Frozen dataclasses whose methods are made when they are first used.

`dataclasses` compiles six methods of each class when a module is loaded: a quarter of a millisecond
for each of hundreds of classes, of which a short command uses few. Here only the fields are read
then. The methods are still those of `dataclasses`.
"""

import dataclasses
import threading
from collections.abc import Callable
from typing import Any, Literal, NoReturn, TypeVar, dataclass_transform

T = TypeVar("T")

_LATE = ("__init__", "__repr__", "__eq__", "__hash__")
_MADE = {*_LATE, "__setattr__", "__delattr__"}
_PARAMS = "__dataclass_params__"


@dataclass_transform(field_specifiers=(dataclasses.field,), frozen_default=True)
def dataclass(*, frozen: Literal[True], kw_only: bool = False) -> Callable[[type[T]], type[T]]:
    """Make a class a frozen dataclass, as `dataclasses.dataclass` does."""
    del frozen  # all are, and a reader should see it

    def made(kind: type[T]) -> type[T]:
        if own := _MADE & vars(kind).keys():
            raise TypeError(f"{kind.__name__} has its own {min(own)}: use dataclasses.dataclass")
        late: Any = _with_fields(kind, kw_only=kw_only)
        late.__dataclass_params__ = _Params(late.__dataclass_params__)
        late.__setattr__, late.__delattr__ = _refuse_to_set, _refuse_to_delete
        for name in _LATE:
            setattr(late, name, _Late(late, name))
        return kind

    return made


_READING = threading.local()
"""Say if ours are frozen, while this thread lets the library read the fields of a class."""


def _with_fields(kind: type[T], *, kw_only: bool) -> type[T]:
    """Let the library read the fields of a class, and make nothing."""
    # It mixes no frozen classes with others, and would compile two methods of a frozen one. So ours
    # are none while it reads, unless one of its own is among them: all are frozen then.
    params = [vars(base).get(_PARAMS) for base in kind.__mro__]
    is_below = any(one is not None and not isinstance(one, _Params) for one in params)
    read = dataclasses.dataclass(init=False, repr=False, eq=False, frozen=is_below, kw_only=kw_only)
    _READING.is_frozen = is_below
    try:
        return read(kind)
    finally:
        _READING.is_frozen = True


class _Params:
    """The parameters of a class, for whatever looks at it as at one of the library's."""

    init = repr = eq = True

    def __init__(self, read: Any) -> None:
        self._read = read

    @property
    def frozen(self) -> bool:
        """Return True, as it is, but to this module while it reads fields below the class."""
        return getattr(_READING, "is_frozen", True)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._read, name)


class _Late:
    """A method that is made, with all others of its class, when somebody looks at it."""

    def __init__(self, kind: type, name: str) -> None:
        self._kind = kind
        self._name = name

    def __get__(self, held: object, kind: type | None = None) -> Any:
        _make(self._kind)
        return vars(self._kind)[self._name].__get__(held, kind)


def _make(kind: type) -> None:
    """Let the library make the methods of a class below, and move them up."""
    about = {"__doc__": kind.__doc__, "__qualname__": kind.__qualname__}
    below = type(kind)(kind.__name__, (kind,), {**about, "__module__": kind.__module__})
    dataclasses.dataclass(frozen=True)(below)
    for name in _LATE:
        setattr(kind, name, vars(below)[name])


def _refuse_to_set(_: object, name: str, __: object) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(_: object, name: str) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
