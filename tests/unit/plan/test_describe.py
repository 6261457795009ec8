"""A plan as plain data."""

import json

import pytest

from engine.plan.describe import describe
from engine.plan.from_prompts import plan_from_prompts
from engine.plan.make import make_plan, parse_policy
from engine.spec.load import load_manifest
from engine.spec.reference import EXAMPLE


def test_a_plan_is_a_document_json_can_hold():
    plan = make_plan(load_manifest(EXAMPLE.encode(), file="f"))
    told = json.loads(json.dumps(describe(plan)))
    assert told["workers"] == 1 + 3 + 5 + 2 + 1
    assert [s["name"] for s in told["steps"]] == [
        "design",
        "implement",
        "compare",
        "port",
        "verify",
    ]
    implement = told["steps"][1]
    assert (implement["policy"], implement["candidates"]) == ("settled", 3)
    assert implement["limits"]["memory_mb"] == 2048
    worker = implement["workers"][0]
    assert worker["worker"] == "implement/worker_1"
    assert worker["hint_sentence"].startswith("You may spawn up to 3 ")
    assert worker["agent"]["model"] == "haiku"
    assert told["steps"][4]["workers"][0]["agent"] is None


def test_a_literal_prompt_is_shown_as_it_was_written():
    told = describe(plan_from_prompts(["do {run}"], ["claude:12"]))
    assert told["steps"][0]["workers"][0]["prompt"] == "do {run}"
    assert told["clamps"][0]["given"] == 10


@pytest.mark.parametrize("words", ["all", "settled", "race", "first(2)", "quorum(1)", "quorum(3)"])
def test_a_policy_is_written_as_it_was_read(words: str):
    assert str(parse_policy(words)) == words
