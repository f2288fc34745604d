"""Client of a schema registry: schemas by their id, ids by subject and schema.

Promises: the documented REST protocol (`/schemas/ids/{id}`, `/subjects/{subject}/versions`), responses are
cached; every request has a timeout; several URLs are tried in turn; a response is data and is never executed.
Credentials are sent to the configured URLs only: a redirect to another server is refused.
Does not know: Avro."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any
from urllib.parse import SplitResult, quote, urlsplit, urlunsplit

from millstream.config.secrets import mask_secret
from millstream.errors import ExternalError, UserError

_CONTENT = "application/vnd.schemaregistry.v1+json"
_TIMEOUT_SECONDS = 10.0
_MAX_RESPONSE = 16 << 20


class RegistryUnreachable(ExternalError):
    """The schema registry cannot be reached."""

    hint = "check that the schema registry runs and that driver and executors can reach it"

    def __init__(self, url: str, reason: str) -> None:
        self.url = url
        super().__init__(f"the schema registry at {url} cannot be reached: {reason}")


class RegistryRefused(UserError):
    """The schema registry refused a request."""

    def __init__(self, url: str, status: int, code: int | None, reason: str) -> None:
        self.url, self.status, self.code, self.reason = url, status, code, reason
        hints = {
            401: "check basic-auth.user-info or bearer-auth.token",
            409: "the new schema is incompatible with an earlier one of the subject",
            404: "there is no such schema or subject; check that the messages were written with this registry",
        }
        super().__init__(f"the schema registry at {url} returned {status} ({reason})", hint=hints.get(status))


class RedirectRefused(ExternalError):
    """The schema registry redirects to another server."""

    hint = "give the URL of the server to which the schema registry redirects"

    def __init__(self, url: str, target: str) -> None:
        self.url, self.target = url, target
        super().__init__(
            f"the schema registry at {url} redirects to {target}; the redirect is not followed, because requests "
            "contain credentials"
        )


class _SameServer(urllib.request.HTTPRedirectHandler):
    """Follows redirects to the same scheme, host and port only, because requests carry credentials."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        if _server(newurl) != _server(req.full_url):
            raise RedirectRefused(_server(req.full_url), _server(newurl))
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _server(url: str) -> str:
    """Return scheme, host and port of a URL."""
    parts = urlsplit(url)
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme, 0)
    return f"{parts.scheme}://{_host(parts)}:{port}"


def _host(parts: SplitResult) -> str:
    """Return the host of a URL; an IPv6 address keeps its brackets, which `hostname` removes."""
    host = parts.hostname or ""
    return f"[{host}]" if ":" in host else host


class SchemaRegistry:
    """A client of one registry, which can have several URLs. Responses are cached."""

    def __init__(
        self,
        url: str,
        *,
        user_info: str | None = None,
        bearer_token: str | None = None,
        ca_file: str | None = None,
        deadline: float = _TIMEOUT_SECONDS,
    ) -> None:
        authorization = None
        if user_info is not None:
            authorization = _basic_header(user_info)
        elif bearer_token is not None:
            authorization = f"Bearer {bearer_token}"
        addresses = [_split_user(address.strip()) for address in url.split(",") if address.strip()]
        self._addresses = [(address, authorization or from_url) for address, from_url in addresses]
        self._tls = ssl.create_default_context(cafile=ca_file) if ca_file is not None else None
        self._deadline = deadline
        self._schemas: dict[int, str] = {}
        self._ids: dict[tuple[str, str], int] = {}

    def schema(self, schema_id: int) -> str:
        """Return the schema with an id, as text."""
        if schema_id not in self._schemas:
            response = self._request("GET", f"/schemas/ids/{int(schema_id)}")
            self._schemas[schema_id] = _member(response, "schema", str)
        return self._schemas[schema_id]

    def register(self, subject: str, schema: str) -> int:
        """Return the id of a schema under a subject; it is registered if it is new."""
        if (subject, schema) not in self._ids:
            response = self._request("POST", f"/subjects/{quote(subject, safe='')}/versions", {"schema": schema})
            self._ids[subject, schema] = _member(response, "id", int)
        return self._ids[subject, schema]

    def latest(self, subject: str) -> tuple[int, str]:
        """Return id and text of the latest schema of a subject."""
        response = self._request("GET", f"/subjects/{quote(subject, safe='')}/versions/latest")
        return _member(response, "id", int), _member(response, "schema", str)

    def _request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        failure: RegistryUnreachable | None = None
        opener = urllib.request.build_opener(_SameServer, urllib.request.HTTPSHandler(context=self._tls))
        for url, authorization in self._addresses:
            headers = {"Accept": f"{_CONTENT}, application/json", "Content-Type": _CONTENT}
            if authorization is not None:
                headers["Authorization"] = authorization
            request = urllib.request.Request(url + path, data, headers, method=method)
            try:
                with opener.open(request, timeout=self._deadline) as response:
                    return parse_response(response.read(_MAX_RESPONSE))
            except urllib.error.HTTPError as problem:
                with problem:
                    refusal = _refusal(url, problem)
                if problem.code < 500:
                    raise refusal from None
                failure = RegistryUnreachable(url, refusal.message)
            except (OSError, ValueError, http.client.HTTPException) as problem:
                failure = RegistryUnreachable(url, str(getattr(problem, "reason", problem)))
        raise failure if failure is not None else RegistryUnreachable("", "no address was given")


def _basic_header(user: str) -> str:
    return f"Basic {base64.b64encode(user.encode()).decode()}"


def _split_user(url: str) -> tuple[str, str | None]:
    """Split a URL into the URL without the user and the authorization header; errors show the URL only."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        message = f"{mask_secret('', url)!r} is not the address of a schema registry"
        raise UserError(message, hint='give it as "http://host:8081"')
    authorization = None if parts.username is None else _basic_header(f"{parts.username}:{parts.password or ''}")
    host = _host(parts) if parts.port is None else f"{_host(parts)}:{parts.port}"
    return urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", "")), authorization


def parse_response(data: bytes) -> Any:
    """Parse a response as JSON; raises ValueError."""
    try:
        return json.loads(data)
    except RecursionError:
        message = "the response is nested too deeply"
        raise ValueError(message) from None


def _refusal(url: str, problem: urllib.error.HTTPError) -> RegistryRefused:
    try:
        body = parse_response(problem.read(_MAX_RESPONSE))
        return RegistryRefused(url, problem.code, body.get("error_code"), str(body.get("message")))
    except (ValueError, AttributeError, OSError, http.client.HTTPException):
        return RegistryRefused(url, problem.code, None, str(problem.reason))


def _member(response: Any, name: str, data_type: type) -> Any:
    result = response.get(name) if isinstance(response, dict) else None
    if not isinstance(result, data_type):
        message = f"the response of the schema registry has no field {name}: {response!r:.200}"
        raise ExternalError(message, hint="check that a schema registry runs at this address")
    return result
