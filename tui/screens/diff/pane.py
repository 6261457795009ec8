"""A diff being read: where the cursor is, what is folded, what was seen, the range under it."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

from engine.messages.diffs import ChangeDiff, DiffLine, FileDiff, Hunk, keys_of
from engine.messages.merging import FileRisk
from tui.ink import Row
from tui.screens.diff.fates import Fate
from tui.screens.diff.layout import Part, Place, Shape, lay_out, lines_of, move_key
from tui.screens.diff.rows import DiffPainter, height_of, line_room, side_room
from tui.screens.diff.threads import thread_rows
from tui.words.clean import plain_line, with_tabs
from tui.words.comments import Comment
from tui.words.figures import number_in
from tui.words.named import named_file
from tui.words.shifted import Spot, moves_of

_SKIPPED = frozenset({Part.BLANK, Part.UNIT})
_CODE = frozenset({Part.LINE, Part.WAS, Part.PAIR})
_MOST_SCROLL = 2000
_MOST_CONTEXT = 1000


def _spots_of(place: Place) -> list[Spot]:
    """Return the lines of its own hunk that a row shows, or begins with."""
    other = place.other if place.part is Part.PAIR else -1
    return [Spot(place.file, place.hunk, at) for at in (place.line, other) if at >= 0]


class _Tall(NamedTuple):
    """The places that take more than one row, and how many rows more those before each take."""

    places: Sequence[int]
    more: Sequence[int]


@dataclass(eq=False)
class DiffPane:
    """The state of a diff on screen; `seen` and `comments` belong to the session."""

    seen: set[str] = field(default_factory=set)
    comments: list[Comment] = field(default_factory=list)
    diff: ChangeDiff | None = None
    places: list[Place] = field(default_factory=list)
    heads: list[int] = field(default_factory=list)
    """The rows at which hunks begin, and files that show none: no key goes through every line."""
    cursor: int = 0
    anchor: int | None = None
    shows_blanks: bool = False
    query: str = ""
    wraps: bool = True
    """Changed lines that are too long go on in the next row, unless the code is moved sideways."""
    aside: int = 0
    """So many cells of the code are moved out at the left."""
    layouts: int = 0
    """The number of layouts so far: after one, every row may be another."""
    jumps: int = 0
    """The number of jumps so far: after one, all of the hunk is to be brought on screen."""
    _tall: "_Tall" = field(default_factory=lambda: _Tall((), ()))

    def __post_init__(self) -> None:
        self.shape = Shape(seen=self.seen, comments=self.comments)

    def show(self, diff: ChangeDiff | None) -> None:
        """Show another diff, or the same one grown; the cursor stays on its hunk."""
        key = self.key
        self.diff = diff
        if diff is None:
            self.places, self.heads, self.cursor, self.anchor = [], [], 0, None
            return
        self.shape.take(moves_of(diff))
        self.lay_out()
        found = (i for i in self.heads if self.key_of(self.places[i]) == key)
        if key:
            self.cursor = next(found, self.cursor)
        else:
            self.cursor = next(iter(self.heads), 0)

    def tell(self, fates: Mapping[int, Sequence[Fate]]) -> None:
        """Say what became of functions; the cursor stays on its row."""
        self.shape.fates = fates
        self.lay_out()

    def lay_out(self) -> None:
        """Lay the diff out anew; the cursor stays where it was, or on its hunk."""
        if self.diff is None:
            return
        self.layouts += 1
        here = self.places[self.cursor] if self.places else None
        self.places = lay_out(self.diff, self.shape)
        self.heads = [i for i, place in enumerate(self.places) if self._is_head(place)]
        self.cursor = min(self.cursor, max(len(self.places) - 1, 0))
        if here is not None:
            # Comments on changed code differ in `other` alone.
            for part in (slice(None), slice(4), slice(1, 3)):
                near = (i for i, place in enumerate(self.places) if place[part] == here[part])
                if (found := next(near, None)) is not None:
                    self.cursor = found
                    break

    def _is_head(self, place: Place) -> bool:
        """Say if what is seen at once begins here: a hunk, or a file that has none to show."""
        if place.part is not Part.FILE or self.diff is None:
            return place.part is Part.HUNK
        file = self.diff.files[place.file]
        return not file.hunks or self.shape.is_folded_file(file)

    def set_split(self, *, is_split: bool) -> None:
        """Both sides beside each other, or one under the other."""
        if is_split != self.shape.is_split:
            self.shape.is_split = is_split
            self.lay_out()

    def set_left_out(self, keys: Sequence[str]) -> None:
        """These stay behind when the change lands."""
        if self.shape.left_out != frozenset(keys):
            self.shape.left_out = frozenset(keys)
            self.lay_out()

    def set_risks(self, risks: Mapping[str, FileRisk]) -> None:
        """Let the files stand by these risks; without any, as git lists them."""
        if self.shape.risks != risks:
            self.shape.risks = risks
            self.lay_out()

    def set_context(self, lines: int) -> None:
        """So many lines round every change, as far as the diff has them."""
        self.shape.context = max(min(lines, _MOST_CONTEXT), 0)
        self.lay_out()

    def toggle(self, flag: str) -> None:
        """Turn one of the shape's flags."""
        setattr(self.shape, flag, not getattr(self.shape, flag))
        self.lay_out()

    def scroll(self, by: int) -> None:
        """Move the code sideways."""
        self.aside = max(min(self.aside + by, _MOST_SCROLL), 0)
        self.layouts += 1

    # Where.

    @property
    def place(self) -> Place | None:
        """The row under the cursor."""
        return self.places[self.cursor] if self.places else None

    @property
    def file(self) -> int:
        """The file under the cursor."""
        return self.place.file if self.place else 0

    def key_of(self, place: Place) -> str:
        if self.diff is None or place.hunk < 0 or place.file >= len(self.diff.keys):
            return ""
        keys = self.diff.keys[place.file]
        return keys[place.hunk] if place.hunk < len(keys) else ""

    @property
    def key(self) -> str:
        """The key of the hunk under the cursor; empty where there is none."""
        return self.key_of(self.place) if self.place else ""

    def keys_at(self, place: Place | None) -> tuple[str, ...]:
        """Return what a mark at a place is about: a hunk, or on a file's head all of the file."""
        if self.diff is None or place is None or place.file >= len(self.diff.files):
            return ()
        if place.part is Part.COMMENT:
            return ()
        return (self.key_of(place),) if place.hunk >= 0 else keys_of(self.diff, place.file)

    def is_seen(self, place: Place) -> bool:
        """Say if all that a place is about was seen."""
        return self.seen.issuperset(self.keys_at(place))

    def _file_hunk(self, place: Place) -> tuple[FileDiff, Hunk] | None:
        if self.diff is None or place.hunk < 0:
            return None
        file = self.diff.files[place.file]
        return file, file.hunks[place.hunk]

    def _lines(self, place: Place) -> Sequence[DiffLine]:
        """Return the lines that a row stands for: of a moved block that is folded all of them."""
        return () if self.diff is None else lines_of(self.diff, self.shape.moves, place)

    @property
    def path_and_line(self) -> str:
        """`src/a.py:88` of the line under the cursor."""
        place = self.place
        if place is None or self.diff is None:
            return ""
        number = next((line.new or line.old for line in self._lines(place)), None)
        return self.diff.files[place.file].path + (f":{number}" if number else "")

    @property
    def path(self) -> str:
        """Return the file under the cursor, by its name as it is."""
        return self.diff.paths[self.file] if self.diff and self.diff.paths else ""

    def new_numbers(self) -> list[int]:
        """Return the numbers of the new text's lines under the cursor or in the range, in order."""
        start, end = sorted((self.cursor if self.anchor is None else self.anchor, self.cursor))
        here = self.file
        places = (place for place in self.places[start : end + 1] if place.file == here)
        return sorted({line.new for place in places for line in self._lines(place) if line.new})

    def range(self) -> list[str]:
        """The lines that are selected: from the anchor to the cursor, or the one under it."""
        start, end = sorted((self.cursor if self.anchor is None else self.anchor, self.cursor))
        places = self.places[start : end + 1]
        return [with_tabs(line.text) for place in places for line in self._lines(place)]

    @property
    def thread(self) -> Sequence[Comment]:
        """Return the comments under the cursor."""
        place = self.place
        return self.shape.thread(place) if place and place.part is Part.COMMENT else ()

    def spot(self) -> Comment | None:
        """Return the line of a comment: the last one of the range, or the hunk's first one.

        On a thread it is the line that the thread is about.
        """
        place = self.place
        if self.thread:
            first = self.thread[0]
            about = (first.path, first.key, first.line, first.number, first.code)
            return Comment(*about, "")
        found = self._file_hunk(place) if place else None
        if place is None or found is None:
            return None
        file, hunk = found
        line = place.other if place.part is Part.PAIR and place.other >= 0 else max(place.line, 0)
        given = hunk.lines[line]
        code = "\n".join(self.range()) or with_tabs(given.text)
        number = given.new or given.old or 0
        return Comment(file.path, self.key, line, number, code, "")

    # Moving.

    def move(self, by: int) -> None:
        """So many rows down or up; blank rows and notes on functions are passed over."""
        if not self.places:
            return  # it is still on its way
        at = max(min(self.cursor + by, len(self.places) - 1), 0)
        ways = (range(at, len(self.places)), range(at, -1, -1))
        for way in ways if by > 0 else reversed(ways):  # behind the last row, the nearest before it
            for index in way:
                if self.places[index].part not in _SKIPPED:
                    self.cursor = index
                    return

    def rows_of(self, part: Part) -> list[int]:
        """Return the rows at which hunks or files begin."""
        if part is Part.HUNK:
            return self.heads
        return [i for i, place in enumerate(self.places) if place.part is part]

    def new_rows(self) -> list[int]:
        """Return the rows at which hunks begin that were not seen, and files that have none."""
        return [i for i in self.heads if not self.is_seen(self.places[i])]

    def to_part(self, part: Part, by: int) -> bool:
        """To the next head of a hunk or a file."""
        return self._to(self.rows_of(part), by)

    def to_new(self, by: int) -> bool:
        """To the next hunk that was not seen, or file that has none."""
        return self._to(self.new_rows(), by)

    def _to(self, rows: list[int], by: int) -> bool:
        ahead = [row for row in rows if (row - self.cursor) * by > 0]
        if not ahead:
            return False
        self._jump(ahead[0] if by > 0 else ahead[-1])
        return True

    def _jump(self, index: int) -> None:
        self.cursor = index
        self.jumps += 1

    def to_file(self, index: int) -> None:
        """To a file's head."""
        heads = [
            i
            for i, place in enumerate(self.places)
            if place.part is Part.FILE and place.file == index
        ]
        self._jump(next(iter(heads), self.cursor))

    def to_place(self, text: str) -> None:
        """To `src/a.py:88`, or to the file where the line is not in the diff."""
        if self.diff is None:
            return
        paths = [file.path for file in self.diff.files]
        file, number = named_file(paths, text), ""
        if file is None:
            path, _, number = text.rpartition(":")
            file = named_file(paths, path)
        if file is None:
            return
        self.to_file(file)
        wanted = number_in(number)
        for index, place in enumerate(self.places):
            lines = self._lines(place) if place.file == file else ()
            if wanted is not None and any(line.new == wanted for line in lines):
                self._jump(index)
                return

    # Searching.

    def search(self, query: str) -> None:
        """Look for a text; whatever is folded and has it is unfolded. Capitals count if given."""
        self.query = query
        if self.diff is None or not query:
            return
        for index, (file, keys) in enumerate(zip(self.diff.files, self.diff.keys, strict=True)):
            found = [key for key, hunk in zip(keys, file.hunks, strict=True) if self._has(hunk)]
            self.shape.open_hunks.update(found)
            if found and self.shape.is_folded_file(file):
                self.shape.folded_files.symmetric_difference_update({file.path})
            for number, hunk in enumerate(file.hunks) if self.shape.moves.of else ():
                for at, line in enumerate(hunk.lines):
                    if self._is_hit(line.text):
                        self._toggle_move(Spot(index, number, at), is_open=True)
        self.lay_out()

    def _has(self, hunk: Hunk) -> bool:
        return any(self._is_hit(line.text) for line in hunk.lines)

    def _is_hit(self, text: str) -> bool:
        plain = plain_line(text)
        return self.query in (plain if self.query != self.query.casefold() else plain.casefold())

    def to_hit(self, by: int) -> bool:
        """To the next line that has what is searched for."""
        return bool(self.query) and self._to(self.hit_rows(), by)

    def hits(self) -> int:
        """Return how many lines have it."""
        return len(self.hit_rows())

    def hit_rows(self) -> list[int]:
        """Return the rows of the lines that have it."""
        found = []
        for index, place in enumerate(self.places):
            if any(self._is_hit(line.text) for line in self._lines(place)):
                found.append(index)
        return found

    def known_keys(self) -> frozenset[str]:
        """Every hunk that is there."""
        return (
            frozenset(key for keys in self.diff.keys for key in keys) if self.diff else frozenset()
        )

    def toggle_fold(self) -> None:
        """Fold or unfold the file or the hunk under the cursor."""
        place = self.place
        if place is None or self.diff is None:
            return
        if place.part is Part.FILE:
            self.shape.folded_files.symmetric_difference_update({self.diff.files[place.file].path})
        elif begin := self._move_under(place):
            self._toggle_move(begin)
            self.lay_out()
            at = (i for i, one in enumerate(self.places) if begin in _spots_of(one))
            self.cursor = next(at, self.cursor)
            return
        elif self.key:
            self.shape.open_hunks.symmetric_difference_update({self.key})
        self.lay_out()

    def _move_under(self, place: Place) -> Spot | None:
        """Return the first line of the moved block that a row is of, where it can be folded."""
        if place.part is Part.HUNK or self.diff is None:
            return None
        for spot in _spots_of(place):
            stretch = self.shape.move_at(spot, self.diff.files[spot.file].hunks[spot.hunk])
            if stretch is not None:
                return stretch.first
        return None

    def _toggle_move(self, spot: Spot, *, is_open: bool | None = None) -> None:
        """Fold or unfold a moved block, or do one of both."""
        if self.diff is None:
            return
        hunk, key = (
            self.diff.files[spot.file].hunks[spot.hunk],
            self.diff.keys[spot.file][spot.hunk],
        )
        stretch = self.shape.move_at(spot, hunk)
        if stretch is not None and is_open is not (
            not self.shape.is_folded_move(key, hunk, stretch)
        ):
            self.shape.open_moves.symmetric_difference_update({move_key(key, hunk, stretch)})

    # Rows.

    @property
    def is_wrapped(self) -> bool:
        """Say if long lines go on in the next row now."""
        return self.wraps and not self.aside

    def measure(self, cells: int) -> int:
        """Return how many rows there are, so many cells wide."""
        heights = ((at, self._height(place, cells)) for at, place in enumerate(self.places))
        tall = [(at, height - 1) for at, height in heights if height > 1]
        self._tall = _Tall([at for at, _ in tall], [0, *accumulate(more for _, more in tall)])
        return len(self.places) + self._tall.more[-1]

    def _height(self, place: Place, cells: int) -> int:
        """Return the rows of a place: comments and long lines have several."""
        if place.part is Part.COMMENT:
            return len(self._comment_rows(place, cells))
        if place.part not in _CODE or not self.is_wrapped or self.diff is None:
            return 1
        if place.part is Part.WAS:
            return height_of(self._lines(place)[0], line_room(cells))
        lines = self.diff.files[place.file].hunks[place.hunk].lines
        if place.part is Part.LINE:
            return height_of(lines[place.line], line_room(cells))
        width = (cells - 3) // 2
        sides = ((place.line, width), (place.other, cells - 3 - width))
        return max(height_of(lines[at], side_room(room)) for at, room in sides if at >= 0)

    def hunk_end(self) -> int:
        """Return the last place of the hunk under the cursor; on a file's, of its first one."""
        here, end = self.place, self.cursor
        if here is None:
            return end
        wanted = {here.hunk, max(here.hunk, 0)}
        while end + 1 < len(self.places):
            after = self.places[end + 1]
            if after.file != here.file or after.hunk not in wanted or after.part is Part.BLANK:
                break
            end += 1
        return end

    def row_of(self, index: int) -> int:
        """Return the first row of a place."""
        tall = self._tall
        return index + (tall.more[bisect_left(tall.places, index)] if tall.places else 0)

    def place_at(self, row: int) -> int:
        """Return the place that a row is of."""
        last = len(self.places) - 1
        found = bisect_right(range(last + 1), row, key=self.row_of) - 1
        return max(min(found, last), 0)

    def rows(self, cells: int, number: int, count: int) -> Iterator[Row]:
        """Yield at most so many rows from one on, the cursor's among them."""
        if self.diff is None or not self.places:
            return
        painter = DiffPainter(
            diff=self.diff,
            shape=self.shape,
            scroll=self.aside,
            shows_blanks=self.shows_blanks,
            wraps=self.is_wrapped,
            query=self.query,
        )
        low, high = sorted((self.cursor if self.anchor is None else self.anchor, self.cursor))
        index, end = self.place_at(number), number + count
        while index < len(self.places) and number < end:
            drawn = painter.rows(self.places[index], cells, is_here=low <= index <= high)
            skipped = number - self.row_of(index)
            yield from drawn[skipped : skipped + end - number]
            number = self.row_of(index) + len(drawn)
            index += 1

    def come_between(self, top: int, bottom: int) -> None:
        """Put the cursor on the nearest row between these two that it can be on."""
        first, last = self.place_at(top), self.place_at(bottom)
        wanted = max(min(self.cursor, last), first)
        near = sorted(range(first, last + 1), key=lambda index: abs(index - wanted))
        can_be = (i for i in near if self.places[i].part not in _SKIPPED)
        self.cursor = next(can_be, self.cursor)

    def line_at(self, row: int, *, is_old: bool) -> DiffLine | None:
        """Return the line of a row, its old or its new side; none where it shows no line."""
        place = self.places[self.place_at(row)] if self.places else None
        if place is not None and place.part is Part.PAIR and is_old:
            found = self._file_hunk(place)
            return found[1].lines[place.line] if found and place.line >= 0 else None
        if (
            place is None
            or place.part not in _CODE
            or (place.part is Part.PAIR and place.other < 0)
        ):
            return None
        return next(iter(self._lines(place)), None)

    def _comment_rows(self, place: Place, cells: int) -> Sequence[Row]:
        key, is_stale = self.shape.key_to_apply, place.hunk < 0
        return thread_rows(self.shape.thread(place), cells, key, is_stale=is_stale)
