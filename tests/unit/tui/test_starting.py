"""A prompt is the path of a manifest only where it can be meant as one."""

from pathlib import Path

import pytest

from engine.errors import EngineError
from tui.kit.starting import Wanted, _plan, manifest_in


@pytest.mark.parametrize("text", ["plait.yaml", "ci/n.yml\n", "~/plait.yaml", "my plans/one.yaml"])
def test_a_path_is_a_manifest(text: str, tmp_path: Path):
    (tmp_path / "my plans").mkdir()
    (tmp_path / "my plans" / "one.yaml").touch()
    assert manifest_in(text, tmp_path) == text.strip()


@pytest.mark.parametrize(
    "text",
    [
        "Bump the version in docs/mkdocs.yml",
        "~ is not expanded in a.yaml",
        "Look at this:\nplait.yaml",
        "x" * 5000 + " a.yaml",
        "fix it",
    ],
)
def test_a_sentence_that_ends_like_a_manifest_is_a_prompt(text: str, tmp_path: Path):
    assert manifest_in(text, tmp_path) == ""


@pytest.mark.parametrize("path", ["~nobody-of-that-name/x.yaml", "gone.yaml"])
def test_a_manifest_that_cannot_be_found_is_refused_in_words(path: str, tmp_path: Path):
    with pytest.raises(EngineError, match=path.partition("/")[0]):
        _plan(Wanted(prompt=path), tmp_path)


@pytest.mark.parametrize("count", ["9" * 5000, "\u00b2", "x", "-1"])
def test_what_is_no_count_is_refused_in_words(count: str, tmp_path: Path):
    with pytest.raises(EngineError, match="is not a number of candidates"):
        _plan(Wanted(prompt="fix it", candidates=count), tmp_path)
