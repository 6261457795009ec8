"""Tell which try is on in a repository.

Every look at a run asks that, and mostly none is on: then the rooms that begin and end one are not
loaded.
"""

from __future__ import annotations

from os import PathLike, environ
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.review.trying import OpenTry
    from engine.store.layout import Layout


async def open_try(
    folder: str | PathLike[str], *, environment: Mapping[str, str] | None = None
) -> OpenTry | None:
    """Return the try that is on in a repository, without changing anything."""
    from anyio import to_thread  # noqa: PLC0415  who has no event loop asks below

    from engine.site.place import find_place  # noqa: PLC0415

    place = await find_place(Path(folder), dict(environ if environment is None else environment))
    return await to_thread.run_sync(noted_try, place.layout)


def noted_try(layout: Layout) -> OpenTry | None:
    """Return the try that is noted beside a repository's runs."""
    if not layout.try_note.exists():
        return None
    from engine.review.trying import try_in  # noqa: PLC0415  only a try that is on pays for it

    return try_in(layout.root)
