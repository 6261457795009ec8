"""Sites of workers on a small repository: this disk, a child process, and children that fail."""

import os
import random
import secrets
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from engine.errors import EngineError
from engine.git.settings import Signature
from engine.host.local import LocalHost
from engine.host.seam import AttemptExit, Stream
from engine.ids import AttemptId, RunId, WorkerId
from engine.limits import Limits
from engine.plan.model import Cluster, Holes, IsolationStrategy, Runtime, WorkspaceRules
from engine.sandbox.probe import probe
from engine.site.child import ChildSite
from engine.site.cluster import RaySite
from engine.site.far import Opening
from engine.site.line import Line, Start
from engine.site.local import LocalSite
from engine.site.place import Place, find_place
from engine.site.seam import (
    Ability,
    Collecting,
    Filling,
    Site,
    SpaceAddress,
    Spaces,
    Terms,
    Workplace,
)
from engine.site.shelter import Shelter
from engine.site.wire import Message, Pipe
from engine.testing.fake_site import FakeSite
from tests.support.ray_node import HEAD, shared_node
from tests.support.repositories import RepositoryBuilder

RUN = RunId(secrets.token_hex(3))
"""Of its own in every process: cgroups of the machine are named after it."""
WORKER = WorkerId("a", 1)
WANTED = Collecting(author=Signature("A", "a@example.org", 1_700_000_000), message="left over\n")
HOSTILE_WORDS = "mount -t tmpfs none '{hidden}' && exec '{python}' -m engine.site.far"


class LossyLine(Line):
    """A conversation in which every third answer is thrown away, and its call asked again."""

    dice = random.Random(7)
    thrown = 0

    async def _told(self, pipe: Pipe, message: Message) -> Message | None:
        said = await super()._told(pipe, message)
        while self.dice.random() < 1 / 3:
            self.thrown += 1
            said = await super()._told(pipe, message)
        return said


class MortalLine(Line):
    """A conversation whose child dies over one call: before it hears it, or after it was done."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.dies_at, self.is_late = 0, False

    def die_over(self, call: int, *, is_late: bool) -> None:
        """Die over one of the calls that come now, the first of which is 1."""
        self.dies_at, self.is_late = self._last + call, is_late

    async def _told(self, pipe: Pipe, message: Message) -> Message | None:
        if self._last + 1 != self.dies_at:
            return await super()._told(pipe, message)
        if self.is_late:
            await super()._told(pipe, message)
        assert self.process is not None
        self.dies_at = 0
        self.process.kill()
        await self.process.wait()
        return None


@dataclass
class Scene:
    """A repository, and a site for the workers of one run on it."""

    built: RepositoryBuilder
    place: Place
    site: Site
    base: str

    @property
    def line(self) -> Line:
        """The conversation with a child."""
        assert isinstance(self.site, ChildSite)
        return self.site.line

    def at(
        self,
        number: int = 1,
        *,
        role: str = "agent",
        isolation: IsolationStrategy = IsolationStrategy.WORKTREE,
        setup: str | None = None,
        include: tuple[str, ...] = (),
        address: SpaceAddress | None = None,
        worker: WorkerId = WORKER,
    ) -> Workplace:
        """A workplace whose workspace is still to be made, unless it is given."""
        attempt = AttemptId(RUN, worker, number, role)
        return Workplace(
            attempt=attempt,
            address=address or SpaceAddress(attempt=AttemptId(RUN, worker, number)),
            terms=Terms(
                runtime=Runtime(isolation=isolation, base=self.base, holes=Holes()),
                workspace=WorkspaceRules(setup=setup, include=include),
            ),
            limits=Limits(time_seconds=60),
        )

    @property
    def spaces(self) -> Spaces:
        """The workspaces with git."""
        return self.site.spaces(self.at().terms)

    async def prepared(
        self, at: Workplace | None = None, *, givers: tuple[tuple[WorkerId, int], ...] = ()
    ) -> Workplace:
        """A workplace whose workspace is made from the base."""
        at = at or self.at()
        made = await self.spaces.prepare(at, Filling(commit=self.base, givers=givers))
        return replace(at, address=made.address)

    async def said(self, command: str, at: Workplace | None = None) -> str:
        """All that a command writes that runs as the attempt itself."""
        at = at or await self.prepared()
        await self.site.launch(at, command, {})
        out, end = await self.to_end(at.attempt)
        assert end.exit_code == 0, (end, out)
        await self.site.forget(at.attempt)
        return out.decode()

    async def worked(self, command: str, at: Workplace | None = None) -> Workplace:
        """A workplace in which a command has run to its end as the attempt itself."""
        at = at or await self.prepared()
        await self.site.launch(at, command, {})
        await self.to_end(at.attempt)
        await self.site.forget(at.attempt)
        return at

    async def to_end(self, attempt: AttemptId) -> tuple[bytes, AttemptExit]:
        """Return what an attempt wrote, and how it ended."""
        parts: list[bytes] = []  # joined once: hundreds of megabytes come in thousands of parts
        offset = 0
        while True:
            chunk = await self.site.host.read(attempt, offset)
            parts += (f.data for f in chunk.frames if f.stream is Stream.OUT)
            offset = chunk.next_offset
            if chunk.end is not None:
                return b"".join(parts), chunk.end

    async def wait_output(self, attempt: AttemptId, text: bytes) -> None:
        """Return when an attempt has written this."""
        out, offset = b"", 0
        while text not in out:
            chunk = await self.site.host.read(attempt, offset)
            out += b"".join(f.data for f in chunk.frames if f.stream is Stream.OUT)
            offset = chunk.next_offset
            assert chunk.end is None or text in out, chunk.end

    def recording(self, attempt: AttemptId) -> bytes:
        """The recording as the user's repository keeps it."""
        return self.place.layout.recording(attempt).read_bytes()

    def far_recording(self, attempt: AttemptId) -> bytes:
        """The recording where the worker lives."""
        return (self.far_folder(attempt) / "recording").read_bytes()

    def far_folder(self, attempt: AttemptId) -> Path:
        """An attempt's folder where the worker lives."""
        if isinstance(self.site, LocalSite):
            return self.place.layout.attempt(attempt)
        return self.far_home / "mirror.git/plait/runs" / attempt.path

    @property
    def far_home(self) -> Path:
        """The folder of the far half."""
        opening = self.line.opening
        return shared_node().state / "sites" / opening.key if opening.key else opening.home

    def by_hand(self, script: str, *, when: str) -> str:
        """The commit that a script's work makes in a clone of the user's own."""
        clone = self.built.path.parent / "by_hand"
        self.built.git("clone", "-q", str(self.built.path), str(clone))
        self.built.shell(script, cwd=clone)
        self.built.git("add", "-A", cwd=clone)
        who = {"NAME": "A", "EMAIL": "a@example.org", "DATE": when}
        env = {
            f"GIT_{role}_{key}": to for role in ("AUTHOR", "COMMITTER") for key, to in who.items()
        }
        self.built.git("commit", "-q", "-m", "left over", cwd=clone, env=env)
        return self.built.git("rev-parse", "HEAD", cwd=clone)

    @contextmanager
    def refusing_without(self, ability: Ability) -> Iterator[None]:
        """Expect success at a site with this ability, and a refusal by one without."""
        if ability in self.site.abilities:
            yield
        else:
            with pytest.raises(EngineError):
                yield

    def refs(self) -> Mapping[str, str]:
        """The refs of ours in the user's repository, with what they name."""
        listing = self.built.git("for-each-ref", "--format=%(refname) %(objectname)", "refs/plait")
        return dict(line.split(" ") for line in listing.splitlines())

    async def kill(self) -> None:
        """Kill the child as it stands."""
        process = self.line.process
        assert process is not None
        process.kill()
        await process.wait()


@asynccontextmanager
async def scene(
    kind: str, tmp_path: Path, *, depth: int | None = None, rung: str = ""
) -> AsyncIterator[Scene]:
    """A scene with a site: `local`, `child`, `fake`, `ray`, or a child of some kind.

    A `lossy` one loses answers, a `mortal` one dies, one that is `blind` sees no repository, and
    the agents of a `loose` or `mortal-loose` one outlive it. With a `depth`, the repository is a
    shallow clone of one with three commits. A `rung` of file isolation is enforced instead of the
    best there is.
    """
    built = RepositoryBuilder(tmp_path / ("project" if depth is None else "origin"))
    base = built.commit({"code": "one\ntwo\n", "old": "x\n", ".gitignore": "cache\n"}, "start")
    if depth is not None:
        built.commit({"second": "2\n"}, "second")
        base = built.commit({"third": "3\n"}, "third")
        origin = built.path.as_uri()
        built = RepositoryBuilder(tmp_path / "project", init=False)
        built.git("clone", "-q", f"--depth={depth}", origin, ".")
    home = tmp_path / "state"
    (home / "far").mkdir(parents=True)
    env = {**os.environ, "HOME": str(built.home), "PLAIT_STATE_HOME": str(home)}
    env |= {"PLAIT_SANDBOX": rung} if rung else {}
    place = await find_place(built.path, env)
    await anyio.to_thread.run_sync(place.layout.make)
    opened: AbstractAsyncContextManager[Site]
    match kind:
        case "local":
            opened = _local(place, env, tmp_path)
        case "fake":
            opened = FakeSite.opened(place, env)
        case "ray":
            opened = _node(place, env)
        case _:
            opened = _child(kind, place, env)
    async with opened as site:
        yield Scene(built=built, place=place, site=site, base=base)


@asynccontextmanager
async def _local(place: Place, env: Mapping[str, str], tmp_path: Path) -> AsyncIterator[Site]:
    machine = await anyio.to_thread.run_sync(probe, env, tmp_path / "probed")
    shelter = Shelter(machine=machine, layout=place.layout, project=place.project, environ=env)
    async with LocalHost(place.layout.root) as host:
        yield LocalSite(
            place,
            host=host,
            shelter=shelter,
            environment=env,
            tethers=lambda _: True,
        )


@asynccontextmanager
async def _node(place: Place, env: Mapping[str, str]) -> AsyncIterator[Site]:
    cluster = await anyio.to_thread.run_sync(shared_node)
    env = {**env, **cluster.environment}
    known = Cluster(name="ray", address=cluster.address)
    async with RaySite.opened(known, place, Path(env["PLAIT_STATE_HOME"]), env) as site:
        yield site.node(HEAD)  # no broker finds it: that one has tests of its own


@asynccontextmanager
async def _child(kind: str, place: Place, env: Mapping[str, str]) -> AsyncIterator[Site]:
    start = Start()
    if kind == "blind":
        inner = HOSTILE_WORDS.format(hidden=place.project, python=sys.executable)
        start = Start(words=["unshare", "-m", "sh", "-c", inner])
    opening = Opening(
        home=Path(env["PLAIT_STATE_HOME"], "far"),
        project=place.project,
        object_format="sha1",
        environment=env,
    )
    async with anyio.create_task_group() as tasks:
        lines = {"lossy": LossyLine, "mortal": MortalLine, "mortal-loose": MortalLine}
        make = lines.get(kind, Line)
        line = make(opening, tasks, start)
        site = ChildSite(
            line, place, tethers=lambda _: not kind.endswith("loose"), can_confine=True
        )
        try:
            yield site
        finally:
            with anyio.CancelScope(shield=True):
                await site.host.aclose(detach=False)
            tasks.cancel_scope.cancel()
