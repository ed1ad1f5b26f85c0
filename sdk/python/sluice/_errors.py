"""What the API says of a refusal."""

from __future__ import annotations

import email.message
import email.utils
import json
import time
from typing import Any


class SluiceError(Exception):
    """A refusal. Decide by ``code``; quote ``request_id`` when you ask for help.

    ``status`` is 0 where a stream broke off with an error, and ``code`` empty where the answer is
    not of the gateway's form. ``details`` are all faults of the request, each with field, issue
    and expected. ``retry_after`` are seconds; 0: the answer does not say.
    """

    def __init__(self, status: int, headers: email.message.Message, text: str) -> None:
        said = envelope(text) or {}
        self.status = status
        self.headers = headers
        self.code: str = said.get("code", "")
        self.message: str = said.get("message") or f"the answer is {status}"
        self.details: list[dict[str, str]] = said.get("details") or []
        self.request_id: str = said.get("request_id") or headers.get("X-Request-ID") or ""
        self.documentation_url: str = said.get("documentation_url", "")
        self.retry_after = retry_after(headers.get("Retry-After"), time.time())
        super().__init__(str(self))

    def __str__(self) -> str:
        text = f"{self.code}: {self.message}" if self.code else self.message
        faults = "".join(f"; {d.get('field')} {d.get('issue')}" for d in self.details)
        return f"{text}{faults}" + (f" (request {self.request_id})" if self.request_id else "")


def envelope(text: str) -> dict[str, Any] | None:
    """What the API's error envelope says; None where text is none."""
    try:
        said = json.loads(text).get("error")
    except (ValueError, AttributeError):
        return None
    return said if isinstance(said, dict) and isinstance(said.get("code"), str) else None


def retry_after(text: str | None, now: float) -> float:
    """Seconds of a Retry-After, which has them or a date (RFC 9110, 10.2.3)."""
    if not text:
        return 0.0
    if text.isascii() and text.isdigit():
        return float(min(int(text[:12]), 1 << 30))
    try:
        return max(email.utils.parsedate_to_datetime(text).timestamp() - now, 0.0)
    except ValueError:
        return 0.0
