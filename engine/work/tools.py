"""The services that an engine gives its runs."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread

from engine.bus import Bus
from engine.clock import Clock
from engine.errors import SiteSilent
from engine.git.runner import Repo
from engine.history.feeder import Feeder
from engine.messages.results import Trouble
from engine.messages.statistics import CountAttempts, Figures
from engine.proof.tampering import Proof
from engine.site.sites import Sites
from engine.store.layout import Layout
from engine.store.store import Store
from engine.values import dataclass
from engine.work.kept_answers import KeptAnswers
from engine.work.ledger import Ledger
from engine.work.logins import Logins
from engine.work.served import ServedPrograms
from engine.work.trouble import silence_trouble, storage_trouble
from engine.work.workshops import Workshops


@dataclass(frozen=True, kw_only=True)
class Tools:
    """The rooms a run works with.

    Attributes:
        sites: Where the workers live; exact trees are proved near before they land.
        count: Adds up the attempts of many runs.
        landing: Lets one landing at a time touch the repository.
        served: The programs of workers that a human looks at.
    """

    sites: Sites
    workshops: Workshops
    layout: Layout
    store: Store
    bus: Bus
    clock: Clock
    project: Path
    workspaces: Path
    environ: Mapping[str, str]
    logins: Logins
    ledger: Ledger
    proof: Proof
    feeder: Feeder
    answers: KeptAnswers
    count: Callable[[CountAttempts], Awaitable[tuple[Figures, ...]]]
    repo: Repo | None = None
    landing: anyio.Lock = field(default_factory=anyio.Lock)
    served: ServedPrograms = field(default_factory=ServedPrograms)

    async def trouble_behind(self, error: BaseException) -> Trouble | None:
        """Return what passes by itself, if an error comes from that: full storage, or silence."""
        if isinstance(error, SiteSilent):
            return silence_trouble(error, at=self.clock.now())
        folders = [self.layout.root, self.workspaces, self.project]
        look = partial(storage_trouble, error, folders, at=self.clock.now())
        return await anyio.to_thread.run_sync(look)
