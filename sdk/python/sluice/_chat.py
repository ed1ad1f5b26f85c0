"""Completions as they are made."""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import TracebackType

from . import types as t
from ._core import Response
from ._errors import SluiceError, envelope
from ._sse import server_events


class ChatStream:
    """A completion as it is made: ``for chunk in stream``, once. Leaving the loop, or ``close``, ends it.

    A completion that failed on the way raises SluiceError, one whose stream was cut off EOFError.
    """

    def __init__(self, answer: Response) -> None:
        self._answer = answer

    def close(self) -> None:
        self._answer.close()

    def __enter__(self) -> ChatStream:
        return self

    def __exit__(self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None) -> None:
        self.close()

    def __iter__(self) -> Iterator[t.ChatCompletionChunk]:
        with self._answer:
            for event in server_events(iter(lambda: self._answer.read1(64 << 10), b"")):
                if event.data == "[DONE]":
                    return
                if envelope(event.data):
                    raise SluiceError(0, self._answer.headers, event.data)
                yield json.loads(event.data)
        raise EOFError("the completion was cut off")

    def text(self) -> str:
        """Reads the whole completion and returns what the first choice says."""
        return "".join(text_of(chunk) for chunk in self)


def text_of(chunk: t.ChatCompletionChunk) -> str:
    """What a chunk adds to the first choice; empty where it adds none."""
    for choice in chunk["choices"]:
        if choice["index"] == 0:
            content = choice["delta"].get("content")
            return content if isinstance(content, str) else ""
    return ""
