"""`engine` offers these names and no others, documented, and imported only when used."""

import inspect
import re
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Self, get_type_hints

import anyio
import pytest

import engine
from engine import sync
from engine.library.agent import Agent, AgentWords
from engine.library.session import IsolatedAgentSession, SessionWords
from engine.messages.events import Told
from tests.support.library_page import GROUPS, PAGE, library_page

PUBLIC = [
    "Accepted",
    "Agent",
    "AgentRunFailed",
    "CallContext",
    "Conflicted",
    "Engine",
    "EngineError",
    "Failure",
    "IsolatedAgentSession",
    "Landed",
    "Limits",
    "OpenMerge",
    "Plan",
    "PlanDefaults",
    "Pool",
    "Refused",
    "Reply",
    "Run",
    "Success",
    "Turn",
    "Usage",
    "balanced",
    "fan_in",
    "first",
    "gather",
    "in_batches",
    "map_chunks",
    "open_merge",
    "race",
    "retry_failed",
    "settled",
    "stages",
    "with_retry",
    "with_timeout",
]


def test_the_public_names_are_these() -> None:
    assert sorted(engine.__all__) == sorted(PUBLIC)
    assert set(engine.__all__) <= set(dir(engine))


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_there_and_documented(name: str) -> None:
    found = getattr(engine, name)
    assert inspect.getdoc(found)
    page = (Path(engine.__file__).parents[1] / "docs/cookbook.md").read_text()
    assert re.search(rf"\| .*`{name}`.*\|", page), f"the cookbook's table lacks {name}"


def test_the_library_reference_is_current() -> None:
    named = [name for names in GROUPS.values() for name in names]
    assert sorted(named) == sorted(PUBLIC)
    assert PAGE.read_text() == library_page(), "write it: python -m tests.support.library_page"


def test_the_library_reference_opens_context_managers_in_a_with() -> None:
    page = library_page()
    assert "async with open(" in page
    assert "async with member() -> M" in page


def test_the_library_reference_tells_types_of_one_name_apart() -> None:
    _, _, types = library_page().partition("### Other types")
    lines = [line for line in types.splitlines() if re.match(r"- `(Outcome|Reply)\b", line)]
    assert [line.rpartition(" Not the ")[2] for line in lines] == [
        "`Outcome` of `engine.patterns.outcome`.",
        "`Outcome` of `engine.messages.results`.",
        "`Reply` of `engine`.",
    ]


def test_public_members_are_documented() -> None:
    classes = [getattr(engine, name) for name in PUBLIC] + [getattr(sync, n) for n in sync.__all__]
    for found in filter(inspect.isclass, classes):
        for name, member in vars(found).items():
            if not name.startswith("_") and (callable(member) or isinstance(member, property)):
                assert inspect.getdoc(member), f"{found.__name__}.{name}"


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = engine.Nothing


def test_importing_the_engine_brings_nothing_in() -> None:
    code = (
        "import sys, engine; sys.stdout.write(' '.join(m for m in sys.modules"
        " if m.partition('.')[0] in {'textual', 'rich', 'pydantic', 'anyio', 'git'}"
        " or m.startswith('engine.')))"
    )
    done = anyio.run(anyio.run_process, [sys.executable, "-c", code])
    assert done.stdout == b""


TWINS = [(getattr(engine, name), getattr(sync, name)) for name in sync.__all__]
SPELLED = {"__aenter__": "__enter__", "__aexit__": "__exit__", "aclose": "close"}
GIVEN = {
    engine.Run: sync.Run,
    AsyncIterator[Self]: Iterator[Self],
    AsyncIterator[Told]: Iterator[Told],
}
ONLY_WITH_A_LOOP = {
    ("Engine", "run_commands"): "only a program with a loop goes on to answer shells",
    ("Engine", "port"): "what it gives are coroutines; `ask`, `command` and `events` say the same",
}


def members(of: type) -> dict[str, Any]:
    return {
        SPELLED.get(name, name): member
        for name, member in inspect.getmembers(of)
        if not name.startswith("_") or name in {*SPELLED, *SPELLED.values()}
    }


def said(member: Any) -> tuple[list[inspect.Parameter], Any]:
    """Return what a member takes and gives, as a program without a loop is to see it."""
    is_property = isinstance(member, property)
    signature = inspect.signature(member.fget if is_property else member)
    given = signature.return_annotation
    return list(signature.parameters.values()), (is_property, GIVEN.get(given, given))


@pytest.mark.parametrize(("there", "here"), TWINS, ids=sync.__all__)
def test_programs_without_a_loop_have_the_same_members(there: type, here: type) -> None:
    left_out = {name for of, name in ONLY_WITH_A_LOOP if of == here.__name__}
    assert set(members(there)) - left_out == set(members(here))
    assert left_out <= set(members(there))
    for name, member in members(here).items():
        assert said(member) == said(members(there)[name]), f"{here.__name__}.{name}"
        assert isinstance(member, property) or member.__name__ == name
        assert not inspect.iscoroutinefunction(member)


@pytest.mark.parametrize(
    ("words", "what", "here"),
    [
        (AgentWords, Agent, sync.Agent),
        (SessionWords, IsolatedAgentSession, sync.IsolatedAgentSession),
    ],
)
def test_the_words_without_a_loop_are_the_same(words: type, what: type, here: type) -> None:
    takes = dict(inspect.signature(what).parameters)
    named = {
        name: parameter.annotation
        for name, parameter in takes.items()
        if name != "engine" and parameter.kind is parameter.KEYWORD_ONLY
    }
    assert get_type_hints(words) == named
    takes["engine"] = takes["engine"].replace(annotation=sync.Engine | None)
    assert inspect.signature(here).parameters == takes
    assert inspect.getdoc(here.__init__) == inspect.getdoc(what.__init__)
