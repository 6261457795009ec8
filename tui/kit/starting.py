"""Start runs from the console: what is wanted, the plan it leads to, what is to be weighed first.

The values are those of `plait run`, and its functions make plans of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from engine.errors import EngineError, PlanError
from tui.kit.outside import issue_text, open_issues
from tui.words.figures import number_in

if TYPE_CHECKING:  # a console that starts nothing needs none of what the front door imports
    from engine.api import Beginnings, Plan, PlannedStep
    from engine.limits import Enforcement
    from engine.messages.results import RunView

_MOST_RECENT = 50


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Hold what a run is to be, as typed: a prompt with its agent, or a pipeline of a manifest.

    An empty value is one that nothing is said of. `into` names a run that goes on, which a prompt
    joins as one more step, and behind a colon the step that it builds on.
    """

    prompt: str = ""
    manifest: str = ""
    pipeline: str = ""
    agent: str = ""
    candidates: str = "1"
    check: str = ""
    base: str = ""
    permissions: str = ""
    minutes: str = ""
    into: str = ""

    @classmethod
    def read(cls, kept: Mapping[str, Any]) -> Wanted:
        """Return what was kept by another console; what this one does not know is left out."""
        known = {field.name for field in fields(cls)}
        return cls(**{name: str(value) for name, value in kept.items() if name in known})

    def kept(self) -> dict[str, str]:
        """Return it as plain data; a run that goes on now is none that another console joins."""
        return asdict(replace(self, into=""))


class Starter:
    """Makes plans in a folder, and knows what they can be made of."""

    def __init__(self, folder: Path, environment: Mapping[str, str] | None = None) -> None:
        self.found: Beginnings | None = None
        self.recent: list[Wanted] = []
        self.draft: Wanted | None = None
        self._folder = folder
        self._environment = environment

    async def look(self) -> None:
        """Find out what runs can be started with: agents come and go."""
        from engine.api import look_for_beginnings  # noqa: PLC0415  only where a run is begun

        self.found = await look_for_beginnings(self._folder, self._environment)

    def fresh(self) -> Wanted:
        """Return what is wanted where nothing has been said yet."""
        found = self.found
        first = self.recent[0] if self.recent else Wanted()
        if found is None:
            return replace(first, prompt="", manifest="", pipeline="")
        names = {agent.name for agent in found.agents}
        agent = first.agent if first.agent in names else found.agent
        check = first.check if self.recent else found.check
        return Wanted(agent=agent, candidates=first.candidates, check=check)

    def hear(self, others: Sequence[Wanted]) -> None:
        """Offer also what was started elsewhere, after what was started here."""
        known = {one.prompt for one in self.recent}
        self.recent += [one for one in others if one.prompt and one.prompt not in known]

    def remember(self, wanted: Wanted) -> None:
        """Keep what was started, to be started again."""
        self.draft, wanted = None, replace(wanted, into="")
        rest = [one for one in self.recent if one.prompt != wanted.prompt]
        self.recent = [wanted, *rest][:_MOST_RECENT] if wanted.prompt else self.recent

    async def plan(self, wanted: Wanted) -> Plan:
        """Return the plan that this leads to.

        Raises:
            EngineError: There is none.
        """
        return await anyio.to_thread.run_sync(partial(_plan, wanted, self._folder))

    async def issues(self) -> list[tuple[int, str]]:
        """Return the open issues of the repository, newest first.

        Raises:
            EngineError: They cannot be had, and why.
        """
        return await open_issues(self._folder)

    async def issue(self, number: int) -> str:
        """Return an issue as a prompt.

        Raises:
            EngineError: It cannot be had, and why.
        """
        return await issue_text(self._folder, number)

    async def weigh(self, plan: Plan) -> tuple[str, ...]:
        """Return what is to be weighed before this plan starts.

        Raises:
            EngineError: The folder cannot be worked in.
        """
        from engine.api import weigh  # noqa: PLC0415  only where a run is begun

        return await weigh(self._folder, plan, self._environment)

    async def held(self, plan: Plan) -> tuple[Enforcement, ...]:
        """Return how each dimension would hold for this plan, with its own network and openings."""
        from engine.api import machine_rows  # noqa: PLC0415  only where a run is begun

        return await machine_rows(self._environment, plan=plan)


def manifest_in(prompt: str, folder: Path) -> str:
    """Return the path of a manifest that stands in place of a prompt; empty where none does.

    A sentence may end in the name of such a file: with blanks it is one, unless there is that file.
    """
    text = prompt.strip()
    if "\n" in text or not text.endswith((".yaml", ".yml")):
        return ""
    return text if text.split() == [text] or _is_file(text, folder) else ""


def _is_file(text: str, folder: Path) -> bool:
    try:
        return _path(text, folder).is_file()
    except (EngineError, OSError):  # it is no path, or too long for one
        return False


def _path(manifest: str, folder: Path) -> Path:
    """Return where a manifest is.

    Raises:
        EngineError: It begins in the home of somebody who has none.
    """
    try:
        return folder / Path(manifest).expanduser()
    except RuntimeError as error:
        raise EngineError(f"{manifest}: {error}") from error


def joining(step: PlannedStep, run: RunView, after: str) -> PlannedStep:
    """Return a step as one that joins a run: by a name that is free there, behind another step."""
    taken, name, number = {one.name for one in run.steps}, step.name, 2
    while name in taken:
        name, number = f"{step.name}-{number}", number + 1
    workers = tuple(replace(one, id=replace(one.id, step=name)) for one in step.workers)
    return replace(step, name=name, workers=workers, dependencies=(after,) if after else ())


def _plan(wanted: Wanted, folder: Path) -> Plan:
    from engine.api import (  # noqa: PLC0415  only where a run is begun
        PermissionMode,
        Permissions,
        PlanDefaults,
        plan_for_prompts,
        plan_from,
    )

    mode = wanted.permissions
    defaults = PlanDefaults(
        check=wanted.check.strip() or None,
        base=wanted.base.strip() or None,
        permissions=Permissions(mode=PermissionMode(mode)) if mode else None,
        timeout_minutes=_minutes(wanted.minutes),
    )
    try:
        if manifest := wanted.manifest or manifest_in(wanted.prompt, folder):
            path, pipeline = _path(manifest, folder), wanted.pipeline or None
            return plan_from(path, folder=folder, pipeline=pipeline, defaults=defaults)
        agents = [wanted.agent] if wanted.agent else []
        count = _count(wanted.candidates)
        prompts = [wanted.prompt.strip()]
        return plan_for_prompts(prompts, agents, folder=folder, replicas=count, defaults=defaults)
    except OSError as error:
        named = wanted.manifest or manifest_in(wanted.prompt, folder) or "plait.yaml"
        raise EngineError(f"{named}: {error.strerror}") from error


def _count(text: str) -> int:
    if (count := number_in(text.strip())) is None:
        raise PlanError(f"{text!r:.20} is not a number of candidates", hint="Write 1, 2, 3, …")
    return count


def _minutes(text: str) -> float | None:
    if not text.strip():
        return None
    try:
        minutes = float(text)
    except ValueError:
        minutes = math.nan
    if not 0 < minutes < math.inf:
        raise PlanError(
            f"{text!r:.20} is not a number of minutes", hint="Write a number, or nothing."
        )
    return minutes
