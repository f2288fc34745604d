"""Requests to a model server over HTTP, with retries.

Promises: a request is repeated if the server is busy, fails or cannot be reached, at most as often as allowed; the wait
grows up to 8 seconds, or is the value of the Retry-After header, up to a minute. The API key is not part of an error.
Does not know: the content of the requests."""

from __future__ import annotations

import asyncio
import http.client
import json
import urllib.error
import urllib.request
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any

from millstream.errors import ExternalError

_RETRIED_STATUSES = frozenset((408, 409, 429))
_FIRST_DELAY, _LONGEST_DELAY, _LONGEST_REQUESTED_DELAY = 0.5, 8.0, 60.0


class ModelRequestFailed(ExternalError):
    """A model server refused a request, or could not be reached."""

    def __init__(
        self, url: str, problem: str, status: int | None = None, headers: dict[str, list[str]] | None = None
    ) -> None:
        self.url, self.status, self.headers = url, status, headers
        hint = "check the option 'endpoint', and that the server runs" if status is None else None
        if status in (401, 403):
            hint = "check the option 'api-key'"
        super().__init__(f"the request to {url} failed: {problem}", hint=hint)

    @property
    def is_retried(self) -> bool:
        """Whether the same request can succeed later."""
        return self.status is None or self.status in _RETRIED_STATUSES or self.status >= 500

    def delay(self, attempt: int) -> float:
        """Return how many seconds to wait before the next attempt."""
        for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
            for value in (self.headers or {}).get(name, ()):
                if value.replace(".", "", 1).isdigit() and float(value) * unit <= _LONGEST_REQUESTED_DELAY:
                    return float(value) * unit
        return float(min(_FIRST_DELAY * 2 ** min(attempt, 10), _LONGEST_DELAY))


@dataclass(frozen=True)
class ModelServer:
    """A URL that takes JSON documents, and how it is called. `timeout` is in seconds."""

    url: str
    api_key: str = field(repr=False)
    retries: int
    timeout: float

    async def request(self, body: dict[str, Any], executor: Executor) -> dict[str, Any]:
        """Send a JSON document and return the answer; repeat the request after temporary failures."""
        loop = asyncio.get_running_loop()
        attempt = 0
        while True:
            try:
                return await loop.run_in_executor(executor, self._send, body)
            except ModelRequestFailed as problem:
                if not problem.is_retried or attempt >= self.retries:
                    raise
                await asyncio.sleep(problem.delay(attempt))
                attempt += 1

    def _send(self, body: dict[str, Any]) -> dict[str, Any]:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.api_key}"}
        request = urllib.request.Request(self.url, json.dumps(body).encode(), headers, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=self.timeout) as response:
                content = response.read()
        except urllib.error.HTTPError as problem:
            answer = problem.read(2000).decode(errors="replace")
            raise ModelRequestFailed(
                self.url, f"HTTP status {problem.code}: {answer}", problem.code, _group_headers(problem.headers)
            ) from None
        except (OSError, http.client.HTTPException) as problem:
            raise ModelRequestFailed(self.url, str(problem)) from None
        try:
            answer = json.loads(content)
        except ValueError:
            raise ModelRequestFailed(self.url, f"the answer is not JSON: {content[:200]!r}", 200) from None
        if not isinstance(answer, dict):
            raise ModelRequestFailed(self.url, f"the answer is not a JSON object: {content[:200]!r}", 200)
        return answer


def _group_headers(headers: Any) -> dict[str, list[str]]:
    grouped: dict[str, list[str]] = {}
    for name, value in headers.items():
        grouped.setdefault(name.lower(), []).append(value)
    return grouped
