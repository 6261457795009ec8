"""Placeholders: which braces mean something, and which stay as they are."""

import time

import pytest

from engine.spec.placeholders import escaped, placeholders, substitute


@pytest.mark.parametrize(
    ("template", "names"),
    [
        ("{item} {run} {item}", ("item", "run")),
        ("{steps.a-1.output}{steps.b.branch}", ("steps.a-1.output", "steps.b.branch")),
        ("{{item}} { item } {items} {ITEM} {} {steps} {steps.a} {steps.a.b.c}", ()),
        ('{"item": {item}}', ("item",)),
        ("{{run} {run}}", ("run",)),
    ],
)
def test_only_known_names_in_single_braces_are_placeholders(template: str, names: tuple[str, ...]):
    assert placeholders(template) == names


@pytest.mark.parametrize(
    ("template", "filled"),
    [
        ("a {item} b", "a X b"),
        ("{{item}} {{{item}}}", "{item} {{item}}"),
        ("{{item} {item}}", "{X X}"),
        ('{"a": {item}, "b": {}}', '{"a": X, "b": {}}'),
        ("{run}", "{run}"),
    ],
)
def test_a_template_is_filled_in_one_pass(template: str, filled: str):
    assert substitute(template, {"item": "X"}.get) == filled


def test_a_value_is_not_filled_again():
    assert substitute("{item}", {"item": "{run} {{run}}", "run": "no"}.get) == "{run} {{run}}"


@pytest.mark.parametrize(
    "text", ["{item}", "{{item}}", "{{item}", "{item}}}", "{x} {", "{{{run}}}"]
)
def test_an_escaped_text_comes_out_as_it_was(text: str):
    assert substitute(escaped(text), lambda name: f"<{name}>") == text


@pytest.mark.parametrize("text", ["{" * 1_000_000, "{item" * 200_000, "{steps." * 150_000])
def test_a_megabyte_of_braces_is_read_at_once(text: str):
    began = time.process_time()
    assert substitute(text, lambda _: "x") == text
    assert time.process_time() - began < 1
