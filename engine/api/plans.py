"""Make plans from manifests and the files that they name."""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from engine.agents.script import ScriptInvalid
from engine.agents.scripted import check_script
from engine.errors import EngineError, PlanError
from engine.plan.from_prompts import plan_from_prompts
from engine.plan.make import PlanDefaults, make_plan
from engine.plan.model import Plan, Runtime
from engine.plan.runtime import runtime_of
from engine.spec.load import load_manifest, manifest_from
from engine.spec.pipeline import Manifest

MANIFEST = "plait.yaml"


def plans_in(path: Path) -> tuple[Plan, ...]:
    """Return the plan of every pipeline of a manifest, so that all of it is checked.

    Raises:
        SpecError: The manifest is wrong.
        PlanError: No plan can be made from one of its pipelines, or a script cannot be played.
    """
    read = partial(read_inside, path.resolve().parent)
    manifest = load_manifest(path.read_bytes(), file=str(path), read=read)
    names = [pipeline.name for pipeline in manifest.pipelines]
    return tuple(_checked(make_plan(manifest, pipeline=name, source=str(path))) for name in names)


def plan_from(
    source: str | PathLike[str] | Mapping[str, Any],
    *,
    folder: Path,
    pipeline: str | None = None,
    defaults: PlanDefaults | None = None,
) -> Plan:
    """Return the plan that a manifest's path, its text or a dict leads to.

    Raises:
        SpecError: The manifest is wrong.
        PlanError: No plan can be made from it, or a script in it cannot be played.
    """
    if isinstance(source, Mapping):
        name = "<dict>"
        manifest = manifest_from(source, file=name, read=partial(read_inside, folder))
    else:
        text = str(source)
        is_text = "\n" in text
        path = Path(text)
        base = folder if is_text else path.resolve().parent
        data = text.encode() if is_text else path.read_bytes()
        name = "<text>" if is_text else text
        manifest = load_manifest(data, file=name, read=partial(read_inside, base))
    return _checked(make_plan(manifest, pipeline=pipeline, defaults=defaults, source=name))


def is_manifest(text: str) -> bool:
    """Return whether a text is a manifest, even a faulty one, rather than a prompt.

    Every line that is not indented is a key with a mapping or a list for its value, and one of the
    keys is one of a manifest.
    """
    tops = [line for line in text.splitlines() if line.strip() and line[0] not in " \t#"]
    keys = [found for line in tops if (found := _TOP_KEY.fullmatch(line))]
    is_ours = any(found[1] in Manifest.model_fields for found in keys)
    return is_ours and len(keys) == len([line for line in tops if line.rstrip() != "---"])


_TOP_KEY = re.compile(r"([A-Za-z_]+):(?:\s*|\s+[\[{].*)(?:\s#.*)?")


def _checked(plan: Plan) -> Plan:
    """Return the plan if its scripted agents' scripts can be played."""
    agents = {w.agent.name: w.agent for step in plan.steps for w in step.workers if w.agent}
    try:
        for agent in agents.values():
            check_script(agent)
    except ScriptInvalid as error:
        raise PlanError(str(error), hint=error.hint) from error
    return plan


def plan_for_prompts(
    prompts: Sequence[str],
    agents: Sequence[str] = (),
    *,
    folder: Path,
    models: Sequence[str] = (),
    replicas: int | None = None,
    defaults: PlanDefaults | None = None,
) -> Plan:
    """Return the plan of prompts in a folder, with `plait.yaml`'s agents and limits.

    Raises:
        SpecError: That manifest is wrong.
        PlanError: No plan can be made; AgentNotFound where an agent is none.
    """
    path = folder / MANIFEST
    manifest = None
    if path.is_file():
        read = partial(read_inside, folder)
        manifest = load_manifest(path.read_bytes(), file=MANIFEST, read=read)
    return plan_from_prompts(
        prompts, agents, models=models, replicas=replicas, manifest=manifest, defaults=defaults
    )


def runtime_in(folder: Path) -> Runtime:
    """Return the settings of a run in a folder: its `plait.yaml`'s; the defaults if it has none."""
    manifest = manifest_in(folder) or Manifest()
    return runtime_of(manifest.runtime, workers=manifest.runtime.max_concurrent_workers)


def manifest_in(folder: Path, name: str = MANIFEST) -> Manifest | None:
    """Return a manifest of a folder; None where there is none, or one that is wrong."""
    try:
        data = read_inside(folder, name)
        return load_manifest(data, file=name, read=partial(read_inside, folder))
    except (EngineError, OSError, ValueError):
        return None


def read_inside(base: Path, path: str) -> bytes:
    """Return the bytes of a regular file inside a folder; links are followed.

    Raises:
        OSError, ValueError: There is none.
    """
    target = (base / path).resolve()
    if not target.is_relative_to(base.resolve()):
        raise ValueError(f"{path} points outside {base}")
    if not target.is_file():
        raise FileNotFoundError(2, "there is no such file", path)
    return target.read_bytes()
