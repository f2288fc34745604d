"""A client of a schema registry: schemas by their id, ids by subject and schema.

Promises: the documented REST protocol (`/schemas/ids/{id}`, `/subjects/{subject}/versions`), each answer asked for once
and kept; every request has a deadline; several registries are tried in turn; an answer is data, never executed.
Does not know: Avro."""

from __future__ import annotations

import base64
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

from millstream.errors import ExternalError, UserError

_CONTENT = "application/vnd.schemaregistry.v1+json"
_DEADLINE = 10.0
_LARGEST = 16 << 20


class RegistryUnreachable(ExternalError):
    """No registry answered."""

    hint = "is the schema registry running, and reachable from driver and executors?"

    def __init__(self, url: str, reason: str) -> None:
        self.url = url
        super().__init__(f"the schema registry at {url} cannot be asked: {reason}")


class RegistryRefused(UserError):
    """The registry answered, and said no."""

    def __init__(self, url: str, status: int, code: int | None, reason: str) -> None:
        self.url, self.status, self.code, self.reason = url, status, code, reason
        hints = {
            401: "check basic-auth.user-info or bearer-auth.token",
            409: "the new schema is incompatible with an earlier one of the subject",
            404: "no such schema or subject: is this the registry the messages were written with?",
        }
        super().__init__(f"the schema registry at {url} says {status} ({reason})", hint=hints.get(status))


class SchemaRegistry:
    """Asks one registry, which may be reachable under several addresses. Answers are kept for its life."""

    def __init__(
        self,
        url: str,
        *,
        user_info: str | None = None,
        bearer_token: str | None = None,
        ca_file: str | None = None,
        deadline: float = _DEADLINE,
    ) -> None:
        self._headers = {"Accept": f"{_CONTENT}, application/json", "Content-Type": _CONTENT}
        self._urls = [self._clean(each.strip()) for each in url.split(",") if each.strip()]
        if user_info is not None:
            self._headers["Authorization"] = f"Basic {base64.b64encode(user_info.encode()).decode()}"
        elif bearer_token is not None:
            self._headers["Authorization"] = f"Bearer {bearer_token}"
        self._tls = ssl.create_default_context(cafile=ca_file) if ca_file is not None else None
        self._deadline = deadline
        self._schemas: dict[int, str] = {}
        self._ids: dict[tuple[str, str], int] = {}

    def _clean(self, url: str) -> str:
        """The address without the user in it, who goes into the headers and never into messages."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            message = f"{url!r} is not the address of a schema registry"
            raise UserError(message, hint='give it as "http://host:8081"')
        if parts.username is not None:
            user = f"{parts.username}:{parts.password or ''}"
            self._headers["Authorization"] = f"Basic {base64.b64encode(user.encode()).decode()}"
        host = parts.hostname if parts.port is None else f"{parts.hostname}:{parts.port}"
        return urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))

    def schema(self, schema_id: int) -> str:
        """The schema with this id, as text."""
        if schema_id not in self._schemas:
            answer = self._ask("GET", f"/schemas/ids/{int(schema_id)}")
            self._schemas[schema_id] = _member(answer, "schema", str)
        return self._schemas[schema_id]

    def register(self, subject: str, schema: str) -> int:
        """The id of a schema under a subject; it is registered there if it is not yet."""
        if (subject, schema) not in self._ids:
            answer = self._ask("POST", f"/subjects/{quote(subject, safe='')}/versions", {"schema": schema})
            self._ids[subject, schema] = _member(answer, "id", int)
        return self._ids[subject, schema]

    def latest(self, subject: str) -> tuple[int, str]:
        """Id and text of the latest schema of a subject."""
        answer = self._ask("GET", f"/subjects/{quote(subject, safe='')}/versions/latest")
        return _member(answer, "id", int), _member(answer, "schema", str)

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        failure: RegistryUnreachable | None = None
        for url in self._urls:
            request = urllib.request.Request(url + path, data, self._headers, method=method)
            try:
                with urllib.request.urlopen(request, timeout=self._deadline, context=self._tls) as answer:
                    return json.loads(answer.read(_LARGEST))
            except urllib.error.HTTPError as problem:
                with problem:
                    refusal = _refusal(url, problem)
                if problem.code < 500:
                    raise refusal from None
                failure = RegistryUnreachable(url, refusal.message)
            except (OSError, ValueError) as problem:
                failure = RegistryUnreachable(url, str(getattr(problem, "reason", problem)))
        raise failure if failure is not None else RegistryUnreachable("", "no address was given")


def _refusal(url: str, problem: urllib.error.HTTPError) -> RegistryRefused:
    try:
        said = json.loads(problem.read(_LARGEST))
        return RegistryRefused(url, problem.code, said.get("error_code"), str(said.get("message")))
    except (ValueError, AttributeError, OSError):
        return RegistryRefused(url, problem.code, None, str(problem.reason))


def _member(answer: Any, name: str, kind: type) -> Any:
    found = answer.get(name) if isinstance(answer, dict) else None
    if not isinstance(found, kind):
        message = f"the schema registry answered without {name}: {answer!r:.200}"
        raise ExternalError(message, hint="is there a schema registry at this address?")
    return found
