"""Keep what comes late: the work of an attempt whose node was gone when it was to be collected.

Another attempt has followed by then, so nothing merges what is kept here: it waits for a human.
"""

import json
from urllib.parse import quote

import anyio

from engine.errors import SiteGone
from engine.git.collection import CollectedChange
from engine.git.names import RefNames
from engine.git.parcel import bring_late
from engine.git.runner import Repo
from engine.ids import AttemptId
from engine.site.far import Far
from engine.site.line import Line
from engine.site.mirrored import ChildSpaces
from engine.site.seam import Brought, Collecting, Workplace
from engine.store.codec import codec_of
from engine.store.layout import Layout
from engine.values import dataclass

FOLDER = "late"


@dataclass(frozen=True, kw_only=True)
class _Owed:
    """A request to collect that nobody could answer."""

    at: Workplace
    wanted: Collecting


class LateSpaces(ChildSpaces):
    """The workspaces of a node; what cannot be collected now is collected when it is back."""

    def __init__(self, line: Line, repo: Repo, layout: Layout) -> None:
        super().__init__(line, repo, layout)
        self._owed = anyio.Path(line.opening.home / FOLDER)

    async def collect(self, at: Workplace, wanted: Collecting) -> Brought:
        """Have everything collected there, and bring it home; else note that it is owed."""
        try:
            return await super().collect(at, wanted)
        except SiteGone as gone:
            said = json.dumps(codec_of(_Owed).encode(_Owed(at=at, wanted=wanted)))
            await self._owed.mkdir(parents=True, exist_ok=True)
            draft = self._owed.parent / "late.new"
            await draft.write_text(said)
            await draft.replace(self._owed / quote(at.attempt.path, safe=""))
            hint = f"If the node comes back, its work is kept under {_names(at).late}."
            raise SiteGone(str(gone), hint=hint) from gone

    async def bring(self) -> dict[AttemptId, str]:
        """Bring all that is owed; return where each of it is kept."""
        brought = {}
        files = [one async for one in self._owed.iterdir()] if await self._owed.exists() else []
        for file in files:
            owed: _Owed = codec_of(_Owed).decode(json.loads(await file.read_text()))
            if await self._bring(owed):
                brought[owed.at.attempt] = _names(owed.at).late
            await file.unlink()
        return brought

    async def _bring(self, owed: _Owed) -> bool:
        at, wanted = owed.at, owed.wanted
        base = await self._base(at)
        work, pack = await self._line.call(Far.collect, at, wanted, base)
        if not isinstance(work.brought.change, CollectedChange):
            return False
        await bring_late(self._repo, _names(at), work.refs, pack)
        await self._line.call(Far.release, at, wanted, work.refs, {})
        return True


def _names(at: Workplace) -> RefNames:
    return RefNames(at.attempt, at.terms.runtime.branch_prefix)
