"""Raise errors as callers expect them: one comes out as itself."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def plain_errors() -> Iterator[None]:
    """Raise a single error as itself, not as the task group's group of one."""
    try:
        yield
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        if error is group:
            raise
        raise error from error.__cause__
