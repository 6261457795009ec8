"""The outward form of a text: encoding, line ends, last line end. Not its content.

Two versions that say the same in different styles are no conflict of contents, and can be merged
as plain text and written down again in the style of either.
"""

import codecs
from dataclasses import dataclass

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@dataclass(frozen=True, kw_only=True)
class Style:
    """The outward form of a text."""

    encoding: str = "utf-8"
    mark: bytes = b""
    crlf: bool = False
    ends: bool = True

    def __str__(self) -> str:
        marked = " with a byte order mark" if self.mark else ""
        ending = "CR LF" if self.crlf else "LF"
        last = "" if self.ends else ", no newline at the end"
        return f"{self.encoding}{marked}, {ending}{last}"

    @classmethod
    def of(cls, content: bytes) -> "Style":
        """The style of this content; what is not UTF-8 is taken for Latin-1, which reads all."""
        mark, encoding = _mark_and_encoding(content)
        text = _decoded(content, mark, encoding)
        return cls(
            encoding=encoding,
            mark=mark,
            crlf=2 * text.count("\r\n") > text.count("\n"),
            ends=not text or text.endswith("\n"),
        )

    def write(self, plain: bytes) -> bytes | None:
        """Plain text in this style; None where the encoding lacks a letter of it."""
        text = plain.decode(errors="surrogateescape")
        if self.crlf:
            text = text.replace("\n", "\r\n")
        if not self.ends:
            text = text.removesuffix("\n").removesuffix("\r")
        try:
            return self.mark + text.encode(self.encoding)
        except UnicodeEncodeError:
            return None


def plain(content: bytes) -> bytes:
    """The text in UTF-8 with line feeds, the last line included."""
    text = _decoded(content, *_mark_and_encoding(content)).replace("\r\n", "\n")
    if text and not text.endswith("\n"):
        text += "\n"
    return text.encode(errors="surrogateescape")


def _mark_and_encoding(content: bytes) -> tuple[bytes, str]:
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return mark, encoding
    try:
        content.decode()
    except UnicodeDecodeError:
        return b"", "latin-1"
    return b"", "utf-8"


def _decoded(content: bytes, mark: bytes, encoding: str) -> str:
    return content[len(mark) :].decode(encoding, errors="surrogateescape")
