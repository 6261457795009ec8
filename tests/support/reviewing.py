"""A console that looks at conflicts, for tests that decide them."""

from typing import Any

from engine.merge import FileConflict
from tests.support.consoles import Console, opened
from tests.support.review_consoles import (
    WHO,
    ReviewPort,
    conflicted_view,
    conflicts,
)

IO, ERRORS = "src/csvlite/io.py", "src/csvlite/errors.py"


def port(*files: FileConflict, **more: Any) -> ReviewPort:
    return ReviewPort(conflicted_view(), files=files or conflicts(), **more)


class Reviewing:
    """A console that looks at the conflicts of a port."""

    def __init__(self, port: ReviewPort, **more: object) -> None:
        self.port = port
        self._opened = opened(port=port, **more)  # type: ignore[arg-type]

    async def __aenter__(self) -> Console:
        console = await self._opened.__aenter__()
        console.app.session.worker = WHO
        await console.do("go_review")
        return console

    async def __aexit__(self, *error: object) -> None:
        await self._opened.__aexit__(*error)  # type: ignore[arg-type]


def decided(port: ReviewPort, path: str = IO) -> list[str | None]:
    """Return what is decided for each hunk of a file."""
    return [hunk.choice for hunk in port.view_of().file(path).hunks]
