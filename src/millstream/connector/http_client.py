"""Requests to an HTTP server, with timeouts and retries.

Promises: a request that cannot be sent, or gets a status code of a temporary failure, is retried as often as allowed.
Connections are kept open and reused. Errors contain no header values and no bodies of requests.
Does not know: what requests ask for."""

from __future__ import annotations

import base64
import functools
import http.client
import re
import ssl
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from millstream.errors import ExternalError, UserError

_CODES = re.compile(r"(?P<exclude>!)?(?P<code>[1-5](?:\d\d|XX))", re.IGNORECASE)
_MAX_IDLE = 16  # connections to one server


class HttpRequestFailed(ExternalError):
    """A server refused a request, or could not be reached. `status` is None if there was no response."""

    def __init__(self, method: str, url: str, problem: str, status: int | None = None) -> None:
        self.url, self.status = url, status
        hint = "check the option 'url', and whether the server runs" if status is None else None
        super().__init__(f"{method} {_without_query(url)} failed: {problem}", hint=hint)


class InvalidHttpOption(UserError):
    """An option of an HTTP connector has an invalid value."""


def _without_query(url: str) -> str:
    """Return a URL without its query, for messages: parameters may be secrets."""
    return url.partition("?")[0]


@dataclass(frozen=True)
class StatusCodes:
    """A set of status codes, such as `2XX,404,!204`."""

    included: frozenset[int] = frozenset()

    @classmethod
    def parse(cls, text: str) -> StatusCodes:
        """Parse codes and groups of codes, separated by commas; `!` before a code excludes it."""
        included: set[int] = set()
        excluded: set[int] = set()
        for word in filter(None, (word.strip() for word in text.split(","))):
            match = _CODES.fullmatch(word)
            if match is None:
                message = f"'{word}' is not an HTTP status code"
                raise InvalidHttpOption(message, hint="write codes and groups such as 2XX,404,!204")
            digits = match["code"].upper()
            first = int(digits.replace("XX", "00"))
            (excluded if match["exclude"] else included).update(
                range(first, first + 100) if digits.endswith("XX") else (first,)
            )
        return cls(frozenset(included - excluded))

    def __contains__(self, code: int) -> bool:
        return code in self.included


@dataclass(frozen=True)
class Backoff:
    """How long to wait between attempts, in seconds."""

    retries: int = 3
    first: float = 1.0
    factor: float = 1.0
    longest: float = 60.0

    def delays(self) -> Iterable[float]:
        """Yield the delay after each failed attempt except the last."""
        for attempt in range(self.retries):
            yield min(self.first * self.factor**attempt, self.longest)


@dataclass(frozen=True)
class TlsOptions:
    """Files in PEM format, and whether certificates of the server are checked."""

    server_certificates: tuple[str, ...] = ()
    client_certificate: str | None = None
    client_key: str | None = None
    allow_self_signed: bool = False


@functools.lru_cache(maxsize=16)
def _tls_context(options: TlsOptions) -> ssl.SSLContext:
    context = ssl.create_default_context()
    for path in options.server_certificates:
        context.load_verify_locations(path)
    if options.client_certificate is not None:
        context.load_cert_chain(options.client_certificate, options.client_key)
    if options.allow_self_signed:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


@dataclass(frozen=True)
class HttpResponse:
    """The response of a server; header names are in lower case."""

    status: int
    headers: dict[str, list[str]]
    body: bytes


@dataclass(frozen=True)
class HttpOptions:
    """How requests are sent. Times are in seconds; `connect_timeout` is that of the connection, by default the same."""

    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    timeout: float = 30.0
    backoff: Backoff = Backoff()
    retried: StatusCodes = StatusCodes()
    tls: TlsOptions = TlsOptions()
    connect_timeout: float | None = None


def check_url(url: str) -> None:
    """Raise unless requests can be sent to a URL."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        message = f"'{url}' is not the URL of an HTTP server"
        raise InvalidHttpOption(message, hint="write http://host:port/path or https://host/path")


def encode_basic(user: str, password: str) -> str:
    """Return the header `Authorization` of a user."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


class HttpClient:
    """Sends requests. It can be called from several threads."""

    def __init__(self, options: HttpOptions) -> None:
        self._options = options
        self._idle: list[tuple[tuple[str, str], http.client.HTTPConnection]] = []

    def request(self, method: str, url: str, body: bytes | None = None) -> HttpResponse:
        """Send a request and return the response, whatever its status code; retry it after temporary failures.

        Raises:
            HttpRequestFailed: If there is no response after the last attempt.

        """
        for delay in self._options.backoff.delays():
            try:
                response = self._send(method, url, body)
            except HttpRequestFailed:
                time.sleep(delay)
                continue
            if response.status not in self._options.retried:
                return response
            time.sleep(delay)
        return self._send(method, url, body)

    def _send(self, method: str, url: str, body: bytes | None) -> HttpResponse:
        parts = urlsplit(url)
        server = parts.scheme, parts.netloc
        connection = self._take(server)
        while True:
            is_used = connection is not None
            if connection is None:
                connection = self._connect(*server)
            try:
                if not is_used and self._options.connect_timeout is not None:
                    connection.connect()
                    connection.sock.settimeout(self._options.timeout)
                path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
                connection.request(method, path, body, dict(self._options.headers))
                answer = connection.getresponse()
                content = answer.read()
            except (OSError, http.client.HTTPException) as problem:
                connection.close()
                connection = None
                if is_used and not isinstance(problem, TimeoutError):
                    continue  # the server may have closed the idle connection
                text = f"no answer within {self._options.timeout:g} s" if isinstance(problem, TimeoutError) else None
                raise HttpRequestFailed(method, url, text or str(problem) or type(problem).__name__) from None
            if answer.will_close or len(self._idle) >= _MAX_IDLE:
                connection.close()
            else:
                self._idle.append((server, connection))
            headers: dict[str, list[str]] = {}
            for name, value in answer.getheaders():
                headers.setdefault(name.lower(), []).append(value)
            return HttpResponse(answer.status, headers, content)

    def _take(self, server: tuple[str, str]) -> http.client.HTTPConnection | None:
        """Remove and return an idle connection to a server; None if there is none. `list.pop` is atomic."""
        try:
            known, connection = self._idle.pop()
        except IndexError:
            return None
        if known == server:
            return connection
        connection.close()
        return None

    def _connect(self, scheme: str, host: str) -> http.client.HTTPConnection:
        timeout = self._options.connect_timeout or self._options.timeout
        if scheme == "https":
            context = _tls_context(self._options.tls)
            return http.client.HTTPSConnection(host, timeout=timeout, context=context)
        return http.client.HTTPConnection(host, timeout=timeout)

    def close(self) -> None:
        """Close the connections."""
        while self._idle:
            self._idle.pop()[1].close()
