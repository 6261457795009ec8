"""Cut text that does not fit: each kind keeps the part that says most."""

import re
from collections import Counter
from collections.abc import Sequence

from tui.ink import head_of, tail_of, width_of

_PATHLIKE = re.compile(r"(?<![\w.@+~-])[\w.@+~-]*(?:/[\w.@+~-]+)+(?::\d+)?")
"""A path from its first character on: sought from within long words, it takes quadratic time."""


_HASH = 6


def cut_end(text: str, cells: int) -> str:
    """Sentences and output lose their end."""
    if width_of(text) <= cells:
        return text
    return head_of(text, cells - 1) + "…" if cells > 0 else ""


def cut_path(path: str, cells: int) -> str:
    """A path loses its middle and keeps the file; then the folders; then the head of the name."""
    if width_of(path) <= cells:
        return path
    first, _, rest = path.partition("/")
    file = path.rpartition("/")[2]
    for shorter in (f"{first}/…/{file}", f"…/{file}"):
        if rest and width_of(shorter) <= cells and shorter != path:
            return shorter
    return "…" + tail_of(file, cells - 1) if cells > 0 else ""


def cut_apart(paths: Sequence[str], cells: int) -> list[str]:
    """Cut paths of one list so that no two different ones look the same: some by a short hash."""
    cut = {path: cut_path(path, cells) for path in paths}
    alike = Counter(cut.values())
    for path, shown in cut.items():
        if alike[shown] > 1 and cells > _HASH + 1:
            from hashlib import blake2b  # noqa: PLC0415  OpenSSL costs 3 ms, and few need it

            digest = blake2b(path.encode(errors="surrogatepass"), digest_size=4).hexdigest()
            cut[path] = f"{head_of(path, cells - _HASH - 1)}…{digest[:_HASH]}"
    return [cut[path] for path in paths]


def names_apart(paths: Sequence[str], cells: int) -> list[str]:
    """Name files of one list by their last part; by the path where several have the same one."""
    last = [path.rpartition("/")[2] for path in paths]
    alike = Counter(last)
    told = [path if alike[name] > 1 else name for path, name in zip(paths, last, strict=True)]
    return cut_apart(told, cells)


def cut_command(command: str, cells: int) -> str:
    """A command keeps its program and its last path."""
    if width_of(command) <= cells:
        return command
    paths = list(_PATHLIKE.finditer(command))
    if paths:
        last = paths[-1]
        room = cells - width_of(command[: last.start()]) - width_of(command[last.end() :])
        shorter = cut_path(last[0], max(room, 8))
        command = command[: last.start()] + shorter + command[last.end() :]
    return cut_end(command, cells)


def wrap(text: str, cells: int, rows: int | None = None) -> list[str]:
    """Text in lines of at most so many cells, broken at blanks; the last of `rows` is cut."""
    lines = [line for part in text.split("\n") for line in _wrapped(part, max(cells, 1))]
    if rows is not None and len(lines) > rows:
        rest = " ".join(lines[rows - 1 :]) if rows else ""
        lines = [*lines[: rows - 1], cut_end(rest, cells)] if rows else []
    return lines


def wrap_whole(line: str, cells: int) -> list[str]:
    """Return a line in pieces of at most so many cells, which together are exactly that line."""
    pieces: list[str] = []
    at = 0
    while at < len(line) or not pieces:
        piece = head_of(line[at : at + cells], cells) or line[at : at + 1]
        end = at + len(piece)
        while end < len(line) and width_of(line[end]) == 0:  # a mark stays with its letter
            end += 1
        blank = line.rfind(" ", at, end) + 1
        if end < len(line) and line[end] != " " and line[at:blank].strip():
            end = blank
        pieces.append(line[at:end])
        at = end
    return pieces


def _wrapped(text: str, cells: int) -> list[str]:
    lines: list[str] = []
    line = ""
    for word in text.split(" "):
        candidate = f"{line} {word}" if line else word
        if width_of(candidate) <= cells:
            line = candidate
            continue
        if line:
            lines.append(line)
        while width_of(word) > cells:
            taken = head_of(word, cells) or word[0]
            lines.append(taken)
            word = word[len(taken) :]  # noqa: PLW2901 - the rest of the same word
        line = word
    lines.append(line)
    return lines
