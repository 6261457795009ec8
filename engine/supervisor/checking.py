"""Setup and check: commands of the manifest, run as attempts of the worker they serve."""

from secrets import token_hex

from engine.core.effects import Land, PrepareWorkspace, ReleaseWorkspace, RunCheck
from engine.ids import AttemptId
from engine.results import CheckResult
from engine.supervisor.attempts import CommandEnd, with_role
from engine.supervisor.run_ports import RunPort
from engine.supervisor.shelter import GitPlaces, Job
from engine.supervisor.tampering import tell
from engine.supervisor.tools import Tools

_TOLD_TAIL = 2000


_Served = PrepareWorkspace | RunCheck | Land | ReleaseWorkspace
"""The effects on whose behalf commands of the manifest are run."""


class Checking:
    """Runs what the manifest wants run for one worker's attempt."""

    def __init__(
        self,
        run: RunPort,
        tools: Tools,
        effect: PrepareWorkspace | RunCheck | Land | ReleaseWorkspace,
    ) -> None:
        self._run = run
        self._tools = tools
        self._effect = effect

    async def setup(
        self, folder: str, git: GitPlaces | None, *, role: str | None = None
    ) -> str | None:
        """Make a tree ready by the manifest's setup; None, or why it could not be."""
        command = self._run.state.plan.workspace.setup
        if command is None:
            return None
        # A tree to be landed is another one each time: what was set up before says nothing of it.
        end = await self._command(folder, git, command, role or f"land-setup-{token_hex(3)}")
        return None if end.is_ok else f"setup {end.why}\n{end.tail[-_TOLD_TAIL:]}".rstrip()

    async def teardown(self, folder: str) -> None:
        """Undo what setup did outside of the workspace; how it ends changes nothing."""
        command = self._run.state.plan.workspace.teardown
        if command is not None:
            await self._command(folder, None, command, "teardown")

    async def check(
        self, folder: str, tree: str, git: GitPlaces | None, *, role: str | None = None
    ) -> CheckResult:
        """What the step's check says of a tree."""
        command = self._run.state.plan.step(self._effect.worker.step).check or "true"
        end = await self._command(folder, git, command, role or f"check-{tree[:12]}")
        summary = "passed" if end.is_ok else f"the check {end.why}\n{end.tail}".rstrip()
        return CheckResult(
            command=command,
            passed=end.is_ok,
            tree=tree or None,
            exit_code=end.exit.exit_code,
            summary=summary,
            duration_s=round(end.exit.wall_s, 3),
        )

    def again(self) -> "CheckingAgain":
        """The same, run anew even where the same tree was checked before."""
        return CheckingAgain(self)

    async def _command(
        self, folder: str, git: GitPlaces | None, command: str, role: str
    ) -> CommandEnd:
        state, effect = self._run.state, self._effect
        attempt = AttemptId(state.run, effect.worker, effect.attempt)
        job = Job(
            attempt=with_role(attempt, role),
            workspace=folder,
            limits=state.limits_of(effect.worker),
            git=git or self._tools.workshop.git_places(state, effect.worker),
            env=self._tools.ports.lease(f"{state.run}/{effect.worker}", state.plan.workspace.ports),
        )
        proof = self._tools.proof
        before = await proof.look(state, job.attempt)
        end = await self._tools.starter.run_command(state, job, command)
        found = await proof.compare(self._run, effect.worker, before)
        tell(self._run, found, attempt, at=self._tools.clock.now())
        return end


class CheckingAgain:
    """Checks that a human asked for: attempts of their own, so that nothing old is answered."""

    def __init__(self, checking: Checking) -> None:
        self._checking = checking
        self._name = f"again-{token_hex(3)}"

    async def setup(self, folder: str, git: GitPlaces) -> str | None:
        """Make a tree ready by the manifest's setup; None, or why it could not be."""
        return await self._checking.setup(folder, git, role=f"setup-{self._name}")

    async def check(self, folder: str, tree: str, git: GitPlaces) -> CheckResult:
        """What the step's check says of a tree."""
        return await self._checking.check(folder, tree, git, role=f"check-{self._name}")
