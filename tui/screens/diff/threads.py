"""Draw the comments on one line as one thread: what you said, what was answered, in their order."""

from collections.abc import Iterator, Sequence

from tui.ink import MUTED, TEXT, Ink, Role, Row, Span, fit, width_of
from tui.words.clean import clean_code
from tui.words.comments import Comment
from tui.words.cutting import cut_end, wrap
from tui.words.figures import MINUS

_LEAD = Span(" " * 12)
_EDGE = Ink(Role.ACCENT)
_MOST, _LEAST = 80, 20


def thread_rows(
    thread: Sequence[Comment], cells: int, key_to_apply: str, *, is_stale: bool = False
) -> list[Row]:
    """Return a thread in its box under the line that it is about."""
    width = max(min(cells - 16, _MOST), _LEAST)
    rows: list[Row] = []
    for number, comment in enumerate(thread):
        rows.append(_rule("├" if number else "╭", _title(comment), width))
        if is_stale and not number:
            quoted = cut_end(clean_code(comment.code.split("\n")[0].strip()), width - 4)
            rows.append(_line(Span(quoted, MUTED), width))
        rows += [_line(span, width) for span in _said(comment, width - 4)]
        for answer in comment.answers:
            rows.append(_rule("├", " agent ", width))
            said = (text for line in answer.split("\n") for text in wrap(line, width - 4) or [""])
            rows += [_line(Span(text, TEXT), width) for text in said]
    rows.append(_foot(_state(thread[-1], key_to_apply, is_stale=is_stale), width))
    return [fit(row, cells) for row in rows]


def _title(comment: Comment) -> str:
    lines = f"line {comment.number}"
    if comment.suggestion is not None and comment.first < comment.number:
        lines = f"lines {comment.first} to {comment.number}"
    return f" {'you suggest' if comment.suggestion is not None else 'you'}, {lines} "


def _state(last: Comment, key_to_apply: str, *, is_stale: bool) -> str:
    state = "answered" if last.answers else "sent" if last.is_sent else "not sent yet"
    if last.suggestion is not None and not last.is_sent:
        state = f"not sent yet; {key_to_apply} applies it"
    return f"{state}; the code has changed since" if is_stale else state


def _said(comment: Comment, cells: int) -> Iterator[Span]:
    """Yield what somebody said, row by row: a suggestion as the change that it is."""
    if comment.suggestion is not None:
        changed = [(f"{MINUS} ", line, Role.REMOVED) for line in comment.code.split("\n")]
        changed += [("+ ", line, Role.ADDED) for line in comment.suggestion.split("\n")]
        for sign, line, role in changed:
            for text in wrap(f"{sign}{clean_code(line)}", cells):
                yield Span(text, Ink(role))
    if comment.text or comment.suggestion is None:
        for text in wrap(comment.text, cells):
            yield Span(text, TEXT)


def _line(span: Span, width: int) -> Row:
    return (_LEAD, Span("│ ", _EDGE), *fit((span,), width - 4), Span(" │", _EDGE))


def _rule(begin: str, title: str, width: int) -> Row:
    end = {"╭": "╮", "├": "┤"}[begin]
    return (_LEAD, Span(f"{begin}─{title}{'─' * (width - width_of(title) - 3)}{end}", _EDGE))


def _foot(state: str, width: int) -> Row:
    line = Span(f"╰{'─' * (width - len(state) - 5)} ", _EDGE)
    return (_LEAD, line, Span(state, MUTED), Span(" ─╯", _EDGE))
