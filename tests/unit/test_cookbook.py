"""The snippets of the pages: all Python runs, and every manifest of the cookbook."""

import ast
import inspect
import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml

from engine.messages import explaining, merging
from engine.messages.results import Outcome, WorkerResult
from engine.spec.load import load_manifest
from tests.support.library import Workbench, script

ROOT = Path(__file__).parents[2]
PAGES = {page: page.read_text() for page in (ROOT / "README.md", *sorted(ROOT.glob("docs/*.md")))}
SNIPPETS = [
    (page, text[: match.start()].count("\n") + 2, match[1])
    for page, text in PAGES.items()
    for match in re.finditer(r"```python\n(.*?)```", text, re.DOTALL)
]
MANIFESTS = [
    (match[1], match[2], text[: match.start()].count("\n") + 2)
    for text in [PAGES[ROOT / "docs/cookbook.md"]]
    for match in re.finditer(r"### ([^\n]+)\n[^#]*?```yaml\n(.*?)```", text, re.DOTALL)
]
SILENT = {"README.md", "agents.md"}
CODER = script(
    {"write": {"path": "work.txt", "text": "{prompt}\n"}},
    {"usage": {"input_tokens": 10, "output_tokens": 5, "usd": 0.01}},
    {"result": "did {prompt}"},
    resumed=[{"write": {"path": "parser.py", "text": "{prompt}\n"}}, {"result": "did {prompt}"}],
)
AGENTS = {name: {"adapter": "scripted", **CODER} for name in ("claude", "codex")}


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


@pytest.mark.parametrize(
    ("text", "line"),
    [(text, line) for _, text, line in MANIFESTS],
    ids=[title for title, _, _ in MANIFESTS],
)
def test_every_manifest_runs(
    text: str, line: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Workbench(tmp_path, monkeypatch)
    prepare(bench)
    plan = load_manifest(text.encode(), file=f"docs/cookbook.md from line {line}")
    steps = [step.name for step in plan.pipelines[0].steps]

    async def run() -> None:
        async with bench.engine() as engine:
            run = await engine.start(yaml.safe_load(text) | {"agents": AGENTS})
            report = await run.wait()
            assert report.outcome in {Outcome.SUCCESS, Outcome.PENDING}, report
            succeeded = {
                name for name in steps if any(_is_well(one) for one in run.step(name).results)
            }
            assert succeeded == set(steps)

    anyio.run(run)


def _is_well(result: WorkerResult) -> bool:
    return result.outcome is Outcome.SUCCESS


def test_each_pattern_is_there_in_yaml_and_in_python() -> None:
    _, _, part = PAGES[ROOT / "docs/cookbook.md"].partition("\n## Patterns in YAML")
    patterns = part.split("\n### ")[1:]
    assert len(patterns) == len(MANIFESTS) - 1 == 10  # the other is of a large repository
    for pattern in patterns:
        assert re.findall(r"```(yaml|python)\n", pattern) == ["yaml", "python"], pattern


def prepare(bench: Workbench) -> None:
    manifest = {
        "runtime": {"agent": "claude"},
        "agents": AGENTS,
        "pipelines": [{"name": "p", "steps": [{"name": "s", "run": "true"}]}],
    }
    folders = {"src/parser/a.py": "a = 1\n", "services/web/api/x": "x\n", "docs/guide.md": "#\n"}
    files = {"plait.yaml": json.dumps(manifest), "a.txt": "main\n", **folders}
    bench.git.commit(files, "main")
    bench.git.git("checkout", "-q", "-b", "feature", "HEAD~1")
    bench.git.commit({"a.txt": "feature\n"}, "feature")
    bench.git.git("checkout", "-q", "main")


def test_every_question_that_is_named_can_be_asked() -> None:
    named = re.findall(
        r"`(?:await engine\.ask\()?([A-Z]\w+)\((run\b[\w, ]*)\)", "".join(PAGES.values())
    )
    for name, words in named:
        takes = [field.name for field in fields((vars(merging) | vars(explaining))[name])]
        assert words.split(", ") == takes[: words.count(",") + 1], name
    assert len(named) > 5


def test_there_are_snippets() -> None:
    assert len(SNIPPETS) > 10
