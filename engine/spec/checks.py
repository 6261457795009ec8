"""What must agree between the parts of a manifest: names, references, circles.

Looks at the tree, so that every problem is told at once, types and references together.
"""

from collections.abc import Iterator

from engine.spec.finding import Finding, unknown
from engine.spec.graph import all_behind, circles
from engine.spec.placeholders import OF_STEP, SIMPLE, placeholders
from engine.spec.step_checks import StepView, check_step
from engine.spec.tree import Node, Path, at, child, entries, text, texts
from engine.spec.words import ADAPTERS, NEEDS_ARGV

_ONLY = {
    "argv": NEEDS_ARGV,
    "script": ("scripted",),
    "prompt_via": ("command",),
    "terminal": ("command",),
    "events": ("command",),
}


def check_manifest(root: Node) -> Iterator[Finding]:
    """Everything that does not agree."""
    yield from _agents(root)
    yield from _personas(root)
    yield from _runtime(root)
    yield from _repeated_names(("pipelines",), child(root, "pipelines"))
    for i, pipeline in entries(child(root, "pipelines")):
        yield from _pipeline(root, pipeline, ("pipelines", i))


def known_agents(root: Node) -> list[str]:
    """Every agent that can be named: those of the manifest, then the adapters."""
    own = [str(name) for name, _ in entries(child(root, "agents"))]
    usable = [adapter for adapter in ADAPTERS if adapter not in NEEDS_ARGV]
    return [*own, *(name for name in usable if name not in own)]


def _agents(root: Node) -> Iterator[Finding]:
    for name, agent in entries(child(root, "agents")):
        path, adapter = ("agents", name), text(child(agent, "adapter"))
        if adapter not in ADAPTERS:
            continue
        if adapter in NEEDS_ARGV and child(agent, "argv") is None:
            yield Finding(path, f"the adapter {adapter} needs `argv`: the program to run")
        for key, adapters in _ONLY.items():
            if child(agent, key) is not None and adapter not in adapters:
                message = f"means nothing to the adapter {adapter}; only to {', '.join(adapters)}"
                yield Finding((*path, key), message)


def _personas(root: Node) -> Iterator[Finding]:
    for name, persona in entries(child(root, "personas")):
        path = ("personas", name)
        yield from _agent_named(root, persona, path)
        if at(persona, "prompt") is not None and at(persona, "prompt_file") is not None:
            yield Finding((*path, "prompt_file"), "says the same as `prompt`; keep one")


def _runtime(root: Node) -> Iterator[Finding]:
    runtime = child(root, "runtime")
    yield from _agent_named(root, runtime, ("runtime",))
    database = at(runtime, "database")
    if at(database, "url") is not None and text(at(database, "strategy")) != "shared":
        yield Finding(("runtime", "database", "url"), "means nothing without `strategy: shared`")


def _agent_named(root: Node, node: Node | None, path: Path) -> Iterator[Finding]:
    name, known = text(child(node, "agent")), known_agents(root)
    if name is not None and name not in known:
        yield unknown((*path, "agent"), name, "agent", known)


def _repeated_names(path: Path, nodes: Node | None) -> Iterator[Finding]:
    first: dict[str, int | str] = {}
    for i, node in entries(nodes):
        name = text(child(node, "name"))
        if name is None:
            continue
        if name in first:
            message = f"the name {name!r:.60} is taken by number {int(first[name]) + 1}"
            yield Finding((*path, i, "name"), message)
        first.setdefault(name, i)


def _pipeline(root: Node, pipeline: Node, path: Path) -> Iterator[Finding]:
    steps, path = child(pipeline, "steps"), (*path, "steps")
    yield from _repeated_names(path, steps)
    views = [StepView(s, (*path, i), child(root, "runtime")) for i, s in entries(steps)]
    waits_for = {
        name: [dependency for _, dependency in texts(view.at("dependencies"))]
        for view in views
        if (name := text(view.at("name"))) is not None
    }
    for view in views:
        yield from check_step(view)
        yield from _dependencies(view, waits_for)
        yield from _who_works(root, view)
        yield from _placeholders(view, waits_for)
    yield from _circles(views, waits_for)


def _dependencies(step: StepView, waits_for: dict[str, list[str]]) -> Iterator[Finding]:
    seen: set[str] = set()
    for i, dependency in texts(step.at("dependencies")):
        path = (*step.path, "dependencies", i)
        if dependency not in waits_for:
            yield unknown(path, dependency, "step", waits_for)
        elif dependency in seen:
            yield Finding(path, f"the step {dependency!r} stands there twice")
        seen.add(dependency)


def _circles(views: list[StepView], waits_for: dict[str, list[str]]) -> Iterator[Finding]:
    paths = {text(view.at("name")): view.path for view in views}
    for found in circles(waits_for):
        path = (*paths[found[0]], "dependencies")
        yield Finding(path, f"steps wait for each other: {' → '.join(found)}")


def _who_works(root: Node, step: StepView) -> Iterator[Finding]:
    if step.says("run"):
        return
    yield from _agent_named(root, step.node, step.path)
    for i, variant in entries(step.at("variants")):
        yield from _agent_named(root, variant, (*step.path, "variants", i))
    personas = child(root, "personas")
    name = text(step.at("persona"))
    if name is not None and child(personas, name) is None:
        names = [str(persona) for persona, _ in entries(personas)]
        yield unknown((*step.path, "persona"), name, "persona", names)
    elif _has_no_agent(root, step, name):
        own = [str(agent) for agent, _ in entries(child(root, "agents"))]
        there = f"one of {', '.join(own)}" if own else f"one of {', '.join(known_agents(root))}"
        message = f"no agent is named; name {there} here, in its persona or in runtime.agent"
        yield Finding(step.path, message)


def _has_no_agent(root: Node, step: StepView, persona: str | None) -> bool:
    named = [
        step.at("agent"),
        at(root, "personas", persona, "agent") if persona else None,
        at(root, "runtime", "agent"),
    ]
    variants = [child(variant, "agent") for _, variant in entries(step.at("variants"))]
    if any(node is not None for node in named) or (variants and all(variants)):
        return False
    return len(list(entries(child(root, "agents")))) != 1


def _placeholders(step: StepView, waits_for: dict[str, list[str]]) -> Iterator[Finding]:
    template = text(step.at("prompt"))
    if template is not None:
        name = text(step.at("name")) or ""
        has_items = step.at("strategy", "matrix") is not None
        for message, guess in template_problems(
            template, name=name, waits_for=waits_for, has_items=has_items
        ):
            yield Finding((*step.path, "prompt"), message, guess)


def template_problems(
    template: str, *, name: str, waits_for: dict[str, list[str]], has_items: bool
) -> Iterator[tuple[str, str | None]]:
    """What is wrong with the placeholders of a step's prompt, and what was probably meant."""
    behind = sorted(all_behind(name, waits_for) & set(waits_for) - {name})
    for placeholder in placeholders(template):
        literal = f"write {{{{{placeholder}}}}} for the literal text"
        if placeholder == "item" and not has_items:
            yield f"{{item}} has a value only with `strategy.matrix`; {literal}", None
        elif placeholder not in SIMPLE:
            _, step, value = placeholder.split(".")
            if value not in OF_STEP:
                wrong = f"{{{placeholder}}}: a step has {' and '.join(OF_STEP)}; {literal}"
                yield wrong, unknown((), value, "", OF_STEP).guess
            elif step not in behind:
                wrong = f"{{{placeholder}}}: {step!r} is none of the steps this one waits for"
                yield f"{wrong}; {literal}", unknown((), step, "", behind).guess
