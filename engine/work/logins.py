"""Keep the logins of agents fresh: renew one at a time, outside every sandbox.

Workers get access tokens only, which end. A refresh token can be used once, so two who renew a
login at the same time log the user out: all engines of a user share a lock for each login, and
whoever comes second finds it renewed. Knows no agent's program and no token.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path

import anyio
import anyio.to_thread

from engine.agents.logins import KeptLogin, kept_login
from engine.clock import Clock
from engine.git.plumbing.lock import RepositoryLock
from engine.plan.model import AgentChoice
from engine.private import private_folder

MARGIN_S = 600.0
"""A token that ends sooner than this is renewed before an agent begins to work with it."""
_LOOK_S = 1.0
_TRY_AGAIN_S = 900.0


class Logins:
    """The logins that the agents of one engine use."""

    def __init__(self, environ: Mapping[str, str], *, folder: Path, clock: Clock) -> None:
        self._environ = environ
        self._folder = folder
        self._clock = clock
        self._locks: dict[Path, RepositoryLock] = {}

    async def keep_fresh(self, choice: AgentChoice | None, *, margin_s: float = MARGIN_S) -> None:
        """Renew the login of an agent that is about to start, if it ends soon.

        Where that does not help, the agent says itself that it needs a login.
        """
        login = kept_login(choice, self._environ) if choice is not None else None
        if login is not None and await self._ends_soon(login, margin_s):
            await self._renew(login, margin_s)

    async def wait_renewed(self, choice: AgentChoice | None, *, since: float) -> None:
        """Return when the login is another one than the attempt began with.

        It is renewed here if that can be done; else a human must log in with the agent's own
        program. Where a login is kept in no file this never returns: a human retries.
        """
        login = kept_login(choice, self._environ) if choice is not None else None
        if login is None:
            await anyio.sleep_forever()
            return
        tried_at: float | None = None
        while not await self._is_renewed(login, since):
            now = self._clock.monotonic()
            is_due = tried_at is None or now - tried_at > _TRY_AGAIN_S
            if is_due and await self._ends_soon(login, MARGIN_S):
                tried_at = now
                await self._renew(login, MARGIN_S)
                continue
            await self._clock.sleep(_LOOK_S)

    async def _is_renewed(self, login: KeptLogin, since: float) -> bool:
        written_at = await anyio.to_thread.run_sync(login.written_at)
        return written_at is not None and written_at > since and not await self._ends_soon(login, 0)

    async def _ends_soon(self, login: KeptLogin, margin_s: float) -> bool:
        ends_at = await anyio.to_thread.run_sync(login.ends_at)
        return ends_at is not None and ends_at - self._clock.now() < margin_s

    async def _renew(self, login: KeptLogin, margin_s: float) -> None:
        """Let the agent's program renew the login, unless somebody already has."""
        place = await anyio.to_thread.run_sync(self._place, login)
        async with self._locks.setdefault(place, RepositoryLock(place / "lock")).held():
            # Look again under the lock: another engine may have renewed it meanwhile.
            if await self._ends_soon(login, margin_s):
                await login.renew(self._environ, folder=place / "empty")

    def _place(self, login: KeptLogin) -> Path:
        name = hashlib.sha256(str(login.file.resolve()).encode()).hexdigest()[:16]
        place = self._folder / name
        private_folder(place / "empty")
        return place
