"""Choose an engine's workshop: one for plain folders, one for its repository."""

from engine.clock import Clock
from engine.errors import WorkspaceError
from engine.plan.model import IsolationStrategy, Plan
from engine.site.place import Place
from engine.site.seam import Site
from engine.site.seeds import Seeds
from engine.work.folders import FolderWorkshop
from engine.work.git_workshop import GitWorkshop
from engine.work.workshop import Workshop


class Workshops:
    """The workshops of one engine."""

    def __init__(self, place: Place, *, site: Site, clock: Clock, seeds: Seeds) -> None:
        self._folders = FolderWorkshop(site)
        self._git = (
            GitWorkshop(place.repo, place=place, site=site, clock=clock, seeds=seeds)
            if place.repo is not None
            else None
        )

    def of(self, plan: Plan) -> Workshop:
        """Return the workshop that the plan of a run names.

        Raises:
            WorkspaceError: The plan needs a repository, and there is none.
        """
        if plan.runtime.isolation is IsolationStrategy.DIRECTORY:
            return self._folders
        if self._git is None:
            raise WorkspaceError(
                f"{plan.runtime.isolation} needs a git repository, and there is none here",
                hint="Run `git init`, or set `runtime.isolation_strategy: directory`.",
            )
        return self._git
