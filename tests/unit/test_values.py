"""Dataclasses that are made late are those of the library in all but the time."""

import dataclasses
import inspect
import pickle
import pprint
import subprocess  # noqa: TID251  what is made must be watched in a fresh interpreter
import sys
import threading
from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass, field, fields, is_dataclass, replace
from typing import Any, ClassVar, Generic, TypeVar

import pytest

from engine import values

T = TypeVar("T")


def shapes(make: Any) -> dict[str, type[Any]]:
    """Return classes of all kinds that the house has, made by one of the two."""

    @make(frozen=True)
    class Plain:
        """Two fields, one of them with a default."""

        a: int
        b: tuple[int, ...] = ()

        def __post_init__(self) -> None:
            if self.a < 0:
                raise ValueError("below zero")

    @make(frozen=True, kw_only=True)
    class Below(Plain):
        """Fields of its own behind those of another."""

        c: list[int] = field(default_factory=list, compare=False, repr=False)
        known: ClassVar[int] = 3

        @property
        def sum(self) -> int:
            return self.a + sum(self.c)

    @make(frozen=True)
    class Empty(Plain, Generic[T]):
        """Nothing of its own."""

    return {"Plain": Plain, "Below": Below, "Empty": Empty}


OURS, THEIRS = shapes(values.dataclass), shapes(dataclass)
DEEDS: dict[str, Callable[[type[Any]], object]] = {
    "made": lambda kind: repr(kind(1, (2,))).partition("shapes")[2],
    "by name": lambda kind: repr(kind(b=(1,), a=2)),
    "equal": lambda kind: (
        kind(1) == kind(1),
        kind(1) == kind(2),
        kind(1) == 1,
        kind(1) != kind(1),
    ),
    "hash": lambda kind: (hash(kind(1)) == hash(kind(1)), hash(kind(1, (2,))) == hash((1, (2,)))),
    "replaced": lambda kind: replace(kind(1), a=5).a,
    "refused": lambda kind: replace(kind(1), a=-1),
    "too few": lambda kind: kind(),
    "unknown": lambda kind: kind(1, z=1),
    "set": lambda kind: setattr(kind(1), "a", 2),
    "deleted": lambda kind: delattr(kind(1), "a"),
    "positions": lambda kind: kind.__match_args__,
    "signature": lambda kind: str(inspect.signature(kind)),
    "fields": lambda kind: [(one.name, one.kw_only, one.compare) for one in fields(kind)],
    "a dataclass": is_dataclass,
    "doc": lambda kind: kind.__doc__,
    "as a dict": lambda kind: dataclasses.asdict(kind(1)),
}


def outcome(deed: Callable[[type[Any]], object], kind: type[Any]) -> tuple[str, str]:
    try:
        return "", str(deed(kind))
    except (TypeError, ValueError, FrozenInstanceError) as error:
        return type(error).__name__, str(error)


@pytest.mark.parametrize("deed", sorted(DEEDS))
@pytest.mark.parametrize("shape", sorted(OURS))
def test_a_class_does_what_one_of_the_library_does(shape: str, deed: str):
    assert outcome(DEEDS[deed], OURS[shape]) == outcome(DEEDS[deed], THEIRS[shape])


@pytest.mark.parametrize("deed", sorted(DEEDS))
def test_it_does_so_also_as_the_first_thing_that_it_ever_does(deed: str):
    for shape, kind in shapes(values.dataclass).items():
        assert outcome(DEEDS[deed], kind) == outcome(DEEDS[deed], THEIRS[shape])


@values.dataclass(frozen=True)
class Kept:
    """At the top of a module, so that it can be pickled."""

    a: int


def test_it_is_pickled_and_is_matched():
    assert pickle.loads(pickle.dumps(Kept(3))) == Kept(3)  # noqa: S301  it is our own
    match Kept(3):
        case Kept(a):
            assert a == 3


@pytest.mark.parametrize("is_met", [False, True])
def test_classes_of_the_library_and_ours_inherit_from_each_other(is_met: bool):  # noqa: FBT001
    kind: Any = shapes(values.dataclass)["Plain"]
    if is_met:
        kind(1)

    @dataclass(frozen=True, kw_only=True)
    class Theirs(kind):
        """One of the library's below."""

        c: int = 3

    @values.dataclass(frozen=True, kw_only=True)
    class Ours(Theirs):
        """One of ours below that."""

        d: int = 4

    assert Ours(1, c=5) == Ours(1, c=5, d=4)
    assert [one.name for one in fields(Ours)] == ["a", "b", "c", "d"]
    assert "c=5, d=4" in repr(Ours(1, c=5))
    for held in (Theirs(1), Ours(1)):
        with pytest.raises(FrozenInstanceError):
            held.a = 2
    with pytest.raises(TypeError, match="cannot inherit non-frozen"):

        @dataclass
        class Loose(kind):
            """As the library refuses it."""


def test_it_is_printed_and_has_parameters_like_one_of_the_library():
    printed = []
    for kind in (OURS["Plain"], THEIRS["Plain"]):
        params = vars(kind)["__dataclass_params__"]
        flags = (params.frozen, params.repr, params.init, params.eq, params.order)
        assert flags == (True, True, True, True, False)
        printed.append(pprint.pformat(kind(1, tuple(range(40)))))
    assert printed[0] == printed[1]
    assert "\n" in printed[0]


def test_many_threads_may_meet_it_first():
    kind = shapes(values.dataclass)["Below"]
    start, met = threading.Barrier(8), []

    def meet() -> None:
        start.wait()
        met.append(kind(1, c=[2]).sum)

    threads = [threading.Thread(target=meet) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert met == [3] * 8


def test_a_method_of_its_own_is_refused():
    with pytest.raises(TypeError, match="has its own __repr__"):

        @values.dataclass(frozen=True)
        class Own:
            """One that the library would leave alone."""

            def __repr__(self) -> str:
                return "own"


MADE = """
import importlib, sys
for room in ("core.facts", "core.effects", "core.state", "messages.commands", "messages.events"):
    importlib.import_module(f"engine.{room}")
from engine.values import _Late
kinds = {
    kind
    for name, module in sys.modules.items() if name.startswith("engine.")
    for kind in vars(module).values()
    if isinstance(kind, type) and "__dataclass_fields__" in vars(kind)
}
late = {kind for kind in kinds if isinstance(vars(kind)["__init__"], _Late)}
print(len(late), len(kinds))
"""


def test_loading_the_core_makes_next_to_none():
    done = subprocess.run(
        [sys.executable, "-c", MADE], capture_output=True, text=True, check=True, timeout=60
    )
    late, kinds = map(int, done.stdout.split())
    assert kinds > 150
    assert late > 0.85 * kinds
