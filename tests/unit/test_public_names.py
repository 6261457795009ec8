"""What `engine` offers: these names and no others, documented, and brought in only when used."""

import inspect
import re
import sys
from pathlib import Path
from typing import get_type_hints

import anyio
import pytest

import engine
from engine import sync
from engine.library.agent import Agent, AgentWords
from engine.library.session import IsolatedAgentSession, SessionWords

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


@pytest.mark.parametrize(
    ("words", "what"), [(AgentWords, Agent), (SessionWords, IsolatedAgentSession)]
)
def test_the_words_without_a_loop_are_the_same(words: type, what: type) -> None:
    named = {
        name
        for name, parameter in inspect.signature(what).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    }
    assert set(get_type_hints(words)) == named - {"engine"}
