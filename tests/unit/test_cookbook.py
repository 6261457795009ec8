"""The cookbook's Python half: every snippet runs, in a repository like the page says."""

import ast
import inspect
import json
import re
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.library import Workbench, script

PAGE = Path(__file__).parents[2] / "docs/cookbook.md"
SNIPPETS = [
    (PAGE.read_text()[: match.start()].count("\n") + 2, match[1])
    for match in re.finditer(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
]
CODER = script(
    {"write": {"path": "work.txt", "text": "{prompt}\n"}},
    {"usage": {"input_tokens": 10, "output_tokens": 5, "usd": 0.01}},
    {"result": "did {prompt}"},
    resumed=[{"write": {"path": "parser.py", "text": "{prompt}\n"}}, {"result": "did {prompt}"}],
)


@pytest.mark.parametrize(("line", "snippet"), SNIPPETS, ids=[f"line-{n}" for n, _ in SNIPPETS])
def test_every_snippet_runs(  # noqa: PLR0917 - fixtures are passed by name
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
    code = compile("\n" * (line - 1) + snippet, str(PAGE), "exec", flags=flags)

    async def run() -> None:
        with anyio.fail_after(60):
            await eval(code, names)  # noqa: S307 - the page is ours

    if code.co_flags & inspect.CO_COROUTINE:
        anyio.run(run)
    else:
        exec(code, names)  # noqa: S102 - the page is ours
    assert capsys.readouterr().out


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


def test_there_are_snippets() -> None:
    assert len(SNIPPETS) > 10
