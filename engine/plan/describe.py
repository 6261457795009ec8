"""A plan as plain data, for whoever shows it: what would run, in which order, with what."""

from dataclasses import asdict
from typing import Any

from engine.plan.model import Plan, PlannedStep, PlannedWorker
from engine.plan.prompts import fill, hint_sentence, prompt_values


def describe(plan: Plan) -> dict[str, Any]:
    """The plan as a document that JSON can hold: workers in order, clamps, prompts, limits."""
    return {
        "name": plan.name,
        "source": plan.source,
        "workers": sum(len(step.workers) for step in plan.steps),
        "at_once": plan.runtime.max_concurrent_workers,
        "clamps": [asdict(clamp) for clamp in plan.clamps],
        "runtime": asdict(plan.runtime),
        "workspace": asdict(plan.workspace),
        "review": asdict(plan.review),
        "steps": [_step(plan, step) for step in plan.steps],
    }


def _step(plan: Plan, step: PlannedStep) -> dict[str, Any]:
    row = asdict(step)
    row["sparse_checkout"] = plan.sparse_checkout_of(step.name)
    row["policy"] = str(step.policy)
    row["candidates"] = len(step.workers) if step.has_candidates else 0
    row["workers"] = [_worker(step, worker) for worker in step.workers]
    return row


def _worker(step: PlannedStep, worker: PlannedWorker) -> dict[str, Any]:
    row = asdict(worker)
    del row["id"]
    known = prompt_values(step, worker, run="{run}", outputs={})  # the rest is known in the run
    row["prompt"] = fill(worker.prompt, known)
    hint = None if worker.hint is None else hint_sentence(worker.hint)
    return {"worker": str(worker.id), **row, "hint_sentence": hint}
