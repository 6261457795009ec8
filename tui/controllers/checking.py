"""Show what a check printed, and on what it ran."""

from engine.messages.results import CheckResult, verdict_of
from tui.ink import MUTED, TEXT, Ink, Role, Row, Span, words
from tui.kit.dialogs import TextPage
from tui.kit.screen import Controller
from tui.words.clean import clean_block
from tui.words.cutting import wrap
from tui.words.figures import lasting

_ROOM = 12
"""So many cells of a screen are not for the text of a page."""


class CheckOutput(Controller):
    """Open the output of the check of what is on screen."""

    @property
    def check(self) -> CheckResult | None:
        """Return the newest check of the worker under the cursor."""
        worker = self.session.worker_view
        return worker.check if worker else None

    def why_not(self, idea: str) -> str:
        if idea != "show_check":
            return ""
        return (
            ""
            if self.check
            else f"no check has run on it yet; {self.screen.key_of('check')} runs it"
        )

    def do_show_check(self) -> None:
        """Lay all that is known of the check over the screen, from the end of its output."""
        check, worker = self.check, self.session.worker_view
        if check is None or worker is None:
            return
        rows = check_page(check, self.screen.size.width - _ROOM, is_stale=worker.is_check_stale)
        page = TextPage(f"The check of {worker.worker}", rows, self.session.ahead)
        self.screen.open(page, lambda _: None)


def check_page(check: CheckResult, cells: int, *, is_stale: bool) -> list[Row]:
    """Return the command, how it ended, on what it ran, and the end of what it printed."""
    verdict = verdict_of(check, is_stale=is_stale, has_claimed=False)
    mark = Span("✓ ", Ink(Role.DONE)) if check.passed else Span("✗ ", Ink(Role.FAILED))
    ended = f"exit code {check.exit_code}, " if check.exit_code is not None else ""
    stale = "; the change is different now" if is_stale else ""
    on = f"on tree {check.tree[:9]}" if check.tree else "on its tree"
    where = "the tree that would land" if check.is_exact else "the worker's own tree"
    output = check.output or check.summary
    return [
        words(mark, Span(str(verdict or ("passed" if check.passed else "failed")), TEXT)),
        words(f"  {ended}{lasting(check.duration_s)}, {on}, {where}{stale}"),
        *((Span("  "), Span(text, MUTED)) for text in wrap(f"$ {check.command}", cells - 2)),
        (),
        *(
            (Span(text, TEXT),)
            for line in clean_block(output).rstrip("\n").split("\n")
            for text in wrap(line, cells)
        ),
    ]
