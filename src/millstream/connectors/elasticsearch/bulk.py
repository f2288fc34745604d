"""Bulk requests to Elasticsearch and OpenSearch.

Promises: when `BulkClient.send` returns, the server has carried out every action. Actions that a busy server rejects
are sent again, with all later actions of the same documents, so that the last action of a document wins.
Does not know: records."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from millstream.connector.http_client import Backoff, HttpClient, HttpOptions, HttpRequestFailed, HttpResponse
from millstream.errors import ExternalError

_NO_RETRY = Backoff(retries=0)
_BUSY = (429, 502, 503, 504)
_NOT_FOUND = 404
_SHOWN = 300  # characters of an answer in an error
_ANSWER = "filter_path=errors,items.*.status,items.*.error.type,items.*.error.reason,items.*.error.caused_by.reason"
_HINTS = {
    401: "set the user name and the password",
    403: "check the user name, the password and the privileges of the user",
    404: "check that the address is that of an Elasticsearch or OpenSearch server",
    413: "make the requests smaller: 'sink.bulk-flush.max-size' or set_bulk_flush_max_size_mb(...)",
}


class DocumentRefused(ExternalError):
    """The server refused an action on a document."""

    def __init__(self, action: BulkAction, status: int, problem: str) -> None:
        self.status = status
        document = f"document '{action.document_id}'" if action.document_id is not None else "a document"
        super().__init__(
            f"the server refused to {action.operation} {document} of the index '{action.index}': "
            f"HTTP status {status}, {problem}",
            hint="compare the document with the mapping of the index" if status == 400 else None,
        )


@dataclass(frozen=True, slots=True)
class BulkAction:
    """What to do with a document: `operation` is `index`, `update` or `delete`, and `lines` is its part of a request.
    A document without an id gets one from the server."""

    operation: str
    index: str
    document_id: str | None
    lines: bytes


@dataclass(frozen=True)
class ActionFormat:
    """How actions are written. `document_type` is for servers before version 7; `retry_on_conflict` is how often the
    server tries an update again that another client has overtaken."""

    document_type: str | None = None
    retry_on_conflict: int = -1

    def index(self, index: str, source: bytes) -> BulkAction:
        """Return the action that adds a document."""
        return self._create("index", index, None, source)

    def upsert(self, index: str, document_id: str, source: bytes) -> BulkAction:
        """Return the action that writes the fields of a document, and creates it if it does not exist."""
        return self._create("update", index, document_id, b'{"doc":' + source + b',"doc_as_upsert":true}')

    def delete(self, index: str, document_id: str) -> BulkAction:
        """Return the action that deletes a document."""
        return self._create("delete", index, document_id, None)

    def _create(self, operation: str, index: str, document_id: str | None, source: bytes | None) -> BulkAction:
        target: dict[str, Any] = {"_index": index}
        if document_id is not None:
            target["_id"] = document_id
        if self.document_type is not None:
            target["_type"] = self.document_type
        if operation == "update" and self.retry_on_conflict >= 0:
            target["retry_on_conflict"] = self.retry_on_conflict
        head = json.dumps({operation: target}, ensure_ascii=False).encode() + b"\n"
        return BulkAction(operation, index, document_id, head + (b"" if source is None else source + b"\n"))


@dataclass(frozen=True)
class BulkServer:
    """The nodes of a cluster, as URLs, and how requests are sent and repeated."""

    hosts: tuple[str, ...]
    options: HttpOptions
    backoff: Backoff = _NO_RETRY
    path_prefix: str = ""

    def url_of(self, host: str, path: str) -> str:
        """Return the URL of a path on a node."""
        parts = [part for part in (self.path_prefix.strip("/"), path) if part]
        return "/".join([host.rstrip("/"), *parts])


class BulkClient:
    """Sends actions to the nodes of a cluster in turn; a node that does not answer is left out."""

    def __init__(self, server: BulkServer) -> None:
        self._server = server
        self._client = HttpClient(server.options)
        self._next = 0

    def ping(self) -> None:
        """Raise if no node answers, or the answer is an error."""
        response = self._request("GET", "", None)
        if response.status >= 300:
            problem = self._fail("GET", "", response)
            raise problem

    def send(self, actions: Sequence[BulkAction]) -> None:
        """Send actions in one request, and those that are rejected again, as often as allowed."""
        for delay in self._server.backoff.delays():
            try:
                rejected = self._send_once(actions)
            except HttpRequestFailed as problem:
                if problem.status is not None and problem.status not in _BUSY:
                    raise
            else:
                if not rejected:
                    return
                actions = _with_later_actions(actions, rejected)
            time.sleep(delay)
        for position, reason in self._send_once(actions).items():
            raise DocumentRefused(actions[position], 429, reason)

    def _send_once(self, actions: Sequence[BulkAction]) -> dict[int, str]:
        """Send a request; return the rejected actions by position, and why. Raise if one is refused for good."""
        response = self._request("POST", f"_bulk?{_ANSWER}", b"".join(action.lines for action in actions))
        if response.status != 200:
            problem = self._fail("POST", "_bulk", response)
            raise problem
        answer = json.loads(response.body)
        if not answer["errors"]:
            return {}
        rejected: dict[int, str] = {}
        for position, (action, item) in enumerate(zip(actions, answer["items"], strict=True)):
            result = item[action.operation]
            status = int(result["status"])
            if status < 300 or (status == _NOT_FOUND and action.operation == "delete"):
                continue
            reason = _describe(result.get("error", {}))
            if status not in _BUSY:
                raise DocumentRefused(action, status, reason)
            rejected[position] = reason
        return rejected

    def _request(self, method: str, path: str, body: bytes | None) -> HttpResponse:
        """Send a request to the next node that answers."""
        hosts = self._server.hosts
        for attempt in range(len(hosts)):
            host = hosts[(self._next + attempt) % len(hosts)]
            try:
                response = self._client.request(method, self._server.url_of(host, path), body)
            except HttpRequestFailed as problem:
                failure = problem
            else:
                self._next = (self._next + attempt + 1) % len(hosts)
                return response
        raise failure

    def _fail(self, method: str, path: str, response: HttpResponse) -> HttpRequestFailed:
        url = self._server.url_of(self._server.hosts[self._next - 1], path)
        text = response.body[:_SHOWN].decode(errors="replace")
        problem = HttpRequestFailed(method, url, f"HTTP status {response.status}: {text}", response.status)
        problem.hint = _HINTS.get(response.status)
        return problem

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def _describe(error: dict[str, Any]) -> str:
    reasons = [error.get("type"), error.get("reason"), error.get("caused_by", {}).get("reason")]
    return ": ".join(reason for reason in reasons if reason) or "without a reason"


def _with_later_actions(actions: Sequence[BulkAction], rejected: dict[int, str]) -> list[BulkAction]:
    """Return the rejected actions, and what follows them on the same documents."""
    again: list[BulkAction] = []
    documents: set[tuple[str, str]] = set()
    for position, action in enumerate(actions):
        document = None if action.document_id is None else (action.index, action.document_id)
        if position in rejected or document in documents:
            again.append(action)
            if document is not None:
                documents.add(document)
    return again
