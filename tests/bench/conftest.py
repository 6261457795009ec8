"""The shells of the stories, for benches of the command itself."""

from tests.e2e.conftest import repository, shell, site

__all__ = ["repository", "shell", "site"]
