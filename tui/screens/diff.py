"""Diff: one worker's change, hunk by hunk; what was seen, what is to be said about it."""

from collections.abc import Sequence
from functools import partial

from engine.commands import BeginFrom, RetryWorker, Steer
from engine.phases import Phase
from engine.results import WorkerView
from tui.present.diff_layout import Comment, Part
from tui.present.diff_page import FILES, FILES_FROM, SPLIT_FROM, diff_subject, edge_map, file_pane
from tui.present.diff_pane import DiffPane
from tui.present.ink import LINE, TEXT, Page, Row, Span, Zone, blank, fit, words
from tui.present.scene import Scene
from tui.present.sentences import sentence_of
from tui.screens.acting import ActingScreen
from tui.screens.base import Writing
from tui.screens.session import Session, Undoable

_MODES = ("auto", "unified", "split")
_NO_DROP = "hunks cannot be left out of a change before it lands; comment on it instead"


class DiffScreen(ActingScreen):
    """A change against what it is compared with."""

    kind = "diff"

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.pane = DiffPane(seen=session.seen, comments=session.comments)
        self.mode = "auto"
        self.attempt: int | None = None
        self.is_zoomed = False
        self.reason = ""
        self._loaded: tuple[str, str, int, str] = ("", "", 0, "")
        self._files_at: list[int] = []

    # Loading.

    def on_screen_resume(self) -> None:
        self._load_if_moved()
        super().on_screen_resume()

    def point_at(self, worker: str) -> None:
        super().point_at(worker)
        self.attempt = None

    def _load_if_moved(self) -> None:
        """Ask for the diff when the worker, the attempt or its change is another than before."""
        here, run = self.session.worker_view, self.session.run
        if here is None or run is None:
            return
        attempt = self.attempt or here.attempt
        change = f"{here.change}" if here.change else ""
        wanted = (run.run, here.worker, attempt, change)
        if wanted != self._loaded:
            is_same = wanted[:3] == self._loaded[:3]
            self._loaded = wanted
            if not is_same:
                self.pane.show(None)
                self.reason = ""
            self.begin(partial(self._load, wanted), group="diff", exclusive=True)

    async def _load(self, wanted: tuple[str, str, int, str]) -> None:
        run, worker, attempt, _ = wanted
        found = await self.session.bridge.diff(run, worker, attempt or None)
        if wanted != self._loaded:
            return
        if isinstance(found, str):
            self.reason = found
        else:
            self.pane.show(found)
            self.session.opened_diffs.add((run, worker, attempt))
            if self.session.diff_place:
                self.pane.to_place(self.session.diff_place)
                self.session.diff_place = ""
        self.draw()

    # Drawing.

    def subject(self, scene: Scene, cells: int) -> Row:
        worker, step = self.session.worker_view, self.session.step_view
        if worker is None or step is None:
            return super().subject(scene, cells)
        return diff_subject(worker, step, self.pane.diff, seen=self.session.seen, cells=cells)

    def draw_body(self, scene: Scene, cells: int, height: int) -> Page:
        del scene
        self._load_if_moved()
        worker, diff = self.session.worker_view, self.pane.diff
        if worker is None or diff is None:
            said = self.reason or ("asking for the diff" if worker else "there is no worker yet")
            return Page(((), words(f"  {said[0].upper()}{said[1:]}.")))
        if not diff.files:
            return Page(((), words(f"  Nothing differs from {diff.against}.")))
        is_split = self.mode == "split" or (self.mode == "auto" and cells >= SPLIT_FROM)
        self.pane.set_split(is_split=is_split)
        has_files = cells >= FILES_FROM and not self.is_zoomed
        width = cells - (FILES + 5 if has_files else 2) - 2
        rows = self.pane.draw(width, height)
        edge = edge_map(
            diff, self.pane.places, self.pane.shape, on_screen=self.pane.seen_rows, height=height
        )
        body = [
            (*fit(row, width), blank(1), mark, blank(1))
            for row, mark in zip(rows, edge, strict=True)
        ]
        zones = [Zone(cells - width - 2, 0, width, height, "pane")]
        if not has_files:
            return Page(tuple((blank(1), *row) for row in body), tuple(zones))
        listed, self._files_at = file_pane(
            diff, self.pane.shape, worker, here=self.pane.file, send_key=self._key("send")
        )
        at = self._files_at[self.pane.file] if self._files_at else 0
        top = max(at + 3 - height, 0)
        left = listed[top : top + height]
        zones += [
            Zone(0, y - top, FILES, 1, f"file:{n}")
            for n, y in enumerate(self._files_at)
            if y >= top
        ]
        bar = (blank(1), Span("│", LINE), blank(1))
        drawn = [
            (blank(1), *fit(left[y] if y < len(left) else (), FILES), *bar, *row)
            for y, row in enumerate(body)
        ]
        return Page(tuple(drawn), tuple(zones))

    def sentence(self, scene: Scene) -> Row:
        if self.pane.anchor is not None:
            return words(
                Span(f"{len(self.pane.range())} lines. ", TEXT),
                "c comments on them, esc leaves them.",
            )
        worker, step = self.session.worker_view, self.session.step_view
        return sentence_of(worker, step, scene.now) if worker and step else ()

    def hints(self) -> Sequence[str]:
        return (
            "mark",
            "down",
            "comment",
            "send",
            "yes",
            "land",
            "select",
            "show_split",
            "more",
        )

    def why_not(self, idea: str) -> str:
        if idea in {"comment", "diff", "no", "no_wide"}:
            return self._why_not_here(idea)
        return super().why_not(idea)

    def _why_not_here(self, idea: str) -> str:
        if idea in {"no", "no_wide"}:
            return _NO_DROP
        here = self.session.worker_view
        if idea == "diff" and (here is None or here.attempt < 2):  # noqa: PLR2004 - a second one to compare
            return "there is no other attempt to look at"
        return "" if self.pane.diff else "there is no diff"

    def pointed(self, target: str, times: int) -> None:
        kind, _, rest = target.partition(":")
        if kind == "file":
            self.pane.to_file(int(rest))
        elif kind == "pane" and times > 1:
            self.do_open()

    # Moving.

    def do_down(self) -> None:
        self.pane.move(1)

    def do_up(self) -> None:
        self.pane.move(-1)

    def do_half_down(self) -> None:
        self.pane.move(self.size.height // 3)

    def do_half_up(self) -> None:
        self.pane.move(-(self.size.height // 3))

    def do_page_down(self) -> None:
        self.pane.move(self.size.height - 8)

    def do_page_up(self) -> None:
        self.pane.move(-(self.size.height - 8))

    def do_first(self) -> None:
        self.pane.move(-len(self.pane.places))

    def do_last(self) -> None:
        self.pane.move(len(self.pane.places))

    def do_left(self) -> None:
        self.pane.to_part(Part.HUNK, -1)

    def do_right(self) -> None:
        self.pane.to_part(Part.HUNK, 1)

    def do_next_hunk(self) -> None:
        self.do_right()

    def do_previous_hunk(self) -> None:
        self.do_left()

    def do_unit_down(self) -> None:
        self.pane.to_part(Part.FILE, 1)

    def do_unit_up(self) -> None:
        self.pane.to_part(Part.FILE, -1)

    def do_next_file(self) -> None:
        self.do_unit_down()

    def do_previous_file(self) -> None:
        self.do_unit_up()

    def do_next(self) -> None:
        if not self.pane.to_new(1):
            self.say_refused(self._key("next"), "no hunk further down is new")

    def do_previous(self) -> None:
        if not self.pane.to_new(-1):
            self.say_refused(self._key("previous"), "no hunk further up is new")

    def do_scroll_left(self) -> None:
        self.pane.scroll(-8)

    def do_scroll_right(self) -> None:
        self.pane.scroll(8)

    # Seeing.

    def do_open(self) -> None:
        self.pane.toggle_fold()

    def do_mark(self) -> None:
        """The hunk was seen: on to the next one that was not."""
        key = self.pane.key
        if not key:
            self.say_refused(self._key("mark"), "there is no hunk under the cursor")
            return
        seen = self.session.seen

        def toggle() -> None:
            seen.symmetric_difference_update({key})
            self.pane.lay_out()

        was_new = key not in seen
        toggle()
        self.session.remember(Undoable("the mark on the hunk", toggle, toggle))
        if was_new and not self.pane.to_new(1) and not self.pane.to_new(-1):
            self.say("every hunk was seen")

    def do_show_split(self) -> None:
        self.mode = _MODES[(_MODES.index(self.mode) + 1) % len(_MODES)]
        self.say(f"the diff is shown {'by width' if self.mode == 'auto' else self.mode}")

    def do_show_space(self) -> None:
        self.pane.toggle("ignores_blanks")

    def do_show_generated(self) -> None:
        self.pane.toggle("has_generated")

    def do_show_invisible(self) -> None:
        self.pane.shows_blanks = not self.pane.shows_blanks

    def do_more(self) -> None:
        self.pane.set_context(self.pane.shape.context + 3)

    def do_less(self) -> None:
        self.pane.set_context(self.pane.shape.context - 3)

    def do_zoom(self) -> None:
        self.is_zoomed = not self.is_zoomed

    def do_select(self) -> None:
        self.pane.anchor = self.pane.cursor if self.pane.anchor is None else None

    def do_leave(self) -> None:
        if self.pane.anchor is not None:
            self.pane.anchor = None
        else:
            super().do_leave()

    def do_diff(self) -> None:
        """The change of another attempt."""
        here = self.session.worker_view
        if here is None:
            return
        now = self.attempt or here.attempt
        self.attempt = now - 1 if now > 1 else here.attempt
        self.say(f"attempt {self.attempt} of {here.attempt}")

    def do_copy(self) -> None:
        self.copy("\n".join(self.pane.range()))

    def do_copy_name(self) -> None:
        self.copy(self.pane.path_and_line)

    def place_here(self) -> tuple[str, int]:
        path, _, line = self.pane.path_and_line.rpartition(":")
        return (path, int(line)) if line.isdigit() and path else (self.pane.path_and_line, 0)

    # Saying.

    def do_comment(self) -> None:
        spot = self.pane.spot()
        if spot is None:
            self.say_refused(self._key("comment"), "there is no line under the cursor")
            return
        note = "kept until you send all of them"
        title = f"comment on {self.pane.path_and_line}"
        self.write(Writing(title, note, lambda text: self._comment(spot, text), key=title))

    def _comment(self, spot: Comment, text: str) -> None:
        comments, made = self.session.comments, spot._replace(text=text, about=self._about())

        def add() -> None:
            comments.append(made)
            self.pane.lay_out()

        def remove() -> None:
            comments.remove(made)
            self.pane.lay_out()

        add()
        self.pane.anchor = None
        self.session.remember(Undoable("the comment", remove, add))

    def do_send(self) -> None:
        """All pending comments go to the agent: at once where it runs, else with a retry."""
        worker, about = self.session.worker_view, self._about()
        pending = [c for c in self.session.comments if c.about == about and not c.is_sent]
        if not pending or worker is None:
            self.say_refused(self._key("send"), "no comment is pending")
            return
        text = "\n\n".join(_as_words(comment) for comment in pending)
        command = self._carrier(worker, text)
        if command is None:
            self.say_refused(self._key("send"), f"{worker.worker} can take no comments now")
            return

        def sent() -> None:
            self.session.comments[:] = [
                c._replace(is_sent=True) if c in pending else c for c in self.session.comments
            ]
            self.pane.lay_out()

        self.send(command, f"{len(pending)} comments go to {worker.worker}", sent)

    def _about(self) -> str:
        worker = self.session.worker_view
        return f"{self.run_id}/{worker.worker}" if worker else ""

    def _carrier(self, worker: WorkerView, text: str) -> Steer | RetryWorker | None:
        if worker.phase is Phase.RUNNING:
            return Steer(worker=worker.worker, run=self.run_id, text=text)
        if worker.phase in {Phase.REVIEWING, Phase.CONFLICTED, Phase.FAILED, Phase.CANCELLED}:
            return RetryWorker(
                worker=worker.worker, run=self.run_id, mode=BeginFrom.CONTINUE, feedback=text
            )
        return None


def _as_words(comment: Comment) -> str:
    """A comment as an agent reads it: where, the code, what is said of it."""
    code = "\n".join(f"> {line}" for line in comment.code.split("\n"))
    return f"{comment.path}:{comment.number}\n{code}\n{comment.text}"
