"""What a webhook endpoint receives."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from typing import Any, NotRequired, TypedDict

# How far the timestamp of a delivery may be from the present, in seconds.
WEBHOOK_TOLERANCE = 300

# How many signatures of a request are looked at.
_MAX_SIGNATURES = 16


class WebhookError(Exception):
    """Why what came to a webhook endpoint is not believed."""


class WebhookEvent(TypedDict):
    """What a webhook endpoint receives. ``id`` is the same in each attempt: handle it once."""

    id: str
    event: str
    timestamp: str
    stream_id: NotRequired[str]
    recording_id: NotRequired[str]
    data: dict[str, Any]


def verify_webhook(headers: Mapping[str, str], body: bytes, *secrets: str, now: float | None = None) -> WebhookEvent:
    """Returns the event of a request to a webhook endpoint, if it was signed with one of the secrets not long ago.

    Else it raises WebhookError. ``body`` is the request's, byte for byte. Give the new and the
    previous secret while one is rotated. Compares take constant time.
    """
    given = {name.lower(): value for name, value in headers.items()}
    event_id, at = given.get("webhook-id", ""), given.get("webhook-timestamp", "")
    fresh = at.isascii() and at.isdigit() and len(at) < 16 and abs((time.time() if now is None else now) - int(at)) <= WEBHOOK_TOLERANCE
    if not fresh:
        raise WebhookError("the webhook's timestamp is missing or too far from the present")
    signed = f"{event_id}.{at}.".encode() + body
    signatures = [s.encode() for s in given.get("webhook-signature", "").split()[:_MAX_SIGNATURES]]
    good = False
    for secret in secrets:
        if not secret:
            continue  # whoever knows nothing could sign with it
        want = b"v1," + base64.b64encode(hmac.new(_key(secret), signed, hashlib.sha256).digest())
        for signature in signatures:
            good = hmac.compare_digest(want, signature) or good
    if not good:
        raise WebhookError("no signature of the webhook is by a known secret")
    event: WebhookEvent = json.loads(body)
    return event


def _key(secret: str) -> bytes:
    """What a secret signs with: the bytes for which whsec_… stands, or the text itself."""
    if secret.startswith("whsec_"):
        try:
            if key := base64.b64decode(secret.removeprefix("whsec_"), validate=True):
                return key
        except binascii.Error:
            pass
    return secret.encode()
