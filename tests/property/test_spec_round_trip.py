"""A manifest that is written down and read again says the same, whatever it says."""

import os
import string
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.plan.describe import describe
from engine.plan.make import make_plan
from engine.spec.load import load_manifest, manifest_from
from engine.spec.placeholders import escaped
from engine.spec.words import ADAPTERS, NEEDS_ARGV

QUICK = settings(
    max_examples=2_000 if os.environ.get("PLAIT_THOROUGH") else 100,
    derandomize=True,
)
# What YAML 1.1 would take for something else must come back as the text it was.
ODD_WORDS = (
    "yes no on true null ~ 1 1.5 0x10 1_000 12:30 2026-01-02 = << *a &a !x ' | > {x} [x] @ %"
)
ODD = st.sampled_from(
    (
        *(*ODD_WORDS.split(), "- a", "a: b", "# c", '"', "---", "...", " lead", "trail "),
        *("two\nlines\n", "tab\tin", "\u2028", "é🧶", "\u200b", "\x85"),
    )
)
PRINTABLE = st.characters(
    codec="utf-8", exclude_categories=("Cs", "Cc", "Cn"), exclude_characters="\ufeff"
)
TEXT = (ODD | st.text(PRINTABLE, min_size=1, max_size=30)).filter(str.strip)
PROMPT = TEXT.map(escaped)
NAME = st.text(string.ascii_letters + string.digits, min_size=1, max_size=8)
PATH = st.lists(NAME, min_size=1, max_size=3).map("/".join)
COUNT = st.integers(1, 10**6)
FIGURE = st.floats(0.001, 1e6, allow_nan=False) | COUNT
AGENT_NAMES = tuple(adapter for adapter in ADAPTERS if adapter not in NEEDS_ARGV)


def some(**keys: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=keys)


LIMITS = some(
    memory_mb=COUNT,
    cpu_percent=COUNT,
    disk_mb=COUNT,
    pids=COUNT,
    output_mb=COUNT,
    budget_usd=FIGURE,
    budget_tokens=COUNT,
)
PERMISSIONS = st.sampled_from(["auto", "ask"]) | some(allow=st.lists(TEXT), deny=st.lists(TEXT))
RUNTIME = some(
    max_concurrent_workers=st.integers(1, 200),
    isolation_strategy=st.sampled_from(["worktree", "clone"]),
    limits=LIMITS,
    stall_seconds=FIGURE,
    require=st.lists(st.sampled_from(["files", "git", "memory"])),
    sandbox=some(
        network=st.sampled_from(["open", "none"])
        | st.fixed_dictionaries({"allow": st.lists(TEXT, min_size=1)}),
        paths=st.lists(TEXT),
        docker=st.booleans(),
    ),
    permissions=PERMISSIONS,
    auto_merge=st.booleans(),
    target=TEXT,
    land=some(style=st.sampled_from(["merge", "squash", "rebase"])),
)
WORKSPACE = some(
    include=st.lists(PATH), setup=TEXT, teardown=TEXT, cwd=PATH, ports=st.just({"PORT": 2})
)
AGENTS = st.dictionaries(
    NAME,
    st.fixed_dictionaries(
        {"adapter": st.sampled_from(AGENT_NAMES)},
        optional={"model": TEXT, "options": st.dictionaries(NAME, TEXT)},
    )
    | st.fixed_dictionaries(
        {"adapter": st.just("command"), "argv": st.lists(TEXT, min_size=1)},
        optional={"terminal": st.booleans(), "env": st.dictionaries(st.just("A"), TEXT)},
    ),
    max_size=3,
)
RETRY = some(
    attempts=st.integers(1, 9),
    backoff=st.sampled_from(["fixed", "linear", "exponential"]),
    feedback=st.booleans(),
    intensity=some(restarts=COUNT, per_minutes=FIGURE),
)
MATRIX = st.fixed_dictionaries(
    {"items": st.lists(TEXT, min_size=1, max_size=4, unique=True)},
    optional={"max_concurrency": COUNT},
)
VARIANT = st.fixed_dictionaries({"model": TEXT}, optional={"n": COUNT})
SPREAD = st.one_of(
    some(concurrency=COUNT),
    st.fixed_dictionaries({"variants": st.lists(VARIANT, min_size=1, max_size=3)}),
    st.fixed_dictionaries({"strategy": st.fixed_dictionaries({"matrix": MATRIX})}),
)
COMMON = some(
    retry=RETRY,
    limits=LIMITS,
    check=TEXT,
    artifacts=st.lists(PATH),
    timeout_minutes=FIGURE,
    policy=st.sampled_from(["all", "settled", "race", "first:1", "quorum(1)"]),
)
KIND = st.fixed_dictionaries({"run": TEXT}) | st.fixed_dictionaries(
    {"prompt": PROMPT, "agent": st.sampled_from(AGENT_NAMES)},
    optional={
        "files": st.lists(PATH),
        "permissions": PERMISSIONS,
        "max_concurrent_agents": COUNT,
    },
)


@st.composite
def manifests(draw: st.DrawFn) -> dict[str, Any]:
    names = draw(st.lists(NAME.map(str.lower), min_size=1, max_size=5, unique=True))
    steps = []
    for i, name in enumerate(names):
        behind = draw(st.lists(st.sampled_from(names[:i]), unique=True)) if i else []
        kind, spread = draw(KIND), draw(SPREAD)
        if "run" in kind:
            spread.pop("variants", None)
        steps.append({"name": name, "dependencies": behind, **draw(COMMON), **spread, **kind})
    return {
        "runtime": draw(RUNTIME),
        "workspace": draw(WORKSPACE),
        "agents": draw(AGENTS),
        "pipelines": [{"name": "p", "steps": steps}],
    }


@QUICK
@given(manifests(), st.booleans())
def test_what_is_written_is_read_as_it_was(values: dict[str, Any], flow: bool):  # noqa: FBT001 - drawn
    source = yaml.safe_dump(values, allow_unicode=True, sort_keys=False, default_flow_style=flow)
    read = load_manifest(source.encode(), file="f")
    assert read == manifest_from(values)
    again = yaml.safe_dump(read.model_dump(mode="json", exclude_defaults=True), allow_unicode=True)
    assert load_manifest(again.encode(), file="f") == read


@QUICK
@given(manifests())
def test_what_is_read_is_planned_in_one_way(values: dict[str, Any]):
    once, twice = make_plan(manifest_from(values)), make_plan(manifest_from(values))
    assert once == twice
    assert describe(once) == describe(twice)
