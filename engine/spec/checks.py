"""Check the agreements inside a manifest: in one step, and between steps and names.

Looks at the tree, so that every problem is reported at once, types and references together.
"""

import re
from collections.abc import Iterator

from engine.policies import Policy
from engine.spec.complaints import Complaint, unknown
from engine.spec.graph import all_behind, circles
from engine.spec.nearest import nearest
from engine.spec.placeholders import OF_STEP, SIMPLE, placeholders
from engine.spec.runtime import DatabaseSpec
from engine.spec.tree import Fields, Items, Node, Path, at, entries, number, text, texts
from engine.spec.words import ADAPTERS, LOCAL, NEEDS_ARGV, SITES, WORKER_CAP
from engine.values import dataclass

_OF_AGENTS = (
    "agent",
    "persona",
    "variants",
    "models",
    "max_concurrent_agents",
    "permissions",
    "files",
    "prompt",
    "prompt_file",
)
"""Keys that mean nothing where no agent works."""
_ONLY = {
    "argv": NEEDS_ARGV,
    "script": ("scripted",),
    "prompt_via": ("command", "terminal"),
    "terminal": ("command",),
    "events": ("command",),
}


_SPARSE = "sparse_checkout"
_SITE_NAME = re.compile("[A-Za-z0-9][A-Za-z0-9_-]{0,60}")
_NEAR_ONLY = (
    (
        "isolation_strategy",
        "directory",
        "only tracked files reach this site; write `isolation_strategy: worktree`",
    ),
    ("execution_mode", "thread", "functions in threads run in the engine's own process"),
)
"""Settings of `runtime` that bind the workers to the engine's own machine."""


@dataclass(frozen=True)
class _Whole:
    """The names that every part of a manifest may refer to.

    Attributes:
        own: The agents of the manifest.
        agents: Those, and the adapters that are agents without an entry.
        personas: The personas with the agent each names, if any.
    """

    runtime: Node | None
    own: tuple[str, ...]
    agents: dict[str, None]
    personas: dict[str, Node | None]


@dataclass(frozen=True)
class StepNode:
    """One step of the tree, and what of the rest of the manifest it depends on."""

    node: Node
    path: Path
    runtime: Node | None

    def at(self, *keys: str) -> Node | None:
        """Return what the step says under those keys."""
        return at(self.node, *keys)

    def says(self, key: str) -> bool:
        """Return whether the step says something there."""
        return at(self.node, key) is not None

    def complaint(self, key: str, message: str) -> Complaint:
        """Return a complaint about that key."""
        return Complaint((*self.path, key), message)

    @property
    def cap(self) -> int:
        """Return the most workers that may run at once."""
        asked = number(at(self.runtime, "max_concurrent_workers")) or 10
        return max(1, min(asked, WORKER_CAP))

    @property
    def replicas(self) -> int | None:
        """Return the number of workers that variants and models ask for, or None without both."""
        variants, models = self.at("variants"), self.at("models")
        each = len(models.items) if isinstance(models, Items) else 1
        if not isinstance(variants, Items):
            return each if isinstance(models, Items) else None
        return sum(self._of_variant(variant, each) for _, variant in entries(variants))

    def _of_variant(self, variant: Node, of_step: int) -> int:
        """Return the number of workers of one variant."""
        own = at(variant, "models")
        models = len(own.items) if isinstance(own, Items) else of_step
        models = 1 if at(variant, "model") is not None else models
        return models * max(1, number(at(variant, "n")) or 1)

    @property
    def workers(self) -> int:
        """Return the number of workers the step will have, after clamping."""
        items = self.at("strategy", "matrix", "items")
        if isinstance(items, Items):
            return len(items.items)
        return max(1, min(self.replicas or number(self.at("concurrency")) or 1, self.cap))


def check_manifest(root: Node) -> Iterator[Complaint]:
    """Return everything that does not agree."""
    own = tuple(str(name) for name, _ in entries(at(root, "agents")))
    usable = [adapter for adapter in ADAPTERS if adapter not in NEEDS_ARGV]
    whole = _Whole(
        runtime=at(root, "runtime"),
        own=own,
        agents=dict.fromkeys((*own, *usable)),
        personas={str(n): at(p, "agent") for n, p in entries(at(root, "personas"))},
    )
    yield from _agents(root)
    yield from _personas(root, whole)
    yield from _runtime(whole)
    yield from _sparse(whole.runtime, at(root, "workspace"), ("workspace",))
    yield from _agent_named(whole, at(root, "review", "assist"), ("review", "assist"))
    yield from _repeated_names(("pipelines",), at(root, "pipelines"))
    for i, pipeline in entries(at(root, "pipelines")):
        yield from _pipeline(whole, pipeline, ("pipelines", i))


def _agents(root: Node) -> Iterator[Complaint]:
    for name, agent in entries(at(root, "agents")):
        path, adapter = ("agents", name), text(at(agent, "adapter"))
        if adapter not in ADAPTERS:
            continue
        if adapter in NEEDS_ARGV and at(agent, "argv") is None:
            yield Complaint(path, f"the adapter {adapter} needs `argv`: the program to run")
        for key, adapters in _ONLY.items():
            if at(agent, key) is not None and adapter not in adapters:
                message = f"the adapter {adapter} does not use it; it is for {', '.join(adapters)}"
                yield Complaint((*path, key), message)


def _personas(root: Node, whole: _Whole) -> Iterator[Complaint]:
    for name, persona in entries(at(root, "personas")):
        path = ("personas", name)
        yield from _agent_named(whole, persona, path)
        if at(persona, "prompt") is not None and at(persona, "prompt_file") is not None:
            yield Complaint((*path, "prompt_file"), "duplicates `prompt`; keep one")


def _runtime(whole: _Whole) -> Iterator[Complaint]:
    yield from _agent_named(whole, whole.runtime, ("runtime",))
    yield from _database(whole.runtime)
    yield from _sites(whole)


def _sparse(runtime: Node | None, node: Node | None, path: Path) -> Iterator[Complaint]:
    """Yield what is wrong with the folders that worktrees hold."""
    folders, path = at(node, _SPARSE), (*path, _SPARSE)
    yield from _repeated(folders, path, "folder")
    if texts(folders) and text(at(runtime, "isolation_strategy")) == "directory":
        message = "needs git, and there is none with `isolation_strategy: directory`"
        yield Complaint(path, message)


def _database(runtime: Node | None) -> Iterator[Complaint]:
    """Yield what cannot be about the history that a team shares."""
    database = at(runtime, "database")
    if text(at(database, "strategy")) != "shared":
        if at(database, "url_env") is not None:
            path = ("runtime", "database", "url_env")
            yield Complaint(path, "has no effect without `strategy: shared`")
        return
    secret = text(at(database, "url_env")) or DatabaseSpec().url_env
    for place, named in entries(at(runtime, "sandbox", "env")):
        if text(named) == secret:
            message = "holds the address of the shared history, which agents never get"
            yield Complaint(("runtime", "sandbox", "env", place), message)


def _sites(whole: _Whole) -> Iterator[Complaint]:
    """Yield what cannot be about the sites that are added, and the one that is the default."""
    for name, site in entries(at(whole.runtime, "sites")):
        path = ("runtime", "sites", str(name))
        if name == "default":
            yield from _site(whole, text(site), path)
        elif name in SITES:
            yield Complaint(path, f"the name {name} is taken: every repository has such a site")
        elif not _SITE_NAME.fullmatch(str(name)):
            yield Complaint(path, "a site's name has only letters, digits, - and _")
        elif not isinstance(site, Fields):
            yield Complaint(path, "expected a mapping such as {ray: {address: HOST:PORT}}")


def _site(whole: _Whole, site: str | None, path: Path) -> Iterator[Complaint]:
    """Yield what is wrong with a site that is named, and what it cannot be given."""
    added = (str(name) for name, _ in entries(at(whole.runtime, "sites")) if name != "default")
    known = (*SITES, *added)
    if site is not None and site not in known:
        yield unknown(path, site, "site", known)
    for key, value, why in _NEAR_ONLY if site not in {None, LOCAL} else ():
        if text(at(whole.runtime, key)) == value:
            yield Complaint(path, f"{key} cannot be {value} at the site {site}: {why}")


def _agent_named(whole: _Whole, node: Node | None, path: Path) -> Iterator[Complaint]:
    name = text(at(node, "agent"))
    if name is not None and name not in whole.agents:
        yield unknown((*path, "agent"), name, "agent", whole.agents)


def _repeated_names(path: Path, nodes: Node | None) -> Iterator[Complaint]:
    first: dict[str, int | str] = {}
    for i, node in entries(nodes):
        name = text(at(node, "name"))
        if name is None:
            continue
        if name in first:
            message = f"the name {name!r:.60} is already used by entry {int(first[name]) + 1}"
            yield Complaint((*path, i, "name"), message)
        first.setdefault(name, i)


def _pipeline(whole: _Whole, pipeline: Node, path: Path) -> Iterator[Complaint]:
    steps, path = at(pipeline, "steps"), (*path, "steps")
    yield from _repeated_names(path, steps)
    views = [StepNode(s, (*path, i), whole.runtime) for i, s in entries(steps)]
    waits_for = {
        name: [dependency for _, dependency in texts(view.at("dependencies"))]
        for view in views
        if (name := text(view.at("name"))) is not None
    }
    for view in views:
        yield from _step(view)
        yield from _dependencies(view, waits_for)
        yield from _who_works(whole, view)
        yield from _site(whole, text(view.at("site")), (*view.path, "site"))
        yield from _placeholders(view, waits_for)
    yield from _circles(views, waits_for)


def _dependencies(step: StepNode, waits_for: dict[str, list[str]]) -> Iterator[Complaint]:
    seen: set[str] = set()
    for i, dependency in texts(step.at("dependencies")):
        path = (*step.path, "dependencies", i)
        if dependency not in waits_for:
            yield unknown(path, dependency, "step", waits_for)
        elif dependency in seen:
            yield Complaint(path, f"the step {dependency!r} is listed twice")
        seen.add(dependency)


def _circles(views: list[StepNode], waits_for: dict[str, list[str]]) -> Iterator[Complaint]:
    paths = {text(view.at("name")): view.path for view in views}
    for found in circles(waits_for):
        path = (*paths[found[0]], "dependencies")
        yield Complaint(path, f"steps wait for each other: {' → '.join(found)}")


def _who_works(whole: _Whole, step: StepNode) -> Iterator[Complaint]:
    if step.says("run"):
        return
    yield from _agent_named(whole, step.node, step.path)
    for i, variant in entries(step.at("variants")):
        yield from _agent_named(whole, variant, (*step.path, "variants", i))
    persona = text(step.at("persona"))
    if persona is not None and persona not in whole.personas:
        yield unknown((*step.path, "persona"), persona, "persona", whole.personas)
    elif _has_no_agent(whole, step, persona):
        there = ", ".join((whole.own or tuple(whole.agents))[:20])
        message = f"no agent is named; name one of {there} here, in its persona or in runtime.agent"
        yield Complaint(step.path, message)


def _has_no_agent(whole: _Whole, step: StepNode, persona: str | None) -> bool:
    named = [step.at("agent"), whole.personas.get(persona or ""), at(whole.runtime, "agent")]
    variants = [at(variant, "agent") for _, variant in entries(step.at("variants"))]
    if any(node is not None for node in named) or (variants and all(variants)):
        return False
    return len(whole.own) != 1


def _placeholders(step: StepNode, waits_for: dict[str, list[str]]) -> Iterator[Complaint]:
    template = text(step.at("prompt"))
    if template is not None:
        name = text(step.at("name")) or ""
        has_items = step.at("strategy", "matrix") is not None
        for message, guess in template_problems(
            template, name=name, waits_for=waits_for, has_items=has_items
        ):
            yield Complaint((*step.path, "prompt"), message, guess)


def template_problems(
    template: str, *, name: str, waits_for: dict[str, list[str]], has_items: bool
) -> Iterator[tuple[str, str | None]]:
    """Yield what is wrong with the placeholders of a step's prompt, and what was probably meant."""
    names = placeholders(template)
    has_steps = any(placeholder not in SIMPLE for placeholder in names)
    behind = all_behind(name, waits_for) & set(waits_for) - {name} if has_steps else set()
    for placeholder in names:
        literal = f"write {{{{{placeholder}}}}} for the literal text"
        if placeholder == "item" and not has_items:
            yield f"{{item}} has a value only with `strategy.matrix`; {literal}", None
        elif placeholder not in SIMPLE:
            _, step, value = placeholder.split(".")
            if value not in OF_STEP:
                wrong = f"{{{placeholder}}}: a step has {' and '.join(OF_STEP)}; {literal}"
                yield wrong, nearest(value, OF_STEP)
            elif step not in behind:
                wrong = f"{{{placeholder}}}: this step does not depend on {step!r}"
                yield f"{wrong}; {literal}", nearest(step, sorted(behind))


def _step(step: StepNode) -> Iterator[Complaint]:
    """Yield everything that does not agree inside one step."""
    yield from _work(step)
    yield from _spread(step)
    yield from _sparse(step.runtime, step.node, step.path)
    yield from _policy(step)
    yield from _merge(step)
    if step.says("timeout_minutes") and step.at("limits", "time_seconds") is not None:
        yield step.complaint("timeout_minutes", "duplicates limits.time_seconds; keep one")


def _work(step: StepNode) -> Iterator[Complaint]:
    if step.says("run"):
        for key in _OF_AGENTS:
            if step.says(key):
                yield step.complaint(key, "has no effect with `run`, because no agent works there")
    elif step.says("prompt") and step.says("prompt_file"):
        yield step.complaint("prompt_file", "duplicates `prompt`; keep one")
    elif not step.says("prompt") and not step.says("prompt_file"):
        yield Complaint(step.path, "a step needs a `prompt`, a `prompt_file` or a command to `run`")


def _spread(step: StepNode) -> Iterator[Complaint]:
    if step.at("strategy", "matrix") is not None:
        for key in ("concurrency", "variants", "models"):
            if step.says(key):
                why = "a matrix has one worker for each item, and replicas share one prompt"
                yield step.complaint(key, f"cannot be combined with `strategy.matrix`: {why}")
        items = ("strategy", "matrix", "items")
        yield from _repeated(step.at(*items), (*step.path, *items), "item")
    asked, given = number(step.at("concurrency")), step.replicas
    if asked is not None and given is not None and asked != given:
        yield step.complaint(
            "concurrency", f"is {asked}, but variants and models make {given}; leave it out"
        )
    yield from _repeated(step.at("models"), (*step.path, "models"), "model")
    for i, variant in entries(step.at("variants")):
        path, keys = (*step.path, "variants", i), {key for key, _ in entries(variant)}
        if not {"agent", "model", "models"} & keys:
            yield Complaint(path, "a variant names an `agent` or a `model`")
        elif {"model", "models"} <= keys:
            yield Complaint((*path, "model"), "duplicates `models`; keep one")
        yield from _repeated(at(variant, "models"), (*path, "models"), "model")


def _repeated(listed: Node | None, path: Path, what: str) -> Iterator[Complaint]:
    seen: set[str] = set()
    for i, item in entries(listed):
        words = text(item)
        if words is not None and words in seen:
            yield Complaint((*path, i), f"the {what} {words!r:.60} is listed twice")
        seen.add(words or "")


def _policy(step: StepNode) -> Iterator[Complaint]:
    policy = Policy.read(text(step.at("policy")) or "all")
    if policy and policy.n > step.workers:
        yield step.complaint("policy", f"needs {policy.n} workers, but the step has {step.workers}")


def _merge(step: StepNode) -> Iterator[Complaint]:
    merge = text(step.at("merge"))
    has_matrix = step.at("strategy", "matrix") is not None
    in_directory = text(at(step.runtime, "isolation_strategy")) == "directory"
    if merge == "choose" and has_matrix:
        why = "the cells of a matrix do different work; write `each` or `none`"
        yield step.complaint("merge", why)
    if merge in ("choose", "each") and in_directory:
        yield step.complaint(
            "merge", "`isolation_strategy: directory` has no git and merges nothing"
        )
    if step.says("choose"):
        if has_matrix or in_directory or merge in ("each", "none"):
            yield step.complaint("choose", "has no effect if no candidate is chosen")
        if text(step.at("choose")) == "check" and not step.says("check"):
            yield step.complaint("choose", "`check` needs a `check` that candidates can pass")
