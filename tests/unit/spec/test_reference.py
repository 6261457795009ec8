"""The reference and the JSON Schema are made from the models, complete and current."""

import json
from pathlib import Path
from typing import Any

from engine.limits import KINDS
from engine.spec import reference
from engine.spec.pipeline import Manifest
from engine.spec.words import ADAPTERS, WORKER_CAP

DOCS = Path(__file__).parents[3] / "docs"
RENEW = "run `python -m engine.spec.reference docs`"


def test_the_page_is_current():
    assert (DOCS / reference.PAGE).read_text("utf-8") == reference.page(), RENEW


def test_the_schema_is_current():
    assert (DOCS / reference.SCHEMA).read_text("utf-8") == reference.schema(), RENEW


def test_writing_makes_both(tmp_path: Path):
    reference.write(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {reference.PAGE, reference.SCHEMA}


def test_every_key_has_a_description():
    for path, model in reference._sections():
        assert model.__doc__, model
        for key, known in model.model_fields.items():
            assert known.description, f"{path}.{key}"
            assert f"| `{key}` |" in reference.page()


def test_the_page_tells_the_default_of_every_limit_that_has_one():
    table = reference.page().partition("### `runtime.limits`")[2].partition("\n###")[0]
    for name, kind in KINDS.items():
        (row,) = [line for line in table.splitlines() if line.startswith(f"| `{name}` |")]
        shown = row.split(" | ")[2]
        assert shown.strip("` ") == ("" if kind.default is None else f"{kind.default:.0f}"), row


def test_the_page_tells_the_three_levels_together():
    page = reference.page()
    levels = page[page.index("## Three levels of concurrency") :]
    for key in (
        "max_concurrent_workers",
        "concurrency",
        "strategy.matrix",
        "max_concurrent_agents",
    ):
        assert key in levels
    assert f"cut to {WORKER_CAP}" in levels


def _objects(node: Any) -> list[dict[str, Any]]:
    if isinstance(node, list):
        return [found for item in node for found in _objects(item)]
    if isinstance(node, dict):
        mine = [node] if "properties" in node else []
        return mine + [found for value in node.values() for found in _objects(value)]
    return []


def test_the_schema_refuses_unknown_keys_everywhere():
    objects = _objects(json.loads(reference.schema()))
    assert len(objects) == len(list(reference._sections()))
    assert all(o["additionalProperties"] is False for o in objects)


def test_the_schema_knows_every_adapter():
    adapter = Manifest.model_json_schema()["$defs"]["AgentSpec"]["properties"]["adapter"]
    assert tuple(adapter["enum"]) == ADAPTERS
