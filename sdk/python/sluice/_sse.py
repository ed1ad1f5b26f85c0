"""Server-sent events."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from typing import NamedTuple

# The longest event that is read, in characters.
_MAX_EVENT = 4 << 20


class ServerEvent(NamedTuple):
    """One server-sent event: its name, empty where the stream names none, and its data lines, joined by newlines."""

    name: str
    data: str


def server_events(chunks: Iterable[bytes]) -> Iterator[ServerEvent]:
    """Reads server-sent events (WHATWG HTML, 9.2) as they come.

    It holds one event, and raises ValueError where that is longer than 4 MiB. An event that the
    end cuts off does not count.
    """
    name, size = "", 0
    data: list[str] = []
    for line in _lines(chunks):
        if line == "":
            if data:
                yield ServerEvent(name, "\n".join(data))
            name, data, size = "", [], 0
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            name = value
        elif field == "data":
            data.append(value)
            size += len(value) + 1
            if size > _MAX_EVENT:
                raise ValueError("an event of the stream is too long")


def _lines(chunks: Iterable[bytes]) -> Iterator[str]:
    """Whole lines, which end with LF, CR or CRLF."""
    decode = codecs.getincrementaldecoder("utf-8-sig")(errors="replace").decode
    parts: list[str] = []  # of the line that has not ended
    size = 0
    cr = False
    for chunk in chunks:
        text = decode(chunk)
        if cr and text:
            text, cr = text.removeprefix("\n"), False
        if not text:
            continue
        cr = text.endswith("\r")
        *whole, rest = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        for line in whole:
            yield "".join(parts) + line
            parts, size = [], 0
        parts.append(rest)
        size += len(rest)
        if size > _MAX_EVENT:
            raise ValueError("an event of the stream is too long")
