"""Every snippet of the pages is understood: manifests, settings, themes, styles and shell lines.

Python runs in `test_cookbook.py`, calls of plait are parsed in `test_english.py`.
"""

import re
import textwrap
import tomllib
from functools import partial
from pathlib import Path

import anyio
import pytest
import yaml
from textual.css.parse import parse

from engine.agents.script import read_script
from engine.agents.tables import read_table
from engine.spec.load import load_manifest
from engine.spec.pipeline import Manifest
from tui.keys.file import read_key_file
from tui.theming import parse as parse_theme

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"^( *)```([a-z]+)\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
SNIPPETS = [
    (f"{page.relative_to(ROOT)}:{text[: match.start()].count(chr(10)) + 1}", match[2], match[3])
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    for text in [page.read_text()]
    for match in _FENCE.finditer(text)
]
SECTIONS = set(Manifest.model_fields)


def of(*languages: str) -> pytest.MarkDecorator:
    found = [(place, textwrap.dedent(text)) for place, said, text in SNIPPETS if said in languages]
    assert found
    return pytest.mark.parametrize(("place", "text"), found, ids=[place for place, _ in found])


@of("yaml")
def test_a_manifest_a_script_or_a_workflow_is_valid(place: str, text: str):
    keys = set(yaml.safe_load(text))
    if keys <= SECTIONS:
        load_manifest(text.encode(), file=place)
    elif "jobs" in keys:
        assert {"name", "jobs"} <= keys  # test_english.py reads its steps
    else:
        read_script(text, place)


@of("toml")
def test_a_table_a_theme_or_a_setting_is_valid(place: str, text: str):
    found = tomllib.loads(text)
    if "rules" in found:
        read_table(text, place)
    elif "roles" in found:
        parse_theme(text, place)
    elif not set(found) <= {"notify", "hook", "quiet"}:
        assert read_key_file(text, place)[1] == []


@of("css")
def test_a_style_is_valid(place: str, text: str):
    assert list(parse("", text.replace("$role-line", "white"), (place, "")))


@of("console", "sh")
def test_shell_lines_are_shell(place: str, text: str):
    lines = [re.sub(r"^\$ ", "", line) for line in text.splitlines()]
    said = re.sub(r"\[(\w+)\]", r"\1", "\n".join(lines))
    done = anyio.run(partial(anyio.run_process, ["bash", "-n"], input=said.encode(), check=False))
    assert done.stderr == b"", place


def test_every_language_is_tried():
    tried = {"python", "yaml", "toml", "css", "console", "sh"}
    elsewhere = {"sql", "py", "text", "mermaid"}  # test_history_manual.py runs the SQL
    assert {said for _, said, _ in SNIPPETS} <= tried | elsewhere


@pytest.mark.parametrize("wrong", ["pipelines: [{name: a, stepz: []}]", "runtime: {sitez: {}}"])
def test_a_wrong_manifest_is_noticed(wrong: str):
    with pytest.raises(Exception, match=r"stepz|sitez"):
        load_manifest(wrong.encode(), file="page")
