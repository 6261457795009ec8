"""Manifests whose structure is wrong: refused with a place, and alike as text and as a dict."""

import copy
import os
import random
from typing import Any

import pytest
import yaml

from engine.errors import SpecError
from engine.plan.make import make_plan
from engine.spec.load import load_manifest, manifest_from
from engine.spec.reference import EXAMPLE

COUNT = 10_000 if os.environ.get("PLAIT_THOROUGH") == "1" else 600
BATCHES = 5
ODD: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        0,
        -1,
        1,
        10**60,
        0.5,
        -2.5,
        1e300,
        "",
        " ",
        "x",
        "yes",
        "../x",
        "a" * 300,
    ),
    *(
        [],
        {},
        [[]],
        [None],
        {"x": {"y": []}},
        ["a", "a"],
        {"name": "x"},
        "{item}",
        "{steps.no.output}",
    ),
    *("\x1b[2J", "\u202e", "design", "choose", "first(9)", "shared", "agent", "command", "acp"),
)


WHOLE = yaml.safe_load(EXAMPLE)


def places(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    members = (
        node.items()
        if isinstance(node, dict)
        else enumerate(node)
        if isinstance(node, list)
        else ()
    )
    return [path, *(place for key, value in members for place in places(value, (*path, key)))]


def mutate(values: Any, rng: random.Random) -> None:
    """One change somewhere below the top, in place."""
    *above, last = rng.choice([place for place in places(values) if place])
    parent = values
    for key in above:
        parent = parent[key]
    match rng.choice(["replace", "replace", "delete", "rename", "copy", "wrap"]):
        case "replace":
            parent[last] = copy.deepcopy(rng.choice(ODD))
        case "delete":
            del parent[last]
        case "rename" if isinstance(parent, dict):
            parent[rng.choice([*parent, "nmae", "prompt", "concurrency", "run"])] = parent.pop(last)
        case "copy":
            source: Any = values
            for key in rng.choice(places(values)):
                source = source[key]
            parent[last] = copy.deepcopy(source)
        case _:
            parent[last] = [parent[last]]


def told(read: Any) -> list[str]:
    """The problems without their places, or nothing where it makes a plan."""
    try:
        manifest = read()
    except SpecError as error:
        return sorted(f"{p.key}: {p.message}" for p in error.problems)
    for pipeline in manifest.pipelines:
        make_plan(manifest, pipeline=pipeline.name)
    return []


@pytest.mark.parametrize("batch", range(BATCHES))
def test_a_wrong_structure_is_told_alike_as_text_and_as_a_dict(batch: int):
    seen = {True: 0, False: 0}
    for seed in range(batch, COUNT, BATCHES):
        rng = random.Random(seed)
        values = copy.deepcopy(WHOLE)
        for _ in range(rng.choice((1, 1, 2, 4))):
            mutate(values, rng)
        source = yaml.dump(values, Dumper=_NoAliases, allow_unicode=True, sort_keys=False).encode()
        as_text = told(lambda: load_manifest(source, file="f"))  # noqa: B023 - called at once
        as_dict = told(lambda: manifest_from(values))  # noqa: B023 - called at once
        assert as_text == as_dict, seed
        seen[bool(as_text)] += 1
    assert min(seen.values()) > COUNT / BATCHES / 40


class _NoAliases(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        del data
        return True
