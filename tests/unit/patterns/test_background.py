"""A failure in the background ends only the work that met it; every such task has a boundary."""

import ast
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import anyio
import pytest

import engine
from engine.errors import EngineBug, GitFailed, IllegalTransition, StoreError
from engine.patterns import Background, contained

pytestmark = pytest.mark.anyio

FULL = OSError(28, "No space left on device")


async def raises(error: Exception) -> None:
    raise error


async def inside_a_group(error: Exception) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(raises, error)


@pytest.mark.parametrize("error", [FULL, StoreError("x"), GitFailed(["git"], 1, "no")])
@pytest.mark.parametrize("act", [raises, inside_a_group])
async def test_a_failure_is_reported_and_ends_nothing_else(
    act: Callable[[Exception], Awaitable[None]], error: Exception
):
    seen: list[Exception] = []
    is_done = False
    async with anyio.create_task_group() as tasks:
        background = Background(tasks)
        background.start_soon(act, error, failed=seen.append)
        background.start_soon(act, error, failed=None)
        await anyio.wait_all_tasks_blocked()
        is_done = True
    assert (seen, is_done) == ([error], True)


@pytest.mark.parametrize("error", [IllegalTransition("x"), EngineBug("y"), KeyError("z")])
async def test_a_mistake_of_ours_still_ends_all(error: Exception):
    for act in (raises, inside_a_group):
        with pytest.raises((type(error), ExceptionGroup)):
            await contained(lambda act=act: act(error), None)
    both = ExceptionGroup("both", [FULL, error])
    with pytest.raises(ExceptionGroup):
        await contained(lambda: raises(both), None)


def test_every_task_in_a_group_of_others_has_a_boundary():
    """A group that the same function opens hands its errors to whoever waits for that function."""
    root = Path(engine.__file__).parent
    unguarded = [
        f"{path.relative_to(root)}: {ast.unparse(call.func)}"
        for path in sorted(root.rglob("*.py"))
        for call in foreign_starts(ast.parse(path.read_text(encoding="utf-8")))
        if all(word.arg != "failed" for word in call.keywords)
    ]
    boundary, fake = "patterns/background.py", "testing/fake_site.py"
    assert [one for one in unguarded if not one.startswith((boundary, fake))] == []
    assert unguarded[0] == f"{boundary}: self._tasks.start_soon"


def foreign_starts(tree: ast.AST) -> Iterator[ast.Call]:
    """Yield what starts tasks in a group that no function around it has opened."""
    own = {
        call
        for function in ast.walk(tree)
        if isinstance(function, ast.AsyncFunctionDef)
        for call in starts(function)
        if ast.unparse(call.func).removesuffix(".start_soon") in groups(function)
    }
    yield from (call for call in starts(tree) if call not in own)


def starts(tree: ast.AST) -> Iterator[ast.Call]:
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    yield from (one for one in calls if ast.unparse(one.func).endswith(".start_soon"))


def groups(function: ast.AsyncFunctionDef) -> set[str]:
    blocks = (node for node in ast.walk(function) if isinstance(node, ast.AsyncWith))
    items = (item for block in blocks for item in block.items if item.optional_vars)
    opened = (one for one in items if "create_task_group" in ast.unparse(one.context_expr))
    return {ast.unparse(one.optional_vars) for one in opened if one.optional_vars}
