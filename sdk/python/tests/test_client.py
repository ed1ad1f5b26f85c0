"""The client against a server that gives one answer after another, the last one for ever."""

from __future__ import annotations

import json
import threading
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable

from sluice import Sluice, SluiceError, __version__

Answer = Callable[[BaseHTTPRequestHandler], None]
HOOK = json.dumps({"id": "wh_1", "url": "https://example.com/hooks", "events": ["*"]})
CREATE: Any = {"url": "https://example.com/hooks", "events": ["*"], "secret": "a secret of sixteen"}
BUSY = json.dumps({"error": {"code": "rate_limit_exceeded", "message": "m"}})


def says(status: int, body: str = "", **headers: str) -> Answer:
    def answer(r: BaseHTTPRequestHandler) -> None:
        r.send_response(status)
        for name, value in headers.items():
            r.send_header(name.replace("_", "-"), value)
        if status != 204:
            r.send_header("Content-Length", str(len(body.encode())))
        r.end_headers()
        r.wfile.write(body.encode())

    return answer


def hangs_up(r: BaseHTTPRequestHandler) -> None:
    r.close_connection = True


def breaks_off(r: BaseHTTPRequestHandler) -> None:
    r.send_response(200)
    r.send_header("Content-Length", "1000")
    r.end_headers()
    r.wfile.write(b'{"data')
    r.close_connection = True


class Script:
    def __init__(self, case: unittest.TestCase, *answers: Answer) -> None:
        self.seen: list[Any] = []
        self.pauses: list[float] = []
        script = self

        class Handler(BaseHTTPRequestHandler):
            def handle_any(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                script.seen.append((self.path, self.headers, body))
                answers[min(len(script.seen), len(answers)) - 1](self)

            do_GET = do_POST = do_PATCH = do_DELETE = handle_any

            def log_message(self, *_args: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        case.addCleanup(server.server_close)
        case.addCleanup(server.shutdown)
        self.address = f"http://127.0.0.1:{server.server_port}/"
        self.client = Sluice(self.address, "slk_test", pause=self.pauses.append)


class Client(unittest.TestCase):
    def test_a_call_says_who_calls_and_what(self) -> None:
        s = Script(self, says(200, HOOK))
        self.assertEqual(s.client.get_webhook("wh/1")["id"], "wh_1")
        path, headers, _ = s.seen[0]
        self.assertEqual(path, "/v1/webhooks/wh%2F1")
        self.assertEqual(headers["Authorization"], "Bearer slk_test")
        self.assertEqual(headers["User-Agent"], f"sluice-python/{__version__}")

    def test_what_is_repeated(self) -> None:
        def own(c: Sluice, **options: Any) -> None:
            with c.request("POST", "/orders", {"n": 1}, options=options):  # type: ignore[arg-type]
                pass

        def create(c: Sluice) -> Any:
            return c.create_webhook(CREATE)

        def delete(c: Sluice) -> Any:
            return c.delete_webhook("wh_1")

        for name, call, answers, tries, fails in [
            ("a list after 429", Sluice.list_webhooks, [says(429, BUSY, Retry_After="7"), says(200, "{}")], 2, False),
            ("a list after 502, 503 and 504", Sluice.list_webhooks, [says(502), says(503), says(504), says(200, "{}")], 4, False),
            ("a list whose answer breaks off", Sluice.list_webhooks, [hangs_up, breaks_off, says(200, "{}")], 3, False),
            ("a list, not for ever", Sluice.list_webhooks, [says(503)], 4, True),
            ("not a list after 500", Sluice.list_webhooks, [says(500)], 1, True),
            ("not after more than a minute", Sluice.list_webhooks, [says(429, BUSY, Retry_After="61")], 1, True),
            ("not a redirect", Sluice.list_webhooks, [says(302, Location="http://127.0.0.1:1/")], 1, True),
            ("a create after 503", create, [says(503), says(201, HOOK)], 2, False),
            ("a create whose answer was lost", create, [hangs_up, says(409, Retry_After="1"), says(201, HOOK)], 3, False),
            ("not a create after a conflict", create, [says(409)], 1, True),
            ("a delete after 504", delete, [says(504), says(204)], 2, False),
            ("a delete that had its effect", delete, [hangs_up, says(404)], 2, False),
            ("not a delete of nothing", delete, [says(404)], 1, True),
            ("a delete that was only refused", delete, [says(429, BUSY), says(404)], 2, True),
            ("not a change", lambda c: c.update_webhook("wh_1", {}), [says(503)], 1, True),
            ("not a completion", lambda c: c.create_chat_completion({"model": "echo-1", "messages": []}), [says(429, BUSY)], 1, True),
            ("not a POST of your own API", own, [says(503)], 1, True),
            ("a POST of your own API with a key", lambda c: own(c, idempotency_key="k"), [says(503), says(200)], 2, False),
        ]:
            with self.subTest(name):
                s = Script(self, *answers)
                if fails:
                    with self.assertRaises(SluiceError):
                        call(s.client)
                else:
                    call(s.client)
                self.assertEqual((len(s.seen), len(s.pauses)), (tries, tries - 1))
                for _, headers, body in s.seen:
                    self.assertEqual(headers["Idempotency-Key"], s.seen[0][1]["Idempotency-Key"])
                    self.assertEqual(body, s.seen[0][2])
                for i, pause in enumerate(s.pauses):
                    low, high = (7, 8) if "429" in name else (0.25, 0.5 * 2**i + 1)
                    self.assertTrue(low <= pause <= high, s.pauses)

    def test_a_connection_that_is_refused(self) -> None:
        pauses: list[float] = []
        with self.assertRaises(OSError):
            Sluice("http://127.0.0.1:1", "k", pause=pauses.append).list_webhooks()
        self.assertEqual(len(pauses), 3)

    def test_creates_have_a_key_of_their_own(self) -> None:
        s = Script(self, says(201, HOOK))
        s.client.create_webhook(CREATE)
        s.client.create_webhook(CREATE)
        s.client.create_webhook(CREATE, options={"idempotency_key": "order-7"})
        keys = [headers["Idempotency-Key"] for _, headers, _ in s.seen]
        self.assertEqual(len({*keys}), 3)
        self.assertEqual(keys[2], "order-7")

    def test_a_refusal_says_all(self) -> None:
        details = [{"field": "url", "issue": "is missing", "expected": "an address"}]
        error = {"code": "invalid_request", "message": "Not valid.", "details": details, "request_id": "r-1", "documentation_url": "https://x/docs"}
        s = Script(self, says(400, json.dumps({"error": error}), Retry_After="3"))
        with self.assertRaises(SluiceError) as caught:
            s.client.create_webhook(CREATE)
        e = caught.exception
        self.assertEqual((e.status, e.code, e.message, e.request_id, e.documentation_url, e.retry_after), (400, "invalid_request", "Not valid.", "r-1", "https://x/docs", 3))
        self.assertEqual(e.details, details)
        self.assertEqual(str(e), "invalid_request: Not valid.; url is missing (request r-1)")

    def test_a_refusal_of_somebody_else(self) -> None:
        s = Script(self, says(418, "<html>", X_Request_ID="r-2"))
        with self.assertRaises(SluiceError) as caught:
            s.client.list_webhooks()
        self.assertEqual((caught.exception.status, caught.exception.code, caught.exception.request_id), (418, "", "r-2"))

    def test_all_goes_through_all_pages(self) -> None:
        def page(ids: list[str], cursor: str | None) -> Answer:
            return says(200, json.dumps({"data": [{"id": i} for i in ids], "pagination": {"next_cursor": cursor}}))

        s = Script(self, page(["a", "b"], "c 1"), page([], "c2"), page(["d"], None))
        ids = [w["id"] for w in s.client.all_webhooks(limit=2, offset=5, sort="-created_at")]
        self.assertEqual(ids, ["a", "b", "d"])
        asked = [sorted(path.partition("?")[2].split("&")) for path, _, _ in s.seen]
        self.assertEqual(asked[0], ["limit=2", "offset=5", "sort=-created_at"])
        self.assertEqual(asked[1:], [["cursor=c+1", "limit=2", "sort=-created_at"], ["cursor=c2", "limit=2", "sort=-created_at"]])

    def test_bytes_are_sent_once(self) -> None:
        s = Script(self, says(200, "WEBVTT"), says(503))
        with s.client.captions(b"RIFF", "audio/wav", format="vtt", language="en") as answer:
            self.assertEqual(answer.read(), b"WEBVTT")
        path, headers, body = s.seen[0]
        self.assertEqual((headers["Accept"], headers["Content-Type"], body), ("*/*", "audio/wav", b"RIFF"))
        self.assertIn("format=vtt", path)
        with self.assertRaises(SluiceError):
            s.client.captions(None, "", asset_id="vod_1")
        self.assertEqual(len(s.seen), 2)
        self.assertNotIn("Content-Type", s.seen[1][1])

    def test_whoever_leaves_a_list_asks_for_no_more(self) -> None:
        s = Script(self, says(200, json.dumps({"data": [{"id": "a"}], "pagination": {"next_cursor": "c"}})))
        next(s.client.all_webhooks())
        self.assertEqual(len(s.seen), 1)


if __name__ == "__main__":
    unittest.main()
