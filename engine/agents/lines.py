"""Splits chunks of bytes into lines, each byte looked at once, and bears lines of any length."""

LONGEST_LINE = 16 * 1024 * 1024
"""Agents write a whole answer as one line; what is longer than this is cut."""


class LineSplitter:
    """Chunks in, whole lines out, without their ends; the unfinished tail is carried."""

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self._longest = longest
        # Parts of the unfinished line, joined once when its end comes: joining at each chunk would
        # cost the square of a long line's length.
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that these bytes complete."""
        block = self.whole(data)
        return [] if block is None else block.split(b"\n")

    def whole(self, data: bytes) -> bytes | None:
        """The lines that these bytes complete as one piece, without its last end; None if none."""
        end = data.rfind(b"\n")
        if end < 0:
            self._keep(data)
            return None
        if self._size + len(data) > self._longest:
            return self._whole_of_long(data, end)
        block = b"".join((*self._parts, memoryview(data)[:end])) if self._parts else data[:end]
        self._parts = [data[end + 1 :]] if end + 1 < len(data) else []
        self._size = len(data) - end - 1
        return block

    def _whole_of_long(self, data: bytes, end: int) -> bytes:
        """The same where a line may be too long, which is then cut."""
        head, newline, more = data[:end].partition(b"\n")
        self._keep(head)
        block = self._take() + newline + more
        self._keep(data[end + 1 :])
        return b"\n".join(line[: self._longest] for line in block.split(b"\n"))

    def flush(self) -> bytes:
        """What is left of a line that was never ended."""
        return self._take()

    def _keep(self, part: bytes) -> None:
        room = self._longest - self._size
        if part and room > 0:
            self._parts.append(part[:room])
            self._size += len(self._parts[-1])

    def _take(self) -> bytes:
        line = b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        return line
