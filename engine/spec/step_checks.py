"""What must agree inside one step. Looks at the tree, so that it speaks beside type problems."""

from collections.abc import Iterator
from dataclasses import dataclass

from engine.policies import Policy
from engine.spec.finding import Finding
from engine.spec.tree import Items, Node, Path, at, entries, number, text
from engine.spec.words import WORKER_CAP

OF_AGENTS = (
    "agent",
    "persona",
    "variants",
    "max_concurrent_agents",
    "permissions",
    "files",
    "prompt",
    "prompt_file",
)
"""Keys that mean nothing where no agent works."""


@dataclass(frozen=True)
class StepView:
    """One step of the tree, and what of the rest of the manifest it depends on."""

    node: Node
    path: Path
    runtime: Node | None

    def at(self, *keys: str) -> Node | None:
        """What the step says under those keys."""
        return at(self.node, *keys)

    def says(self, key: str) -> bool:
        """The step says something there."""
        return at(self.node, key) is not None

    def finding(self, key: str, message: str) -> Finding:
        """A finding at that key."""
        return Finding((*self.path, key), message)

    @property
    def cap(self) -> int:
        """How many workers may run at once."""
        asked = number(at(self.runtime, "max_concurrent_workers")) or 10
        return max(1, min(asked, WORKER_CAP))

    @property
    def replicas(self) -> int | None:
        """How many workers the variants ask for, or None without variants."""
        variants = self.at("variants")
        if not isinstance(variants, Items):
            return None
        return sum(max(1, number(at(v, "n")) or 1) for _, v in entries(variants))

    @property
    def workers(self) -> int:
        """How many workers the step will have, after clamping."""
        items = self.at("strategy", "matrix", "items")
        if isinstance(items, Items):
            return len(items.items)
        return max(1, min(self.replicas or number(self.at("concurrency")) or 1, self.cap))


def check_step(step: StepView) -> Iterator[Finding]:
    """Everything that does not agree inside the step."""
    yield from _work(step)
    yield from _spread(step)
    yield from _policy(step)
    yield from _merge(step)
    if step.says("timeout_minutes") and step.at("limits", "time_seconds") is not None:
        yield step.finding("timeout_minutes", "says the same as limits.time_seconds; keep one")


def _work(step: StepView) -> Iterator[Finding]:
    if step.says("run"):
        for key in OF_AGENTS:
            if step.says(key):
                yield step.finding(key, "means nothing beside `run`, where no agent works")
    elif step.says("prompt") and step.says("prompt_file"):
        yield step.finding("prompt_file", "says the same as `prompt`; keep one")
    elif not step.says("prompt") and not step.says("prompt_file"):
        yield Finding(step.path, "a step needs a `prompt`, a `prompt_file` or a command to `run`")


def _spread(step: StepView) -> Iterator[Finding]:
    if step.at("strategy", "matrix") is not None:
        for key in ("concurrency", "variants"):
            if step.says(key):
                why = "a matrix has one worker for each item, replicas have the same prompt"
                yield step.finding(key, f"cannot stand beside `strategy.matrix`: {why}")
        yield from _repeated_items(step)
    asked, given = number(step.at("concurrency")), step.replicas
    if asked is not None and given is not None and asked != given:
        yield step.finding(
            "concurrency", f"is {asked}, but the variants make {given}; leave it out"
        )
    for i, variant in entries(step.at("variants")):
        if not {"agent", "model"} & {key for key, _ in entries(variant)}:
            yield Finding((*step.path, "variants", i), "a variant names an `agent` or a `model`")


def _repeated_items(step: StepView) -> Iterator[Finding]:
    seen: set[str] = set()
    for i, item in entries(step.at("strategy", "matrix", "items")):
        words = text(item)
        if words is not None and words in seen:
            path = (*step.path, "strategy", "matrix", "items", i)
            yield Finding(path, f"the item {words!r:.60} stands there twice")
        seen.add(words or "")


def _policy(step: StepView) -> Iterator[Finding]:
    policy = Policy.read(text(step.at("policy")) or "all")
    if policy and policy.n > step.workers:
        yield step.finding("policy", f"needs {policy.n} workers, but the step has {step.workers}")


def _merge(step: StepView) -> Iterator[Finding]:
    merge = text(step.at("merge"))
    has_matrix = step.at("strategy", "matrix") is not None
    in_directory = text(at(step.runtime, "isolation_strategy")) == "directory"
    if merge == "choose" and has_matrix:
        yield step.finding("merge", "the cells of a matrix do different work; write each or none")
    if merge in ("choose", "each") and in_directory:
        yield step.finding("merge", "isolation_strategy directory has no git and merges nothing")
    if step.says("choose"):
        if has_matrix or in_directory or merge in ("each", "none"):
            yield step.finding("choose", "means nothing where no candidate is chosen")
        if text(step.at("choose")) == "check" and not step.says("check"):
            yield step.finding("choose", "`check` needs a `check` that candidates can pass")
