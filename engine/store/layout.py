"""Know the paths of everything that plait keeps; no other module does.

Pure path logic, and the making of folders that only their owner may enter. It knows neither what
the files hold nor whether they are there.
"""

import errno
import os
import re
from collections.abc import Mapping
from pathlib import Path

from engine.errors import StoreError
from engine.ids import AttemptId, RunId, WorkerId
from engine.private import private_folder, tightened

_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_CHECK = ".check"
TRY_NOTE = "try.json"
"""The name of the note of a try that is on."""
ASIDE = "aside-"
"""The names of made-up runs begin so: they have no journal, and no store lists them."""
_UNFIT = re.compile(r"[^A-Za-z0-9._-]+")


class Layout:
    """The paths of one repository, from the git directory that its worktrees share."""

    def __init__(self, common_dir: Path) -> None:
        self.common_dir = common_dir.resolve()
        self.root = self.common_dir / "plait"
        self.runs = self.root / "runs"
        self.summaries_json = self.root / "summaries.json"
        self.trash = self.root / "trash"
        self.ahead = self.root / "ahead"
        self.try_note = self.root / TRY_NOTE
        self.answers_json = self.root / "answers.json"
        self.engine_lock = self.root / "engine.lock"
        self.engine_json = self.root / "engine.json"
        self.engine_key = self.root / "engine.key"

    def run(self, run: RunId) -> Path:
        """Return a run's folder."""
        if not _RUN_ID.fullmatch(run):
            raise ValueError(f"not a run's name: {run!r}")
        return self.runs / run

    def check(self, run: RunId) -> Path:
        """Return the folder of a run's checks of whole trees; no step may have its name."""
        return self.run(run) / _CHECK

    def clean_rooms(self, run: RunId) -> Path:
        """Return the HOME and the like of the check that runs on an exact tree now."""
        return self.check(run) / "rooms"

    def served(self, run: RunId) -> Path:
        """Return the folder of what is made for a run's served programs; it goes with them."""
        return self.run(run) / ".served"

    def radar(self, run: RunId) -> Path:
        """Return the folder of what was seen of a run's workers, beside its steps too."""
        return self.run(run) / ".radar"

    def plan_json(self, run: RunId) -> Path:
        """Return the file of a run's plan, for people."""
        return self.run(run) / "plan.json"

    def run_db(self, run: RunId) -> Path:
        """Return the file of a run's journal."""
        return self.run(run) / "run.db"

    def delivered(self, history: str) -> Path:
        """Return the file of what a history has of the runs."""
        return self.root / f"delivered-{history}.json"

    def worker(self, run: RunId, worker: WorkerId) -> Path:
        """Return a worker's folder."""
        return self.run(run) / worker.step / worker.short

    def agent_db(self, run: RunId, worker: WorkerId) -> Path:
        """Return the file of a worker's own database."""
        return self.worker(run, worker) / "agent.db"

    def home(self, run: RunId, worker: WorkerId) -> Path:
        """Return a worker's HOME, kept over its attempts."""
        return self.worker(run, worker) / "home"

    def attempt(self, attempt: AttemptId) -> Path:
        """Return an attempt's folder."""
        return self.runs / attempt.path

    def recording(self, attempt: AttemptId) -> Path:
        """Return the file of all that came out of and went into an attempt, byte by byte."""
        return self.attempt(attempt) / "recording"

    def git(self, attempt: AttemptId) -> Path:
        """Return an attempt's private repository."""
        return self.attempt(attempt) / "git"

    def make(self, folder: Path | None = None) -> Path:
        """Make a folder of this layout (or all that every engine needs), for its owner alone."""
        if folder is None:
            make_private(self.runs, below=self.common_dir)
            make_private(self.trash, below=self.common_dir)
            tightened(self.root)
            return self.root
        return make_private(folder, below=self.common_dir)


def make_private(folder: Path, *, below: Path) -> Path:
    """Make a folder and all missing ones between it and `below`, each with mode 0700.

    Raises:
        StoreError: one of them cannot be made, or is no folder.
    """
    if not folder.is_relative_to(below):
        raise ValueError(f"{folder} is not below {below}")
    if folder.is_dir():  # as nearly always
        return folder
    try:
        if not below.is_dir():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(below))
        private_folder(folder)
    except OSError as error:
        raise StoreError(
            f"the folder {folder} cannot be created: {error.strerror}",
            hint="Check its parent's free space and permissions, or set PLAIT_STATE_HOME.",
        ) from error
    return folder


def make_state_home(environment: Mapping[str, str]) -> Path:
    """Make the state home for its owner alone, also where an older version made it for everybody.

    A folder that PLAIT_STATE_HOME names may be shared with others, so it stays as it is.

    Raises:
        StoreError: It cannot be made.
    """
    home = state_home(environment)
    is_named = bool(environment.get("PLAIT_STATE_HOME"))
    try:
        return private_folder(home) if is_named else tightened(home)
    except OSError as error:
        raise StoreError(
            f"the folder {home} cannot be created: {error.strerror}",
            hint="Check its parent's free space and permissions, or set PLAIT_STATE_HOME.",
        ) from error


def state_home(environment: Mapping[str, str]) -> Path:
    """Return the folder for what is neither the user's nor the repository's.

    Raises:
        StoreError: PLAIT_STATE_HOME depends on the folder a command is typed in.
    """
    if own := environment.get("PLAIT_STATE_HOME"):
        if not Path(own).is_absolute():
            hint = "Every command must find the same folder, so give its full path."
            raise StoreError(f"PLAIT_STATE_HOME is not an absolute path: {own}", hint=hint)
        return Path(own)
    base = Path(environment.get("XDG_STATE_HOME", ""))
    if not base.is_absolute():  # the XDG rules: one that is not absolute is to be ignored
        home = environment.get("HOME")
        base = (Path(home) if home else Path.home()) / ".local/state"
    return base / "plait"


def check_root(workspaces: Path, run: RunId) -> Path:
    """Return the folder of a run's checked trees among its workspaces; no step is called so."""
    return workspaces / run / _CHECK


def workspace_root(common_dir: Path, home: Path) -> Path:
    """Return the folder of a repository's worktrees below `home`, outside of the user's own tree.

    The name is for people; the hash keeps two repositories of one name apart. The path is the real
    one, as git and the kernel name it.
    """
    resolved = common_dir.resolve()
    named = resolved.parent if resolved.name == ".git" else resolved
    name = _UNFIT.sub("_", named.name.removesuffix(".git")) or "repository"
    from hashlib import sha256  # noqa: PLC0415  OpenSSL costs 3 ms, and only new places need it

    digest = sha256(os.fsencode(resolved)).hexdigest()[:10]
    return home.resolve() / f"{name[:40]}-{digest}"


def workspace(root: Path, attempt: AttemptId) -> Path:
    """Return one attempt's worktree below a workspace root."""
    return root / attempt.path
