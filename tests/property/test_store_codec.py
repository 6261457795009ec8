"""Whatever bytes, texts and numbers a record holds, they come back exactly."""

from collections.abc import Mapping
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from engine.ids import WorkerId
from engine.store.codec import from_json, to_json


@dataclass(frozen=True, kw_only=True)
class Held:
    raw: bytes
    text: str
    real: float
    whole: int
    paths: tuple[bytes, ...]
    workers: Mapping[WorkerId, bool | None]


WORKERS = st.builds(
    WorkerId, st.from_regex(r"[a-z0-9][a-z0-9_-]{0,39}", fullmatch=True), st.integers(0, 99)
)
HELD = st.builds(
    Held,
    raw=st.binary(),
    text=st.text(),
    real=st.floats(allow_nan=False, allow_infinity=False),
    whole=st.integers(),
    paths=st.lists(st.binary()).map(tuple),
    workers=st.dictionaries(WORKERS, st.booleans() | st.none()),
)


@given(HELD)
def test_a_record_comes_back_exactly(held: Held):
    assert from_json(Held, to_json(held)) == held
