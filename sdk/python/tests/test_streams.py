"""Completions and other streams of events."""

from __future__ import annotations

import json
import threading
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from sluice import Sluice, SluiceError, server_events, text_of


def chunk(content: str) -> str:
    return f"data: {json.dumps({'id': 'c', 'choices': [{'index': 0, 'delta': {'content': content}}]})}\n\n"


class Completions(unittest.TestCase):
    def completion(self, body: str, endless: bool = False) -> Any:
        self.left = threading.Event()
        left = self.left

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(200)
                self.end_headers()
                try:
                    self.wfile.write(body.encode())
                    while endless:
                        self.wfile.write(b": still here\n\n" * 4096)
                except OSError:
                    left.set()

            def log_message(self, *_args: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        client = Sluice("http://127.0.0.1:1", "k", runtime_url=f"http://127.0.0.1:{server.server_port}")
        return client.create_chat_completion({"model": "echo-1", "messages": [{"role": "user", "content": "Hello"}]})

    def test_a_completion(self) -> None:
        stream = self.completion(f': waiting\n\n{chunk("Hel")}{chunk("lo")}data: {{"choices":[],"usage":{{}}}}\n\ndata: [DONE]\n\n')
        self.assertEqual(stream.text(), "Hello")

    def test_one_that_is_cut_off(self) -> None:
        with self.assertRaises(EOFError):
            self.completion(chunk("Hel")).text()

    def test_one_that_fails_on_the_way(self) -> None:
        stream = self.completion(chunk("Hel") + 'data: {"error":{"code":"provider_failed","message":"m","request_id":"r"}}\n\n')
        with self.assertRaises(SluiceError) as caught:
            stream.text()
        self.assertEqual((caught.exception.status, caught.exception.code, caught.exception.request_id), (0, "provider_failed", "r"))

    def test_leaving_ends_it(self) -> None:
        for part in self.completion(chunk("one"), endless=True):
            self.assertEqual(text_of(part), "one")
            break
        self.assertTrue(self.left.wait(30))


class Events(unittest.TestCase):
    def test_as_whole_and_byte_by_byte(self) -> None:
        for body, want in [
            ("data: a\n\ndata: b\n\n", ["a", "b"]),
            ("data:a\r\n\r\ndata: b\r\r", ["a", "b"]),
            ("\ufeffdata: a\n\n", ["a"]),
            ("event: x\ndata: 1\ndata: 2\nid: 3\n\n", ["x:1\n2"]),
            (": nothing\n\nevent: x\n\ndata: a\n\n", ["a"]),
            ("data: cut off\n", []),
            ("data: ä\n\ndata: [DONE]", ["ä"]),
        ]:
            raw = body.encode()
            for parts in ([raw], [raw[i : i + 1] for i in range(len(raw))]):
                got = [f"{e.name}:{e.data}" if e.name else e.data for e in server_events(parts)]
                self.assertEqual(got, want, body)

    def test_one_without_end(self) -> None:
        for part in (b"data: " + b"x" * (1 << 20), b"data: " + b"x" * (1 << 20) + b"\n"):
            with self.assertRaises(ValueError):
                list(server_events([part] * 6))


if __name__ == "__main__":
    unittest.main()
