"""The change of the pictures, as an engine would hand it to a console."""

from engine.messages.diffs import ChangeDiff, DiffLine, FileDiff, FileKind, Hunk, Sign


def _hunk(where: str, first: int, text: str) -> Hunk:
    """A hunk from lines that begin with their sign."""
    lines = []
    old = new = first
    for line in text.strip("\n").split("\n"):
        sign = Sign(line[:1])
        lines.append(
            DiffLine(
                sign,
                line[1:],
                None if sign is Sign.ADDED else old,
                None if sign is Sign.REMOVED else new,
            )
        )
        old += sign is not Sign.ADDED
        new += sign is not Sign.REMOVED
    return Hunk(where=where, lines=tuple(lines))


_PARSE = """
     def _parse_quoted(self, line: str, start: int) -> Span:
         \"\"\"Return the field that opens at `start`, and its end.\"\"\"
-        end = line.find(self.quote, start + 1)
+        end = self._closing_quote(line, start + 1)
         if end < 0:
-            raise ParseError("unterminated quote", self.line_no)
+            return self._continue_quoted(line, start)
-        return line[start + 1 : end], end + 1
+        field = self._undouble(line[start + 1 : end])
+        return field, end + 1
"""
_CLOSING = """
     # the end of a field
+    def _closing_quote(self, line: str, start: int) -> int:
+        \"\"\"Find the quote that closes the field, not a doubled one.\"\"\"
+        while (i := line.find(self.quote, start)) >= 0:
+            if line[i + 1 : i + 2] != self.quote:
+                return i
+            start = i + 2
+        return -1
"""


def diff_of_reader(**more: object) -> ChangeDiff:
    """The change of the pictures."""
    reader = FileDiff(
        path="src/csvlite/reader.py",
        hunks=(
            _hunk("imports", 3, " import io\n+import re\n import sys"),
            _hunk("_parse_quoted()", 81, _PARSE),
            _hunk("_closing_quote()", 102, _CLOSING),
        ),
    )
    io = FileDiff(
        path="src/csvlite/io.py",
        hunks=(_hunk("read_block()", 40, "-    data = f.read()\n+    data = f.read(MAX_BLOCK)"),),
    )
    lock = FileDiff(path="uv.lock", is_generated=True, hunks=(_hunk("", 1, "-a = 1\n+a = 2"),))
    picture = FileDiff(
        path="data/quotes.bin", kind=FileKind.BINARY, is_binary=True, note="2.1 KB, was 1.8 KB"
    )
    known: dict[str, object] = {
        "against": "main",
        "files": (reader, io, picture, lock),
        "is_live": True,
    }
    return ChangeDiff(**{**known, **more})  # type: ignore[arg-type]
