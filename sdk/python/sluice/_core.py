"""What all methods have in common."""

from __future__ import annotations

import http.client
import json as jsonlib
import random
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO, TypedDict
from urllib.parse import urlencode

from ._errors import SluiceError
from ._version import __version__

Response = http.client.HTTPResponse

# The longest Retry-After that is waited for, in seconds.
_LONGEST_WAIT = 60


class Options(TypedDict, total=False):
    """The settings of one call."""

    timeout: float  # seconds without a byte after which the call fails; 60 by default
    idempotency_key: str  # has a POST take effect once; creates have one by themselves
    if_match: str  # has a change made only if what is changed is still of this ETag
    headers: Mapping[str, str]


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows nothing: the credential is for the gateway alone."""

    def redirect_request(self, *_args: Any, **_kwargs: Any) -> None:
        return None


class Core:
    """Calls one gateway with one credential.

    ``base_url`` is the gateway's address, such as https://api.example.com, and ``key`` what lets
    in: an API key (slk_…), an access token or a person's session. ``runtime_url`` is where chat
    completions are served, if not there.

    A request is repeated ``retries`` times: GET, DELETE and any POST with an Idempotency-Key, after
    429, 502, 503, 504 and failures of the connection, and after a 409 that says that the first try
    is still under way. A Retry-After of more than a minute is not waited for.
    """

    def __init__(
        self,
        base_url: str,
        key: str,
        *,
        runtime_url: str | None = None,
        retries: int = 3,
        user_agent: str = "",
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._base = base_url.rstrip("/")
        self._runtime = (runtime_url or base_url).rstrip("/")
        self._key = key
        self._retries = retries
        self._agent = f"{user_agent} sluice-python/{__version__}".strip()
        self._pause = pause
        self._opener = urllib.request.build_opener(_NoRedirect)

    def _json(self, method: str, path: str, **call: Any) -> Any:
        """Makes a call and reads its JSON."""
        return self._tried(method, path, lambda answer: jsonlib.loads(_whole(answer)), **call)

    def _none(self, method: str, path: str, **call: Any) -> None:
        """Makes a call that answers nothing."""
        self._tried(method, path, lambda answer: None if answer is None else _whole(answer), **call)

    def _raw(self, method: str, path: str, *, accept: str = "*/*", **call: Any) -> Response:
        """Makes a call and gives its answer as it is."""
        answer: Response = self._tried(method, path, lambda answer: answer, accept=accept, **call)
        return answer

    def _each(self, path: str, query: dict[str, Any], next_name: str, options: Options | None) -> Iterator[Any]:
        """Goes through a list page by page."""
        while True:
            page = self._json("GET", path, query=query, options=options)
            yield from page["data"]
            cursor = page["pagination"].get(next_name)
            if not cursor:
                return
            query = {**query, "cursor": cursor, "offset": None}  # a cursor stands for the place

    def _tried(
        self,
        method: str,
        path: str,
        read: Callable[[Any], Any],
        *,
        query: Mapping[str, Any] | None = None,
        json: Any = None,
        data: bytes | BinaryIO | None = None,
        content_type: str | None = None,
        accept: str = "application/json",
        once: bool = False,
        chat: bool = False,
        options: Options | None = None,
    ) -> Any:
        """Makes a call, again where that is safe and may help, and reads its success."""
        options = options or {}
        headers = self._headers(once, accept, options)
        body: bytes | BinaryIO | None = data
        if json is not None:
            body, headers["Content-Type"] = jsonlib.dumps(json).encode(), "application/json"
        elif content_type is not None and data is not None:
            headers["Content-Type"] = content_type
        address = (self._runtime if chat else self._base) + path + _query(query or {})
        safe = method in ("GET", "HEAD", "DELETE") or (method == "POST" and "Idempotency-Key" in headers)
        most = self._retries if safe and data is None else 0
        unsure = False  # whether an earlier try may have had effect
        retries = 0
        while True:
            wait = _backoff(retries)
            request = urllib.request.Request(address, body, headers, method=method)
            try:
                return read(self._opener.open(request, timeout=options.get("timeout", 60)))
            except urllib.error.HTTPError as answer:
                with answer:
                    refused = SluiceError(answer.code, answer.headers, answer.read(64 << 10).decode(errors="replace"))
                if refused.status == 404 and unsure and method == "DELETE":
                    return read(None)  # what it was to delete is gone, by a try of which no answer came
                if retries >= most or not _passes(refused) or refused.retry_after > _LONGEST_WAIT:
                    raise refused from None
                unsure = unsure or refused.status in (502, 504)
                if refused.retry_after:
                    wait = refused.retry_after + random.uniform(0, min(refused.retry_after / 4, 1))
            except (OSError, http.client.HTTPException):
                if retries >= most:
                    raise
                unsure = True
            retries += 1
            self._pause(wait)

    def _headers(self, once: bool, accept: str, options: Options) -> dict[str, str]:
        headers = {name.title(): value for name, value in options.get("headers", {}).items()}
        headers.setdefault("Accept", accept)
        headers["Authorization"] = f"Bearer {self._key}"
        headers["User-Agent"] = self._agent
        if "if_match" in options:
            headers["If-Match"] = options["if_match"]
        if "idempotency_key" in options:
            headers["Idempotency-Key"] = options["idempotency_key"]
        elif once:
            headers.setdefault("Idempotency-Key", str(uuid.uuid4()))
        return headers


def _whole(answer: Response) -> bytes:
    with answer:
        return answer.read()


def _query(query: Mapping[str, Any]) -> str:
    def text(value: Any) -> str:
        if isinstance(value, bool):
            return "true" if value else "false"
        return ",".join(value) if isinstance(value, list) else str(value)

    given = {name: text(value) for name, value in query.items() if value is not None}
    return f"?{urlencode(given)}" if given else ""


def _passes(refused: SluiceError) -> bool:
    """Whether the same request may succeed a little later."""
    # The first try of a POST, whose answer was lost, is still under way.
    under_way = refused.status == 409 and refused.retry_after > 0
    return under_way or refused.status in (429, 502, 503, 504)


def _backoff(retries: int) -> float:
    """Seconds to wait after a number of retries, half of them random."""
    most = min(0.5 * 2.0 ** min(retries, 10), 8.0)
    return most / 2 + random.uniform(0, most / 2)
