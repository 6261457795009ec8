"""Compose a run: a prompt and what `plait run` takes beside it, the plan of it, the start."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.widgets import Input

from engine.errors import EngineError, whole_of
from engine.messages.commands import Refused
from tui.ink import BOLD, KEY, MUTED, TEXT, Ink, Role, Row, Span, cut_row, words
from tui.kit.ahead import KeysFree, TypeAhead
from tui.kit.dialogs import Dialog
from tui.kit.inked import Inked
from tui.kit.outside import edit_text
from tui.kit.starting import Starter, Wanted
from tui.kit.textbox import TextBox
from tui.kit.working import begin_work
from tui.words.clean import clean, clean_block
from tui.words.cutting import wrap
from tui.words.figures import number_in
from tui.words.starting import PERMISSIONS, agent_row, files_like, held_rows, plan_rows, told

if TYPE_CHECKING:  # a type alone
    from engine.api import Plan
    from engine.limits import Enforcement

Begin = Callable[["Plan", Wanted], Awaitable[str | Refused]]
_PROMPT = ""
_MOST_OFFERED = 5
_UNSAID = {"manifest": "a prompt", "into": "a new run"}
"""The words of a field in which nothing is chosen."""
_NOTES = {
    "candidates": "several do the task, and you choose",
    "base": "a branch or commit; empty: HEAD",
    "minutes": "per attempt; empty: as configured",
}
_LABELS = {"manifest": "what", "into": "where"}
_NARROW = ("candidates", "base", "minutes")


class Turn(Inked, can_focus=True):
    """One of several values, turned by the arrows."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("left", "turn(-1)", "previous"),
        ("right", "turn(1)", "next"),
        ("space", "turn(1)", "next"),
        ("enter", "submit", "start"),
    ]
    does = "turn"

    def __init__(self, owner: Composer, name: str, values: Sequence[tuple[str, Row]]) -> None:
        super().__init__(id=name)
        self._owner = owner
        self.values: Sequence[tuple[str, Row]] = values
        self.value = values[0][0] if values else ""

    @property
    def place(self) -> int:
        """Return where among the values the chosen one stands."""
        return next((at for at, (name, _) in enumerate(self.values) if name == self.value), 0)

    def draw(self) -> None:
        """Show the value with what is said of it."""
        shown, note = self.values[self.place] if self.values else ("", ())
        name = clean(shown) or _UNSAID.get(self.id or "", "as configured")
        left, right = ("← ", " →") if self.has_focus else ("", "")
        self.show([words(Span(left, KEY), Span(name, TEXT), Span(right, KEY), "  ", *note)])

    def action_turn(self, by: int) -> None:
        """Take the next value, or the one before."""
        if self.values:
            self.value = self.values[(self.place + by) % len(self.values)][0]
        self.draw()
        self._owner.changed()

    def action_submit(self) -> None:
        """Start."""
        self._owner.start()

    def watch_has_focus(self, has_focus: bool) -> None:  # noqa: FBT001 - Textual's own
        """Show if the arrows turn it."""
        super().watch_has_focus(has_focus)
        self.draw()


class PromptBox(TextBox):
    """The prompt: enter starts; in an empty box, the arrows bring back what was started before."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("down", "recall_later", "down"),
        ("tab", "complete", "complete a path, or go to the next field"),
    ]

    def __init__(self, owner: Composer) -> None:
        super().__init__(owner)
        self._composer = owner
        self.cursor_blink = False
        self.placeholder = "What should be done? @ inserts a file name, # an issue"

    def action_send(self) -> None:
        """Start."""
        self._composer.start()

    def action_recall(self) -> None:
        """Go a line up; from the first line of a recalled or empty prompt, an older one."""
        if self.cursor_location[0] or not self._composer.recall(1):
            self.action_cursor_up()

    def action_recall_later(self) -> None:
        """Go a line down; from the last line a newer prompt, or the next field."""
        if self.cursor_location[0] < self.document.line_count - 1:
            self.action_cursor_down()
        elif not self._composer.recall(-1):
            self.screen.focus_next()

    @property
    def word(self) -> str:
        """Return the word that is typed."""
        row, column = self.cursor_location
        return self.document.get_line(row)[:column].rpartition(" ")[2]

    @property
    def part(self) -> str | None:
        """Return the part of a path that is typed behind an `@`; None where none is."""
        return self.word[1:] if self.word.startswith("@") else None

    @property
    def issue(self) -> str | None:
        """Return the digits of an issue that are typed behind a `#`; None where none is typed."""
        digits = self.word[1:]
        is_number = not digits or number_in(digits) is not None
        return digits if is_number and self.word.startswith("#") else None

    def action_complete(self) -> None:
        """Take the likeliest of what is offered, else go to the next field."""
        part, offered, issue = self.part, self._composer.offered, self.issue
        if issue is not None and (number := issue or self._composer.first_issue):
            self._composer.take_issue(int(number))
        elif part is None or not offered or part == offered[0]:
            self.screen.focus_next()
        else:
            self.take(f"{offered[0]} ", part)

    def take(self, text: str, part: str) -> None:
        """Put a text in place of the part of a word before the cursor."""
        row, column = self.cursor_location
        self.replace(text, (row, column - len(part)), (row, column))


class Composer(Dialog):
    """The form of a run. Its result is the id of the run that was started."""

    begins_in = "PromptBox"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down", "app.focus_next", "next"),
        Binding("up", "app.focus_previous", "previous"),
    ]

    def __init__(
        self,
        starter: Starter,
        begin: Begin,
        ahead: TypeAhead,
        into: Sequence[tuple[str, Row]] = (),
        *,
        is_step: bool = False,
    ) -> None:
        """Open the form.

        Args:
            starter: What makes plans.
            begin: What starts one.
            ahead: The keys typed ahead.
            into: The runs that a prompt can join, and what is said of each.
            is_step: Begin with the first of them.
        """
        super().__init__((Span("Add a step" if is_step else "Start a run", BOLD),), ahead)
        self._starter = starter
        self._begin = begin
        self._into = into
        self._is_step = is_step
        self._issues: list[tuple[int, str]] | None = None
        self._no_issues = ""
        self._recalled = -1
        self._shown: tuple[str, ...] = ()
        self._held: tuple[Enforcement, ...] = ()
        self._weighed_of: Wanted | None = None
        self._is_starting = False
        self.offered: list[str] = []

    # Its parts.

    def compose(self) -> ComposeResult:
        """Compose the prompt over the values over the plan."""
        with Vertical(classes="box") as box:
            yield PromptBox(self)
            yield Inked(id="offered")
            yield self._row("into", Turn(self, "into", [("", ()), *self._into]))
            for name in ("manifest", "agent"):
                yield self._row(name, Turn(self, name, ()))
            yield self._row("candidates", self._line("candidates"))
            yield self._row("check", self._line("check"))
            yield self._row("base", self._line("base"))
            modes = [(mode, words(said)) for mode, said in PERMISSIONS.items()]
            yield self._row("permissions", Turn(self, "permissions", modes))
            yield self._row("minutes", self._line("minutes"))
            with VerticalScroll(id="plan", can_focus=False):
                yield Inked(id="preview")
        self.titled(box, "enter starts · tab next · ctrl+j new line · ctrl+g editor · esc closes")

    def _row(self, name: str, widget: Turn | Input) -> Horizontal:
        label, note = Inked(classes="name"), Inked(classes="note")
        label.rows = ((Span(_LABELS.get(name, name), MUTED),),)
        note.rows = (words(_NOTES.get(name, "")),)
        return Horizontal(label, widget, note, classes="field", id=f"row-{name}")

    def _line(self, name: str) -> Input:
        line = Input(id=name, compact=True, classes="narrow" if name in _NARROW else "")
        line.cursor_blink = False
        return line

    @property
    def prompt(self) -> PromptBox:
        """The box of the prompt."""
        return self.query_one(PromptBox)

    def _turn(self, name: str) -> Turn:
        return self.query_one(f"#{name}", Turn)

    def on_mount(self) -> None:
        """Begin with what was written before, and look at what is here."""
        wanted = self._starter.draft or self._starter.fresh()
        into = self._into[0][0] if self._is_step and self._into else ""
        self._fill(replace(wanted, into=into))
        begin_work(self, self._look, group="look")

    async def _look(self) -> None:
        """Find out what is here; values that were typed meanwhile stay."""
        is_first = self._starter.found is None
        try:
            await self._starter.look()
        except (EngineError, OSError) as error:
            self._say_wrong(str(error), getattr(error, "hint", ""))
            return
        self._fill(self._first() if is_first else self.wanted())
        self.changed()

    def _first(self) -> Wanted:
        now, fresh = self.wanted(), self._starter.fresh()
        typed = {name: value for name, value in now.kept().items() if value}
        return replace(replace(fresh, **typed), into=now.into)

    # Its values.

    def wanted(self) -> Wanted:
        """Return what is wanted by now."""
        typed = {line.id: line.value for line in self.query(Input) if line.id}
        into = self._turn("into").value
        manifest, _, pipeline = ("" if into else self._turn("manifest").value).partition(": ")
        return Wanted(
            prompt=self.prompt.text,
            manifest=manifest,
            pipeline=pipeline,
            agent=self._turn("agent").value,
            permissions=self._turn("permissions").value,
            into=into,
            **typed,
        )

    def _fill(self, wanted: Wanted) -> None:
        """Show values in the form."""
        found = self._starter.found
        pipelines = found.manifests if found else ()
        manifests = [": ".join(filter(None, named)) for named in pipelines]
        self._turn("manifest").values = [(_PROMPT, ()), *((name, ()) for name in manifests)]
        self._turn("manifest").value = ": ".join(filter(None, (wanted.manifest, wanted.pipeline)))
        agents = [(agent.name, agent_row(agent)) for agent in found.agents] if found else []
        self._turn("agent").values = agents or [(wanted.agent, ())]
        for name in ("agent", "permissions", "into"):
            self._turn(name).value = getattr(wanted, name)
        for line in self.query(Input):
            if line.value != (value := getattr(wanted, line.id or "")):
                line.value = value
        if self.prompt.text != wanted.prompt:
            self.prompt.text = wanted.prompt
            self.prompt.move_cursor(self.prompt.document.end)
        self._show_parts()

    def _show_parts(self) -> None:
        """Show what counts for a prompt, or for a manifest, and nothing else."""
        manifest, into = self._turn("manifest"), self._turn("into")
        joins = bool(into.value)
        is_prompt = joins or not manifest.value
        self.query_one("#row-into").display = len(into.values) > 1 and is_prompt
        self.query_one("#row-manifest").display = len(manifest.values) > 1 and not joins
        for name in ("base", "permissions"):  # those of the run hold for a step that joins it
            self.query_one(f"#row-{name}").display = not joins
        for part in (self.prompt, *(self.query_one(f"#row-{n}") for n in ("agent", "candidates"))):
            part.display = is_prompt
        self.query_one("#check", Input).placeholder = self._without_check(is_prompt=is_prompt)
        for turn in self.query(Turn):
            turn.draw()

    def _without_check(self, *, is_prompt: bool) -> str:
        """Return what stands where no check is typed: what becomes of that."""
        found = self._starter.found
        if not is_prompt:
            return "as in the manifest"
        if found is None:
            return ""
        none = "no check was found" if not found.check else "empty"
        return f"{none}: nothing is checked, unless you type one"

    def recall(self, by: int) -> bool:
        """Fill the form with an older or newer run; say whether the key was for that."""
        recent = self._starter.recent
        is_ours = self._recalled >= 0 and recent[self._recalled].prompt == self.prompt.text
        if self.prompt.text and not is_ours:
            return False
        at = (self._recalled if is_ours else -1) + by
        if not -1 <= at < len(recent):
            return by > 0 and is_ours
        self._recalled = at
        self._fill(recent[at] if at >= 0 else self._starter.fresh())
        self.changed()
        return True

    # The plan.

    def on_input_changed(self) -> None:
        """Plan anew as values are typed."""
        self.changed()

    def on_text_area_changed(self) -> None:
        """Plan anew as the prompt is written."""
        self._offer()
        self.changed()

    def _offer(self) -> None:
        """Offer the files that the path behind an `@` may mean, or the issues of a `#`."""
        if self.prompt.issue is not None:
            self._offer_issues(self.prompt.issue)
            return
        part, found = self.prompt.part, self._starter.found
        self.offered = files_like(part, found.files) if part is not None and found else []
        shown = self.query_one("#offered", Inked)
        shown.display = bool(self.offered)
        more = [Span(f"  {path}", MUTED) for path in self.offered[1:]]
        first = (
            [Span("tab ", KEY), Span(path, TEXT)] if (path := next(iter(self.offered), "")) else []
        )
        shown.show([cut_row((*first, *more), max(shown.content_size.width, 20))])

    # Issues.

    @property
    def first_issue(self) -> str:
        """Return the number of the first issue that is offered; empty where none is."""
        return str(self._issues[0][0]) if self._issues else ""

    def _offer_issues(self, digits: str) -> None:
        """Offer the open issues that begin with these digits; they are asked for once."""
        shown = self.query_one("#offered", Inked)
        shown.display = True
        if self._issues is None and not self._no_issues:
            self._no_issues = "asking gh for the open issues"
            begin_work(self, self._ask_issues, group="issues")
        known = [(n, title) for n, title in self._issues or () if str(n).startswith(digits)]
        named = [f"#{n} {clean(title)}" for n, title in known[:_MOST_OFFERED]]
        more = [Span(f"   {one}", MUTED) for one in named[1:]]
        number = named[0] if named else f"#{digits}" if digits else ""
        first = [Span("tab ", KEY), Span(number, TEXT)] if number else []
        said = [Span(f"   {clean(self._no_issues)}", MUTED)] if self._no_issues else []
        shown.show([cut_row((*first, *more, *said), max(shown.content_size.width, 20))])

    async def _ask_issues(self) -> None:
        try:
            self._issues, self._no_issues = await self._starter.issues(), ""
        except EngineError as error:
            self._no_issues = whole_of(error)
        if self.query("#offered"):
            self._offer()

    def take_issue(self, number: int) -> None:
        """Put an issue's text in place of its number."""
        self._ahead.hold()
        begin_work(self, partial(self._take_issue, number), group="issue", exclusive=True)

    async def _take_issue(self, number: int) -> None:
        word = self.prompt.word
        try:
            text = clean_block(await self._starter.issue(number))
        except EngineError as error:
            self.workers.cancel_group(self, "preview")
            self._say_wrong(str(error), error.hint)
        else:
            if self.prompt.word == word:
                self.prompt.take(text, word)
        finally:
            self._ahead.release()
            self.app.post_message(KeysFree())

    def on_inked_clicked(self, clicked: Inked.Clicked) -> None:
        """Turn what was clicked."""
        pointed = self.app.mouse_over
        if clicked.target == "turn" and isinstance(pointed, Turn):
            pointed.focus()
            pointed.action_turn(1)

    def changed(self) -> None:
        """Show the plan of what is wanted now."""
        self._show_parts()
        self._shown = ()
        begin_work(self, self._preview, group="preview", exclusive=True)

    async def _preview(self) -> None:
        wanted = self.wanted()
        if not (wanted.prompt.strip() or wanted.manifest):
            self._tell([words("Write what should be done. ", *self._hint())])
            return
        try:
            plan = await self._starter.plan(wanted)
            self._tell(self._plan_rows(plan))
            self._held = await self._starter.held(plan)
            self._shown = await self._starter.weigh(plan)
        except EngineError as error:
            self._say_wrong(str(error), error.hint)
            return
        self._tell(self._plan_rows(plan))

    def _hint(self) -> Row:
        recent = Span("↑", KEY), Span(" brings back earlier prompts.", MUTED)
        return recent if self._starter.recent else ()

    def _plan_rows(self, plan: Plan) -> list[Row]:
        cells = self.query_one("#preview").content_size.width
        found = self._starter.found
        ink = Ink(Role.WAITING, bold=True)
        rows = [row for said in self._shown for row in told("⚠", clean(said), cells, ink)]
        rows += [*self._not_installed(cells), *plan_rows(plan, cells)]
        wanted = self.wanted()
        if found and found.is_check_guessed and found.check == wanted.check != "":
            rows += told("check", f"is a guess from {clean(found.check_from)}; correct it", cells)
        return [*rows, *held_rows(self._held, cells)]

    def _not_installed(self, cells: int) -> list[Row]:
        """Return how to get the agent that is wanted, where it is not here."""
        found, name = self._starter.found, self._turn("agent").value
        agents = found.agents if found and not self._turn("manifest").value else ()
        agent = next((one for one in agents if one.name == name and not one.is_installed), None)
        said = f"{name} is not installed: {agent.install_hint}" if agent else ""
        return told("✗ not here", clean(said), cells, Ink(Role.FAILED, bold=True)) if said else []

    def _tell(self, rows: list[Row]) -> None:
        if self.query("#preview"):
            self.query_one("#preview", Inked).show(rows)

    def _say_wrong(self, said: str, hint: str = "") -> None:
        cells = self.query_one("#preview").content_size.width
        ink = Ink(Role.FAILED, bold=True)
        rows: list[Row] = [
            (Span("✗ " if not at else "  ", ink), Span(part, TEXT))
            for at, part in enumerate(wrap(clean_block(said), cells - 2))
        ]
        rows += [words(f"  {part}") for part in wrap(clean_block(hint), cells - 2)] if hint else []
        self._tell(rows)
        self.query_one("#plan").scroll_home(animate=False)

    # The start.

    def on_input_submitted(self) -> None:
        """Start, from any line."""
        self.start()

    def start(self) -> None:
        """Start what is wanted; warnings that were not on screen yet are read first."""
        if not self._is_starting:
            self._is_starting = True
            self.workers.cancel_group(self, "preview")  # a refusal is not to be drawn over
            self._ahead.hold()
            begin_work(self, partial(self._start, self.wanted()), group="start")

    async def _start(self, wanted: Wanted) -> None:
        try:
            plan = await self._starter.plan(wanted)
            weighed = await self._starter.weigh(plan)
            if set(weighed) - set(self._shown):
                self._shown = weighed
                again = words(Span("enter", KEY), Span(" again starts it.", TEXT))
                self._tell([again, *self._plan_rows(plan)])
                self.query_one("#plan").scroll_home(animate=False)
                return
            run = await self._begin(plan, wanted)
        except EngineError as error:
            self._say_wrong(str(error), error.hint)
            return
        finally:
            self._is_starting = False
            self._ahead.release()
            self.app.post_message(KeysFree())
        if isinstance(run, Refused):
            self._say_wrong(run.reason, run.hint)
        else:
            self._starter.remember(wanted)
            self.leave(run)

    # The way out, and an editor.

    def leave(self, result: str | None) -> None:
        """Keep what was written, unless it was started."""
        if result is None:
            self._starter.draft = self.wanted()
        super().leave(result)

    def box_sent(self, text: str) -> None:
        """Start; the text stays where it is until it is started."""
        del text

    def box_closed(self) -> None:
        """Close without a result."""
        self.leave(None)

    def box_editor_wanted(self) -> None:
        """Go on in an editor."""
        self._ahead.hold()
        begin_work(self, self._edit, group="editor")

    async def _edit(self) -> None:
        try:
            text, problem = await edit_text(self.app, self.prompt.text)
        finally:
            self._ahead.forget()
            self._ahead.release()
            self.app.post_message(KeysFree())
        if problem:
            self._say_wrong(problem)
        self.prompt.text = clean_block(text).rstrip()
        self.prompt.move_cursor(self.prompt.document.end)
