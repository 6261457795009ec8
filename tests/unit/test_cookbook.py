"""The Python of the pages: every snippet runs, in a repository like the page says."""

import ast
import inspect
import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import anyio
import pytest

from engine.messages import merging
from tests.support.library import Workbench, script

ROOT = Path(__file__).parents[2]
PAGES = {page: page.read_text() for page in (ROOT / "README.md", *sorted(ROOT.glob("docs/*.md")))}
SNIPPETS = [
    (page, text[: match.start()].count("\n") + 2, match[1])
    for page, text in PAGES.items()
    for match in re.finditer(r"```python\n(.*?)```", text, re.DOTALL)
]
SILENT = {"README.md", "agents.md"}
CODER = script(
    {"write": {"path": "work.txt", "text": "{prompt}\n"}},
    {"usage": {"input_tokens": 10, "output_tokens": 5, "usd": 0.01}},
    {"result": "did {prompt}"},
    resumed=[{"write": {"path": "parser.py", "text": "{prompt}\n"}}, {"result": "did {prompt}"}],
)


@pytest.mark.parametrize(
    ("page", "line", "snippet"), SNIPPETS, ids=[f"{page.stem}-{n}" for page, n, _ in SNIPPETS]
)
def test_every_snippet_runs(  # noqa: PLR0917 - fixtures are passed by name
    page: Path,
    line: int,
    snippet: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    bench = Workbench(tmp_path, monkeypatch)
    prepare(bench)
    monkeypatch.chdir(bench.project)
    names: dict[str, Any] = {"__name__": "cookbook"}
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    code = compile("\n" * (line - 1) + snippet, str(page), "exec", flags=flags)

    async def run() -> None:
        with anyio.fail_after(60):
            await eval(code, names)  # noqa: S307 - the page is ours

    if code.co_flags & inspect.CO_COROUTINE:
        anyio.run(run)
    else:
        exec(code, names)  # noqa: S102 - the page is ours
    assert capsys.readouterr().out or page.name in SILENT


def prepare(bench: Workbench) -> None:
    agent = {"adapter": "scripted", **CODER}
    manifest = {
        "runtime": {"agent": "claude"},
        "agents": {"claude": agent, "codex": agent},
        "pipelines": [{"name": "p", "steps": [{"name": "s", "run": "true"}]}],
    }
    bench.git.commit({"plait.yaml": json.dumps(manifest), "a.txt": "main\n"}, "main")
    bench.git.git("checkout", "-q", "-b", "feature", "HEAD~1")
    bench.git.commit({"a.txt": "feature\n"}, "feature")
    bench.git.git("checkout", "-q", "main")


def test_every_question_that_is_named_can_be_asked() -> None:
    named = re.findall(
        r"`(?:await engine\.ask\()?([A-Z]\w+)\((run\b[\w, ]*)\)", "".join(PAGES.values())
    )
    for name, words in named:
        takes = [field.name for field in fields(merging.__dict__[name])]
        assert words.split(", ") == takes[: words.count(",") + 1], name
    assert len(named) > 5


def test_there_are_snippets() -> None:
    assert len(SNIPPETS) > 10
