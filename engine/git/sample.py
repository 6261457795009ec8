"""A repository made from a folder: for samples, which need one to begin with."""

import os
from collections.abc import Mapping
from pathlib import Path

from engine.errors import GitFailed
from engine.git.plumbing.hardening import base_environment
from engine.git.plumbing.process import execute
from engine.git.runner import TIMEOUT_S

_IDENTITY = ("-c", "user.name=plait demo", "-c", "user.email=demo@localhost")


async def make_repository(folder: Path, environment: Mapping[str, str], *, message: str) -> None:
    """Make a folder a repository on the branch `main`, with all its files in one commit.

    Raises:
        GitFailed: Git could not.
    """
    env = base_environment(environment.get("PATH", os.defpath), {})
    for words in (
        ("init", "--quiet", "--initial-branch=main"),
        ("add", "--all"),
        (*_IDENTITY, "commit", "--quiet", "--message", message),
        ("config", "user.name", "plait demo"),
        ("config", "user.email", "demo@localhost"),
    ):
        done = await execute(["git", *words], env=env, cwd=str(folder), timeout_s=TIMEOUT_S)
        if done.exit_code:
            said = done.stderr.decode(errors="replace")
            raise GitFailed(["git", *words], done.exit_code, said)
