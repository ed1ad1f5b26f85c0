"""What a webhook endpoint believes."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import unittest

from sluice import WebhookError, verify_webhook

NOW = 1_800_000_000
BODY = json.dumps({"id": "evt_1", "event": "stream.started", "timestamp": "2027-01-15T08:00:00.000Z", "data": {"title": "Morning"}}).encode()
CURRENT, PREVIOUS = "the secret of today!", "the secret of before"
ENCODED = "whsec_" + base64.b64encode(CURRENT.encode()).decode()


def signed(at: int, body: bytes, *keys: str) -> dict[str, str]:
    """What Standard Webhooks 1.0.0 wants of a sender."""
    macs = [hmac.new(k.encode(), f"evt_1.{at}.".encode() + body, hashlib.sha256).digest() for k in keys]
    signatures = " ".join("v1," + base64.b64encode(m).decode() for m in macs)
    return {"Webhook-Id": "evt_1", "Webhook-Timestamp": str(at), "Webhook-Signature": signatures}


class Webhooks(unittest.TestCase):
    def test_what_is_believed(self) -> None:
        for name, headers, secrets, good in [
            ("by the secret", signed(NOW, BODY, CURRENT), [CURRENT], True),
            ("by a secret that is encoded", signed(NOW, BODY, CURRENT), [ENCODED], True),
            ("by the first of two", signed(NOW, BODY, CURRENT, PREVIOUS), [CURRENT], True),
            ("by the second of two", signed(NOW, BODY, CURRENT, PREVIOUS), [PREVIOUS], True),
            ("while the receiver has two", signed(NOW, BODY, PREVIOUS), [CURRENT, PREVIOUS], True),
            ("four minutes ago", signed(NOW - 240, BODY, CURRENT), [CURRENT], True),
            ("by another secret", signed(NOW, BODY, "another"), [CURRENT], False),
            ("another body", signed(NOW, b"{}", CURRENT), [CURRENT], False),
            ("no secret is known", signed(NOW, BODY, CURRENT), [], False),
            ("by an empty secret", signed(NOW, BODY, ""), [""], False),
            ("no ASCII", {**signed(NOW, BODY, CURRENT), "Webhook-Signature": "v1,ä"}, [CURRENT], False),
            ("six minutes ago", signed(NOW - 360, BODY, CURRENT), [CURRENT], False),
            ("in six minutes", signed(NOW + 360, BODY, CURRENT), [CURRENT], False),
            ("no time", {}, [CURRENT], False),
        ]:
            with self.subTest(name):
                if good:
                    self.assertEqual(verify_webhook(headers, BODY, *secrets, now=NOW), json.loads(BODY))
                else:
                    with self.assertRaises(WebhookError):
                        verify_webhook(headers, BODY, *secrets, now=NOW)

    def test_the_example_of_standard_webhooks(self) -> None:
        headers = {"webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp": "1614265330", "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="}
        verify_webhook(headers, b'{"test": 2432232314}', "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", now=1614265330)


if __name__ == "__main__":
    unittest.main()
