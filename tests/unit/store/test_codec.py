from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, Optional

import pytest

from engine.core import facts
from engine.errors import StoreError
from engine.ids import AttemptId, RunId, WorkerId
from engine.limits import Dimension, LimitHit
from engine.messages.events import Event, LimitHitSeen, WorkerMoved
from engine.phases import Phase, StopCause
from engine.store.codec import dump, from_json, load, to_json

RUN = RunId("a1")
WORKER = WorkerId("implement", 2)
ATTEMPT = AttemptId(RUN, WORKER, 3)


class Color(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Circle:
    radius: float


@dataclass(frozen=True)
class Square:
    side: int
    color: Color = Color.RED


@dataclass(frozen=True)
class Node:
    name: str
    children: tuple["Node", ...] = ()


@dataclass(frozen=True, kw_only=True)
class Everything:
    text: str = "é\n\udcff"
    whole: int = 3
    real: float = 0.5
    truth: bool = True
    raw: bytes = b"src/\xff\x00\xc3\xa9\xed\xb2\x80"
    nothing: None = None
    maybe: int | None = None
    old_style: Optional[str] = "x"  # noqa: UP045 - it is read too
    worker: WorkerId = WORKER
    attempt: AttemptId = ATTEMPT
    run: RunId = RUN
    path: Path = Path("/tmp/a b")  # noqa: S108 - only a value
    color: Color = Color.BLUE
    side: Literal["target", "incoming"] = "target"
    many: tuple[int, ...] = (1, 2)
    pair: tuple[str, WorkerId] = ("a", WORKER)
    shapes: tuple[Circle | Square, ...] = (Circle(1.0), Square(2))
    shape: Circle | Square | str | None = None
    lone: Circle | None = Circle(2)
    colors: frozenset[Color] = frozenset({Color.RED, Color.BLUE})
    by_worker: Mapping[WorkerId, Square] = field(default_factory=lambda: {WORKER: Square(1)})
    number: float | int = 7
    free: Any = None
    tree: Node = Node("a", (Node("b"), Node("c", (Node("d"),))))


def test_everything_comes_back_as_it_was():
    assert from_json(Everything, to_json(Everything())) == Everything()


@pytest.mark.parametrize("shape", [Circle(1.5), Square(2, Color.BLUE), "round", None])
def test_a_union_comes_back_as_its_member(shape: Any):
    held = Everything(shape=shape)
    assert from_json(Everything, to_json(held)) == held


def test_the_text_is_plain_ascii_json_with_the_class_first():
    assert to_json(Square(2)) == '{"type":"Square","side":2,"color":"red"}'
    assert to_json(Everything()).isascii()


def test_only_what_a_union_leaves_open_is_tagged():
    written = dump(Everything())
    assert written["shapes"] == [
        {"type": "Circle", "radius": 1.0},
        {"type": "Square", "side": 2, "color": "red"},
    ]
    assert written["lone"] == {"radius": 2}
    assert written["by_worker"] == {"implement/worker_2": {"side": 1, "color": "red"}}


def test_equal_sets_make_equal_texts():
    written = dump(Everything(colors=frozenset({Color.RED, Color.BLUE})))
    assert written["colors"] == ["blue", "red"]


def test_facts_and_events_come_back():
    fact = facts.AttemptEnded(
        worker=WORKER,
        attempt=1,
        at=1.25,
        ok=False,
        cause=StopCause.MEMORY,
        limit=LimitHit(dimension=Dimension.MEMORY, allowed=512, seen=700.5, unit="MB"),
    )
    assert from_json(facts.Fact, to_json(fact)) == fact
    event = WorkerMoved(
        worker="implement/worker_2", attempt=1, before=Phase.RUNNING, after=Phase.COLLECTING
    )
    assert from_json(Event, to_json(event)) == event
    assert from_json(WorkerMoved, to_json(event)) == event


def test_every_kind_of_fact_and_event_has_a_codec():
    for kind in (*facts.Fact.__args__, *Event.__args__):
        with suppress(StoreError):  # something is missing; a TypeError would be a lack of ours
            load(kind, {})


def test_unknown_keys_are_passed_over_and_missing_ones_take_their_defaults():
    assert load(Square, {"side": 1, "from_the_future": [1]}) == Square(1)
    with pytest.raises(StoreError, match="side is missing in Square"):
        load(Square, {"color": "red"})


@pytest.mark.parametrize(
    ("kind", "value", "complaint"),
    [
        (Square, {"side": "1"}, "side: expected a whole number, found '1'"),
        (Square, {"side": True}, "side: expected a whole number, found True"),
        (Square, {"side": 1, "color": "green"}, "color: expected one of 'red', 'blue', found 'g"),
        (Square, {"side": 1, "color": []}, "color: expected one of"),
        (Square, [], r"expected a Square, found \[\]"),
        (Square, {"type": "Circle", "side": 1}, "expected a Square"),
        (Circle | Square, {"side": 1}, "expected one of Circle, Square"),
        (Circle | Square, {"type": ["Square"]}, "expected one of Circle, Square"),
        (Circle, {"radius": "x"}, "radius: expected a number"),
        (Everything, {"tree": {"name": "a", "children": [{"name": 1}]}}, "tree.children.0.name: "),
        (Everything, {"pair": ["a"]}, "pair: expected a list of 2"),
        (Everything, {"pair": ["a", "nobody"]}, "pair.1: expected a worker's name, found 'nobody'"),
        (Everything, {"many": {}}, "many: expected a list"),
        (Everything, {"worker": 7}, "worker: expected a worker's name, found 7"),
        (Everything, {"by_worker": {"x": {"side": 1}}}, "by_worker.x: expected a worker's name"),
        (Everything, {"by_worker": {"a/worker_1": {}}}, "by_worker.a/worker_1: side is missing"),
        (Everything, {"shape": 3}, "shape: expected a text or null or an object|shape: expected"),
        (Everything, {"side": "both"}, "side: expected one of 'target', 'incoming'"),
        (Everything, {"text": None}, "text: expected a text, found None"),
    ],
)
def test_a_wrong_value_is_refused_with_its_place(kind: Any, value: Any, complaint: str):
    with pytest.raises(StoreError, match=complaint):
        load(kind, value)


def test_what_a_constructor_refuses_is_refused_with_its_place():
    @dataclass(frozen=True)
    class Positive:
        number: int

        def __post_init__(self) -> None:
            if self.number < 0:
                raise ValueError("it must be positive")

    with pytest.raises(StoreError, match="no Positive: it must be positive"):
        load(Positive, {"number": -1})


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "1" * 5_000, "null", '"Square"'])
def test_a_text_that_is_no_record_is_refused(text: str):
    with pytest.raises(StoreError, match="not a Square"):
        from_json(Square, text)


def test_what_json_cannot_carry_is_refused_when_it_is_written():
    with pytest.raises(StoreError, match="radius: expected a finite number, found nan"):
        to_json(Circle(float("nan")))
    with pytest.raises(StoreError, match="Everything cannot be written"):
        to_json(Everything(free=object()))
    with pytest.raises(StoreError, match="shape: expected"):
        to_json(Everything(shape=Node("a")))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="int"):
        dump(3)


@dataclass(frozen=True)
class Ambiguous:
    either: str | bytes


@dataclass(frozen=True)
class Tagged:
    type: str


@dataclass(frozen=True)
class Unwritable:
    held: complex


@dataclass(frozen=True)
class OddKeys:
    held: Mapping[int, str]


@pytest.mark.parametrize(
    ("kind", "complaint"),
    [
        (Ambiguous, "cannot tell apart"),
        (Tagged, "has a field called 'type'"),
        (Unwritable, "has no JSON form"),
        (OddKeys, "keys of a JSON object are texts"),
    ],
)
def test_a_type_that_cannot_be_told_apart_is_a_mistake_of_ours(kind: Any, complaint: str):
    with pytest.raises(TypeError, match=complaint):
        load(kind, {"type": kind.__name__, "either": "x", "held": {}})


def test_an_event_of_another_name_is_no_member():
    hit = LimitHitSeen(
        worker="a/worker_1",
        attempt=1,
        hit=LimitHit(dimension=Dimension.CPU, allowed=1, seen=2, unit="s"),
    )
    with pytest.raises(StoreError, match="expected a WorkerMoved"):
        from_json(WorkerMoved, to_json(hit))
