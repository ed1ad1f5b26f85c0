"""The client of a Sluice gateway: a method for each operation of its API, and what every
caller needs around them. It needs nothing but the standard library.

The objects of the API are dictionaries; their types are in ``sluice.types``.
"""

from __future__ import annotations

from typing import Any

from . import types as t
from ._chat import ChatStream, text_of
from ._core import Options, Response
from ._errors import SluiceError
from ._operations import Operations
from ._sse import ServerEvent, server_events
from ._version import __version__
from ._webhooks import WEBHOOK_TOLERANCE, WebhookError, WebhookEvent, verify_webhook

__all__ = [
    "WEBHOOK_TOLERANCE",
    "ChatStream",
    "Options",
    "Response",
    "ServerEvent",
    "Sluice",
    "SluiceError",
    "WebhookError",
    "WebhookEvent",
    "__version__",
    "server_events",
    "text_of",
    "verify_webhook",
]


class Sluice(Operations):
    """Calls one gateway with one credential. Threads may share it."""

    def create_chat_completion(self, body: t.ChatCompletionRequest, *, options: Options | None = None) -> ChatStream:
        """Begins a completion, which always comes as a stream.

        It ends when the stream is closed or its loop is left, and what was not read then is
        neither made nor paid. An ``idempotency_key`` changes that: the completion goes on when
        its caller leaves, is paid in whole, and a repetition with the key gets it; that is why
        this call alone has no key by itself, and without one is not repeated.
        ``POST /v1/chat/completions`` of the chat runtime
        """
        return ChatStream(
            self._raw("POST", "/v1/chat/completions", json=body, chat=True, accept="text/event-stream", options=options)
        )

    def request(self, method: str, path: str, body: Any = None, *, options: Options | None = None) -> Response:
        """Calls a path that there is no method for, such as one of your own API behind the gateway.

        It has the credential, retries and errors of every other call; a POST is repeated if it
        has an ``idempotency_key``. The caller closes the answer.
        """
        return self._raw(method, path, json=body, options=options)
