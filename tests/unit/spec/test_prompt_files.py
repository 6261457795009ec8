"""Texts in files are read once and put into the manifest; a problem names a missing one."""

from collections.abc import Callable

import pytest

from engine.errors import SpecError
from engine.spec.load import LARGEST_BYTES, load_manifest
from engine.spec.pipeline import Manifest

SOURCE = """\
agents: {a: {adapter: scripted, script: demo.yaml}}
personas: {p: {prompt_file: p.md}}
pipelines:
- name: x
  steps:
  - {name: s, persona: p, prompt_file: s.md}
"""
FILES = {"demo.yaml": b"say: hi", "p.md": b"You are p.", "s.md": b"\xef\xbb\xbfDo {run}.\n"}


def read_from(files: dict[str, bytes]) -> Callable[[str], bytes]:
    def read(path: str) -> bytes:
        if path not in files:
            raise FileNotFoundError(2, "No such file or directory", path)
        return files[path]

    return read


def load(source: str = SOURCE, files: dict[str, bytes] | None = None) -> Manifest:
    return load_manifest(source.encode(), file="f", read=read_from(files or FILES))


def problems(source: str = SOURCE, **files: bytes) -> list[str]:
    with pytest.raises(SpecError) as caught:
        load(source, files)
    return [str(problem) for problem in caught.value.problems]


def test_files_are_read_into_the_manifest():
    manifest = load()
    step, persona = manifest.pipelines[0].steps[0], manifest.personas["p"]
    assert (step.prompt, step.prompt_file) == ("Do {run}.\n", None)
    assert (persona.prompt, persona.prompt_file) == ("You are p.", None)
    assert manifest.agents["a"].script == "say: hi\n", "one line alone would look like a path"


def test_missing_files_are_told_where_they_are_named():
    files = {"p.md": b"\xff", "s.md": b" \n"}
    with pytest.raises(SpecError) as caught:
        load(files=files)
    assert str(caught.value).split("\n") == [
        "f:1:41: agents.a.script: 'demo.yaml' cannot be read: No such file or directory",
        "f:2:29: personas.p.prompt_file: 'p.md' is not UTF-8",
        "f:6:40: pipelines[0].steps[0].prompt_file: 's.md' is empty",
    ]


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"a\0b", "is not text: it has a NUL byte"),
        (b"a" * (LARGEST_BYTES + 1), "has 262145 bytes; plait reads at most 262144"),
    ],
)
def test_what_is_no_prompt_is_refused(data: bytes, complaint: str):
    with pytest.raises(SpecError, match=complaint):
        load(files=FILES | {"s.md": data})


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x", ""])
def test_a_path_outside_is_never_read(path: str):
    asked: list[str] = []

    def read(name: str) -> bytes:
        asked.append(name)
        return b"x"

    source = SOURCE.replace("s.md", f"'{path}'")
    with pytest.raises(SpecError, match="a path inside the repository"):
        load_manifest(source.encode(), file="f", read=read)
    assert asked == ["p.md", "demo.yaml"]


def test_a_reader_that_refuses_is_told_in_its_words():
    def read(name: str) -> bytes:
        raise ValueError("leads out of the repository")

    with pytest.raises(SpecError, match=r"'s\.md' leads out of the repository"):
        load_manifest(SOURCE.encode(), file="f", read=read)


def test_without_a_reader_only_scripts_stay_paths():
    source = SOURCE.replace("prompt_file", "prompt")
    manifest = load_manifest(source.encode(), file="f")
    assert manifest.agents["a"].script == "demo.yaml"
    with pytest.raises(SpecError, match="cannot be read here"):
        load_manifest(SOURCE.encode(), file="f")


def test_a_script_in_place_is_no_path():
    inline = SOURCE.replace("demo.yaml", "[{say: hi}]")
    assert load(inline).agents["a"].script == ({"say": "hi"},)
    block = SOURCE.replace(
        "{adapter: scripted, script: demo.yaml}", '{adapter: scripted, script: "a\\nb"}'
    )
    assert load(block).agents["a"].script == "a\nb"


def test_a_placeholder_in_a_file_is_checked_at_the_file():
    with pytest.raises(SpecError) as caught:
        load(files=FILES | {"s.md": b"{steps.t.output}"})
    assert str(caught.value).startswith("f:6:40: pipelines[0].steps[0].prompt: {steps.t.output}")


def test_both_texts_are_one_too_many():
    source = SOURCE.replace("prompt_file: s.md", "prompt_file: s.md, prompt: x")
    with pytest.raises(SpecError, match="duplicates `prompt`"):
        load(source)
