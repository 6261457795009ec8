"""An ordinary user beside root, with a copy of the code that others may read."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.needs import need

NOBODY = 65534
_ROOT = Path(__file__).parents[2]
_COMPILED = shutil.ignore_patterns("__pycache__")


@dataclass(frozen=True)
class OrdinaryUser:
    """Somebody without root's rights, and a folder of theirs that holds `engine` and `tests`."""

    folder: Path
    python: str

    @property
    def code(self) -> Path:
        """Return where `engine` and `tests.support` can be imported from."""
        return self.folder / "code"

    def run(self, *words: str, timeout_s: float = 120) -> "subprocess.CompletedProcess[str]":
        """Run Python with these words as this user."""
        return subprocess.run(
            [*_identity(), self.python, "-B", *words],
            env={"PATH": "/usr/bin:/bin", "HOME": str(self.folder)},
            cwd=self.code,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_s,
        )

    def owns(self, *paths: Path) -> None:
        """Give files to this user."""
        if os.getuid() == 0:
            for path in paths:
                os.chown(path, NOBODY, NOBODY)


@contextlib.contextmanager
def ordinary_user() -> Iterator[OrdinaryUser]:
    """Somebody who may not do everything; whoever runs this, where that is not root."""
    python = shutil.which("python3", path="/usr/bin")
    if os.getuid() == 0:
        need("setpriv")
    if python is None:
        pytest.skip("there is no python3 in /usr/bin that others may run (apt install python3)")
    # pytest closes its own folders to others, at any moment.
    with tempfile.TemporaryDirectory(prefix="plait-ordinary-") as name:
        user = OrdinaryUser(Path(name), python)
        user.folder.chmod(0o711)
        shutil.copytree(_ROOT / "engine", user.code / "engine", ignore=_COMPILED)
        shutil.copytree(_ROOT / "tests/support", user.code / "tests/support", ignore=_COMPILED)
        (user.code / "tests/__init__.py").touch()
        user.owns(user.folder)
        yield user


def _identity() -> Sequence[str]:
    if os.getuid() != 0:
        return ()
    return ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
