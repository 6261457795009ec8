"""The cause of trouble is found in whatever led to an error, and looking for it comes to an end."""

import errno
from pathlib import Path

import pytest

from engine.work.trouble import storage_trouble

FULL = OSError(errno.ENOSPC, "no space left")


def _in_a_circle() -> ValueError:
    first, second = ValueError("first"), KeyError("second")
    first.__context__, second.__context__ = second, first
    return first


def _told_twice() -> ExceptionGroup[Exception]:
    """Return groups within groups whose members have the same cause: 2 to the power of 40 ways."""
    error: Exception = ValueError("deep")
    for _ in range(40):
        group = ExceptionGroup("both", [error, ValueError("other")])
        group.exceptions[1].__context__ = error
        error = group
    return ExceptionGroup("all", [error])


@pytest.mark.parametrize("error", [_in_a_circle(), _told_twice()], ids=["circle", "again"])
def test_an_error_whose_causes_never_end_is_no_trouble_of_the_disk(
    tmp_path: Path, error: Exception
):
    assert storage_trouble(error, [tmp_path], at=0.0) is None


@pytest.mark.parametrize("error", [_in_a_circle(), _told_twice()], ids=["circle", "again"])
def test_a_full_disk_is_found_beside_such_an_error(tmp_path: Path, error: Exception):
    trouble = storage_trouble(ExceptionGroup("both", [error, FULL]), [tmp_path], at=0.0)
    assert trouble is not None
    assert "space" in trouble.help
