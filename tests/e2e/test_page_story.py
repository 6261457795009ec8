"""A reader who types what docs/scripted.md says lands a change and undoes it."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.shells import Shell, end_engine

PAGE = Path(__file__).parents[2] / "docs/scripted.md"
WAITS = 3


@pytest.fixture
def empty(shell: Shell) -> Iterator[Shell]:
    yield shell
    end_engine(shell)


def test_the_whole_example_of_the_page_lands_a_change_and_undoes_it(empty: Shell) -> None:
    example = PAGE.read_text().partition("## A whole example")[2].partition("\n## ")[0]
    (manifest,) = re.findall(r"```yaml\n(.*?)```", example, re.DOTALL)
    (typed,) = re.findall(r"```console\n(.*?)```", example, re.DOTALL)
    (empty.folder / "plait.yaml").write_text(manifest)
    lines = [shlex.split(line.removeprefix("$ "), comments=True) for line in typed.splitlines()]
    assert [words[1] for words in lines if words[0] == "plait"] == ["run", "diff", "land", "undo"]

    for program, *words in lines:
        if program == "git":
            empty.git(*words)
        elif program == "cat":
            assert (empty.folder / words[0]).read_text() == "Hello from greet/worker_2\n"
        else:
            done = empty.plait(*words)
            assert done.code == (WAITS if words[0] == "run" else 0), done.err
            assert words[0] != "run" or "`plait land WORKER` lands it" in done.err
            assert words[0] != "diff" or "+Hello from greet/worker_2" in done.out
    assert not (empty.folder / "hello.txt").exists()
