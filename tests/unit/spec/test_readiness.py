"""Test what the grammar knows and this version cannot do is refused with its reason."""

import pytest

from engine.errors import SpecError
from engine.spec.load import load_manifest
from engine.spec.readiness import UNREADY, Unready, unready
from engine.spec.tree import from_plain

SOURCE = """\
pipelines: [{{name: p, steps: [{{name: s, agent: claude, prompt: x, choose: {choose}}}]}}]
"""


def test_what_is_not_built_is_refused_at_its_place():
    source = SOURCE.format(choose="agent")
    with pytest.raises(SpecError) as caught:
        load_manifest(source.encode(), file="f")
    keys = [(p.line, p.column, p.key) for p in caught.value.problems]
    assert keys == [(1, 75, "pipelines[0].steps[0].choose")]
    for problem, row in zip(caught.value.problems, UNREADY, strict=True):
        assert problem.message == f"is not possible: {row.reason}"


def test_other_values_of_the_same_keys_are_fine():
    source = SOURCE.format(choose="human")
    assert load_manifest(source.encode(), file="f").pipelines[0].steps[0].choose == "human"


@pytest.mark.parametrize(
    ("row", "refused"),
    [
        (Unready(path="a.network", reason="r", unless=("open",)), ["a.network"]),
        (Unready(path="a.network", reason="r", unless=("open", "none")), []),
        (Unready(path="a.network", reason="r", only=("x",)), []),
        (Unready(path="a.*", reason="r"), ["a.deep", "a.list", "a.network"]),
        (Unready(path="a.list.*", reason="r"), ["a.list.0", "a.list.1"]),
        (Unready(path="a.list.*.x", reason="r", only=("1",)), ["a.list.1.x"]),
        (Unready(path="a", reason="r"), ["a"]),
        (Unready(path="network", reason="r"), []),
    ],
)
def test_a_row_matches_its_path_and_values(row: Unready, refused: list[str]):
    tree = from_plain({"a": {"network": "none", "list": [{"x": 2}, {"x": 1}], "deep": {"y": 1}}})
    found = [".".join(map(str, path)) for path, _ in unready(tree, (row,))]
    assert sorted(found) == refused
