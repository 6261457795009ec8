"""Reading YAML: what is understood, what is refused, and where it says so."""

import pytest
import yaml

from engine.spec import yaml_text
from engine.spec.tree import Fields, Items, Position, Scalar, plain
from engine.spec.yaml_text import read_yaml

LOADERS = [pytest.param(yaml_text._LOADER, id="built"), pytest.param(yaml.SafeLoader, id="pure")]


@pytest.fixture(params=LOADERS, autouse=True)
def _each_parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_text, "_LOADER", request.param)


def values(source: str) -> object:
    root, problems = read_yaml(source.encode(), file="f")
    assert not problems, problems
    assert root is not None
    return plain(root)


def complaints(source: str | bytes) -> list[str]:
    data = source if isinstance(source, bytes) else source.encode()
    return [f"{p.line}:{p.column} {p.key}|{p.message}" for p in read_yaml(data, file="f")[1]]


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("true", True),
        ("false", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("0", 0),
        ("-12", -12),
        ("1.50", 1.5),
        ("1.0e-07", 1e-07),
        *[
            (w, w)
            for w in ("yes", "no", "on", "off", "True", "FALSE", "Null", "012", "0x1f", "0o7")
        ],
        *[
            (w, w)
            for w in ("1_000", "1e3", ".5", ".inf", ".nan", "2026-01-02", "12:30:45", "=", "+1")
        ],
        ("'true'", "true"),
        ('"1"', "1"),
    ],
)
def test_a_word_means_one_thing(word: str, value: object):
    found = values(f"a: {word}")
    assert found == {"a": value}
    assert isinstance(found, dict)
    assert type(found["a"]) is type(value)


def test_every_node_knows_its_place():
    root, _ = read_yaml(b"a:\n  - x\n  - {b: 1}\n", file="f")
    item = Fields({"b": Scalar(1, Position(3, 9))}, Position(3, 5), {"b": Position(3, 6)})
    items = Items((Scalar("x", Position(2, 5)), item), Position(2, 3))
    assert root == Fields({"a": items}, Position(1, 1), {"a": Position(1, 1)})


def test_an_alias_stands_for_what_it_names():
    assert values("a: &x [1, {b: 2}]\nc: *x\n") == {"a": (1, {"b": 2}), "c": (1, {"b": 2})}


def test_a_byte_order_mark_is_not_a_character():
    assert read_yaml(b"\xef\xbb\xbfa: 1", file="f")[0] == Fields(
        {"a": Scalar(1, Position(1, 4))}, Position(1, 1), {"a": Position(1, 1)}
    )


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("a: 1\nb: 2\na: 3\n", "3:1 a|is written twice; first on line 1"),
        ("a: {b: 1, b: 2}", "1:11 b|is written twice; first on line 1"),
        ("<<: {a: 1}\n", "1:1 <<|merge keys are not supported; write the keys out"),
        ("a: 1\n---\nb: 2\n", "2:1 |a second document starts here; a manifest is one document"),
        ("a:\n\tb: 1\n", "2:1 |a tab cannot indent; use spaces"),
        ("a: *b\n", "1:4 |*b does not refer to an anchor that is complete before it"),
        ("a: &a [*a]\n", "1:8 |*a does not refer to an anchor that is complete before it"),
        ("a: &b c\n*b : 1\n", "2:1 |an alias cannot be a key"),
        ("[a]: 1\n", "1:1 |a key is text, not a list or a mapping"),
        ("a: !!python/name:os.system x\n", None),
        (
            "a: !!str 1\n",
            "1:4 |the tag 'tag:yaml.org,2002:str' is not supported; write only the value",
        ),
        ("a: ! 1\n", "1:4 |the tag '!' is not supported; write only the value"),
        ("", "1:1 |the file is empty; `plait init` writes a manifest"),
        ("# only a comment\n", "1:1 |the file is empty; `plait init` writes a manifest"),
        (b"a: b\nc\xff: d", "2:2 |the file is not UTF-8: byte 0xff"),
        (b"a: b\x00", "1:5 |the character U+0000 is not allowed in a manifest"),
        ("a: b\n\x1b[2J", "2:1 |the character U+001B is not allowed in a manifest"),
        ("[" * 40, "1:33 |this is nested deeper than 32 levels"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(source: str | bytes, complaint: str | None):
    found = complaints(source)
    assert found == [complaint] if complaint else len(found) == 1


def test_every_repeated_key_is_told_at_once():
    assert len(complaints("a: 1\na: 2\nb: {c: 1, c: 2}\nb: 3\n")) == 3


def test_broken_yaml_is_told_where_it_breaks():
    assert complaints('a: 1\nb: "open\n')[0].startswith(("3:1 |this is not YAML", "2:4 |this is"))


def test_an_alias_bomb_is_refused_by_arithmetic():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 30)]
    assert complaints("\n".join(lines)) == ["4:5 |a manifest holds at most 20000 values"]


def test_aliases_cannot_nest_deeper_than_brackets():
    deep = "[" * 20 + "x" + "]" * 20
    chain = "\n".join(f"a{i}: &a{i} {'[' * 20}*a{i - 1}{']' * 20}" for i in range(1, 500))
    assert "nested deeper than 32 levels" in complaints(f"a0: &a0 {deep}\n{chain}")[0]


def test_too_many_bytes_are_not_even_parsed():
    assert "at most 1048576" in complaints(b"a" * (yaml_text.LARGEST_BYTES + 1))[0]
    assert not complaints(b"a: " + b"b" * (yaml_text.LARGEST_BYTES - 3))


def test_too_many_values_stop_the_reading():
    assert complaints("- a\n" * 20_001)[0].endswith("a manifest holds at most 20000 values")
    assert not complaints("- a\n" * 19_999)
