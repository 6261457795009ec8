"""Know the sites of one engine, and which of them the workers of a run live in."""

from dataclasses import replace

from engine.errors import WorkspaceError
from engine.plan.model import Plan
from engine.site.local import LocalSite
from engine.site.seam import Site

LOCAL = "local"
"""The name of the site that is this machine's own disk."""


class Sites:
    """The sites of one engine by name.

    Attributes:
        near: This machine's own disk.
        known: All of them.
    """

    def __init__(self, near: LocalSite, *, default: str = LOCAL) -> None:
        """Begin with this machine alone; `default` is the name where a manifest chooses none."""
        self.near = near
        self.known: dict[str, Site] = {LOCAL: near}
        self._default = default or LOCAL

    def chosen(self, plan: Plan) -> Plan:
        """Return a plan that names its site, so that a later engine finds its workers there."""
        name = plan.runtime.site or self._default
        return replace(plan, runtime=replace(plan.runtime, site=name))

    def of(self, plan: Plan) -> Site:
        """Return where the workers of a plan live.

        Raises:
            WorkspaceError: There is no site of that name here.
        """
        name = plan.runtime.site or LOCAL
        if name not in self.known:
            known = ", ".join(sorted(self.known))
            raise WorkspaceError(
                f"there is no site {name!r} here",
                hint=f"Those that are there: {known}. Only a git repository has others than local.",
            )
        return self.known[name]
