"""No module but `engine.beneath` copies, writes or removes in a tree that an agent can shape.

Whatever else writes files by plain paths is listed here, with the reason why no agent shapes the
place. A module that begins to write fails until somebody decides where it writes.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

ENGINE_STATE = "state of the engine, where no sandbox lets an agent write"
GIT_DIR = "the user's git directory, or a git directory of ours"
SCRATCH = "a folder that was made a moment ago, for its owner alone"
PROBE = "tries the machine in folders of its own"
TRUSTED = "a path of the user's own, chosen by the user"
AGENT_SIDE = "runs inside the agent's sandbox, as the agent"

ALLOWED = {
    "engine/agents/script_player.py": AGENT_SIDE,
    "engine/api/exporting.py": SCRATCH,
    "engine/api/sites.py": SCRATCH,
    "engine/git/arrivals.py": GIT_DIR,
    "engine/git/checkout.py": "the user's own checkout, where git itself writes",
    "engine/git/cone.py": "a git directory before its agent begins",
    "engine/git/embedded.py": ENGINE_STATE,
    "engine/git/filled.py": ENGINE_STATE,
    "engine/git/inside.py": GIT_DIR,
    "engine/git/parcel.py": GIT_DIR,
    "engine/git/plumbing/loose.py": GIT_DIR,
    "engine/git/objects.py": SCRATCH,
    "engine/git/private.py": "a private clone before its agent begins",
    "engine/git/radar.py": GIT_DIR,
    "engine/git/seen_before.py": ENGINE_STATE,
    "engine/git/plumbing/records.py": GIT_DIR,
    "engine/git/recovery.py": GIT_DIR,
    "engine/git/plumbing/shell.py": ENGINE_STATE,
    "engine/git/shifts.py": "the user's own checkout, where git itself writes",
    "engine/git/staging.py": GIT_DIR,
    "engine/git/plumbing/standing.py": SCRATCH,
    "engine/git/submodules.py": "a worktree before its agent begins",
    "engine/git/trees.py": ENGINE_STATE,
    "engine/git/workspace.py": "a worktree before its agent begins",
    "engine/git/worktrees.py": GIT_DIR,
    "engine/keeper/launch.py": ENGINE_STATE,
    "engine/port/kept.py": ENGINE_STATE,
    "engine/port/server.py": ENGINE_STATE,
    "engine/sandbox/cgroups.py": "control groups",
    "engine/sandbox/probe.py": PROBE,
    "engine/sandbox/probe_cgroups.py": PROBE,
    "engine/sandbox/trials.py": PROBE,
    "engine/spec/reference.py": TRUSTED,
    "engine/store/sqlite/database.py": ENGINE_STATE,
    "engine/work/checking.py": ENGINE_STATE,
    "engine/work/helping.py": "the git directory of a clean tree before its command begins",
    "engine/work/serving.py": ENGINE_STATE,
    "engine/review/comparing.py": ENGINE_STATE,
    "engine/review/moments.py": ENGINE_STATE,
    "engine/review/radar.py": ENGINE_STATE,
    "engine/review/results.py": SCRATCH,
    "engine/site/child.py": ENGINE_STATE,
    "engine/site/late.py": ENGINE_STATE,
    "engine/site/local_cluster.py": ENGINE_STATE,
    "engine/site/seeds.py": "seeds",
    "engine/proof/tampering.py": ENGINE_STATE,
    "engine/proof/written_once.py": ENGINE_STATE,
}
_HARMLESS = {"which", "disk_usage", "get_terminal_size", "Error"}
_WRITING = {"write_text", "write_bytes", "symlink_to", "hardlink_to", "touch"}


def writes(tree: ast.AST) -> Iterator[str]:
    """Name the calls by which a module writes, copies or removes by a path."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="shutil"), attr=name) if name not in _HARMLESS:
                yield f"shutil.{name}"
            case ast.Attribute(attr=name) if name in _WRITING:
                yield name
            case ast.Call(func=ast.Name(id="open") | ast.Attribute(attr="open")) if is_write(node):
                yield "open"


def is_write(call: ast.Call) -> bool:
    modes = [*call.args, *(word.value for word in call.keywords if word.arg == "mode")]
    texts = [one.value for one in modes if isinstance(one, ast.Constant)]
    return any(
        isinstance(text, str) and set(text) & set("wax+") and len(text) < 4 for text in texts
    )


def modules() -> Iterator[Path]:
    return (file for file in sorted((ROOT / "engine").rglob("*.py")) if "beneath" not in file.parts)


def test_whatever_writes_by_a_path_writes_where_no_agent_shapes_the_place():
    found = {
        str(file.relative_to(ROOT)): sorted(set(writes(ast.parse(file.read_text()))))
        for file in modules()
    }
    writing = {name: calls for name, calls in found.items() if calls}
    unknown = {name: calls for name, calls in writing.items() if name not in ALLOWED}
    assert not unknown, "use engine.beneath, or say why no agent shapes the place"
    assert sorted(ALLOWED.keys() - writing.keys()) == []


@pytest.mark.parametrize(
    "text",
    [
        "shutil.copytree(a, b)",
        "from functools import partial\npartial(shutil.rmtree, a)",
        "a.write_text('x')",
        "open(a, 'w')",
        "a.open('xb')",
        "open(a, mode='a+')",
        "a.symlink_to(b)",
    ],
)
def test_such_a_write_is_seen(text: str):
    assert list(writes(ast.parse(text)))


@pytest.mark.parametrize("text", ["open(a)", "a.open('rb')", "shutil.which('git')"])
def test_reading_is_no_write(text: str):
    assert not list(writes(ast.parse(text)))
