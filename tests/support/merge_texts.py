"""Texts that make conflicts, for Hypothesis and for hand-written tests of the merge room."""

from hypothesis import strategies as st

from engine.merge import ConflictHunk, merge_texts

# Few different lines, so that they repeat and alignments are ambiguous; among them lines that look
# like conflict markers, blank ones, separators that are no line ends, and bytes that are no UTF-8.
LINES = st.sampled_from(
    [
        b"a\n",
        b"b\n",
        b"c\n",
        b"\n",
        b"}\n",
        b"    return None\n",
        b"=======\n",
        b"<<<<<<< HEAD\n",
        b">>>>>>> x\n",
        b"||||||| base\n",
        b"form\x0cfeed\x0b\x1c\xc2\x85\xe2\x80\xa8end\n",
        b"caf\xe9\n",
        b"crlf\r\n",
        b"lone\rreturn\n",
    ]
)


@st.composite
def three_texts(draw: st.DrawFn) -> tuple[bytes, bytes, bytes]:
    """A base and two texts that were made from it by edits."""
    base = draw(st.lists(LINES, max_size=25))
    sides = [_edited(draw, base) for _ in range(2)]
    return (_ended(draw, base), _ended(draw, sides[0]), _ended(draw, sides[1]))


def _edited(draw: st.DrawFn, base: list[bytes]) -> list[bytes]:
    lines = list(base)
    for _ in range(draw(st.integers(0, 5))):
        start = draw(st.integers(0, len(lines)))
        length = draw(st.integers(0, 3))
        lines[start : start + length] = draw(st.lists(LINES, max_size=3))
    return lines


def _ended(draw: st.DrawFn, lines: list[bytes]) -> bytes:
    text = b"".join(lines)
    return text[:-1] if text.endswith(b"\n") and draw(st.integers(0, 9)) == 0 else text


def one_hunk(base: str, target: str, incoming: str) -> ConflictHunk:
    """The only hunk of three texts, with a line above and below it."""
    texts = (f"above\n{text}below\n".encode() for text in (base, target, incoming))
    (hunk,) = merge_texts(*texts).hunks
    return hunk
