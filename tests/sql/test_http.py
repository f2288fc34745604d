"""Lookups over HTTP and the HTTP sink, with a server that answers, fails, is busy and closes connections."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import pytest

from millstream.errors import ExternalError, MillstreamError, UserError
from millstream.sql.connectors.simple import register_values
from millstream.table import EnvironmentSettings, TableEnvironment

pytestmark = pytest.mark.usefixtures("inline_engine")

Response = tuple[int, Any]


class Handler(BaseHTTPRequestHandler):
    """Sends the result of `answer` for the method, the URL and the document of a request."""

    protocol_version = "HTTP/1.1"
    requests: ClassVar[list[tuple[str, str, Any, dict[str, str]]]] = []
    connections: ClassVar[list[int]] = [0]
    answer: ClassVar[Callable[[str, str, Any], Response]]

    def setup(self) -> None:
        self.connections[0] += 1
        super().setup()

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        document = json.loads(body) if body else None
        self.requests.append((self.command, self.path, document, dict(self.headers)))
        status, content = type(self).answer(self.command, self.path, document)
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("X-Served", "yes")
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PUT = _handle

    def log_message(self, format: str, *args: Any) -> None:
        """Do not write to stderr."""


class Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False


@pytest.fixture
def server() -> Iterator[str]:
    Handler.requests.clear()
    Handler.connections[0] = 0
    Handler.answer = lambda method, path, document: (200, b"")
    with Server(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}/client"
        running.shutdown()
        thread.join()


def set_responses(function: Callable[[str, str, Any], Response]) -> None:
    Handler.answer = staticmethod(function)  # type: ignore[assignment]


def customer(method: str, path: str, document: Any) -> Response:
    name = parse_qs(urlsplit(path).query)["id"][0] if document is None else document["id"]
    number = str(name).removeprefix("c")
    if number == "404":
        return 200, b""
    return 200, {"id": name, "name": f"name {number}", "details": {"active": True, "balance": float(number)}}


GID = "gid.connector.http."
LOOKUP = f"{GID}source.lookup."


def lookup_environment(url: str, keys: list[Any], columns: str, **options: str) -> TableEnvironment:
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    register_values("keys", [(key,) for key in keys])
    env.execute_sql("CREATE TABLE orders (k STRING, p AS PROCTIME()) WITH ('connector' = 'values', 'data-id' = 'keys')")
    settings = {"connector": "rest-lookup", "format": "json", "url": url, **options}
    text = ", ".join(f"'{key}' = '{value}'" for key, value in settings.items())
    env.execute_sql(f"CREATE TABLE customers (id STRING, {columns}) WITH ({text})")
    return env


def join(env: TableEnvironment, selected: str, join_type: str = "LEFT JOIN") -> list[tuple]:
    query = (
        f"SELECT o.k, {selected} FROM orders AS o {join_type} customers FOR SYSTEM_TIME AS OF o.p AS c ON o.k = c.id"
    )
    with env.execute_sql(query).collect() as rows:
        return sorted((tuple(row) for row in rows), key=str)


FAST = {f"{LOOKUP}retry-strategy.fixed-delay.delay": "1 ms"}


@pytest.mark.parametrize("asynchronous", ["false", "true"])
def test_each_key_is_one_request_and_each_response_a_row(server: str, asynchronous: str) -> None:
    set_responses(customer)
    options = {
        f"{LOOKUP}header.X-Tenant": "a b",
        f"{LOOKUP}header.Authorization": "me:secret",
        "asyncPolling": asynchronous,
    }
    columns = "name STRING, details ROW<active BOOLEAN, balance DOUBLE>"
    env = lookup_environment(f"{server}?v=1", ["c1", "c2", "c1", "c404"], columns, **options)
    actual = join(env, "c.name, c.details.balance")
    assert actual == [("c1", "name 1", 1.0), ("c1", "name 1", 1.0), ("c2", "name 2", 2.0), ("c404", None, None)]
    assert sorted(path for _, path, _, _ in Handler.requests) == [
        f"/client?v=1&id={key}" for key in ("c1", "c2", "c404")
    ]
    headers = Handler.requests[0][3]
    assert (headers["X-Tenant"], headers["Authorization"]) == ("a b", "Basic bWU6c2VjcmV0")
    if asynchronous == "false":
        assert Handler.connections == [1]
    with env.execute_sql("SHOW CREATE TABLE customers").collect() as rows:
        assert "me:secret" not in str(list(rows))


def test_keys_are_sent_in_the_body_the_path_and_the_query(server: str) -> None:
    set_responses(lambda method, path, document: (200, {"id": "x", "name": f"{method} {path} {json.dumps(document)}"}))
    env = lookup_environment(server, ["a/b c"], "name STRING", **{"lookup-method": "POST"})
    assert join(env, "c.name") == [("a/b c", 'POST /client {"id": "a/b c"}')]
    mapped = {
        "lookup-method": "put", f"{LOOKUP}query-creator": "generic-json-url", f"{GID}request.query-param-fields": "id",
        f"{GID}request.body-fields": "id", f"{GID}request.url-map": "id:cid",
    }  # fmt: skip
    env = lookup_environment(f"{server}/{{cid}}/orders", ["a/b c"], "name STRING", **mapped)
    assert join(env, "c.name") == [("a/b c", 'PUT /client/a%2Fb%20c/orders?id=a%2Fb+c {"id": "a/b c"}')]
    env = lookup_environment(server, ["a b"], "name STRING", **{f"{LOOKUP}query-creator": "elasticsearch-lite"})
    assert join(env, "c.name") == [("a b", "GET /client?q=id%3A%22a+b%22 null")]


def test_an_array_is_many_rows(server: str) -> None:
    set_responses(lambda method, path, document: (200, [{"id": "x", "name": "one"}, None, {"id": "x", "name": "two"}]))
    env = lookup_environment(server, ["x"], "name STRING", **{f"{LOOKUP}result-type": "array"})
    assert join(env, "c.name") == [("x", "one"), ("x", "two")]
    set_responses(lambda method, path, document: (200, {"id": "x"}))
    with pytest.raises(ExternalError, match="cannot be decoded: it is not an array"):
        join(env, "c.name")


def test_a_request_to_a_busy_server_is_retried_and_an_error_fails_the_job(server: str) -> None:
    remaining_failures = [503, 500]
    set_responses(
        lambda method, path, document: (
            (remaining_failures.pop(), b"busy") if remaining_failures else customer(method, path, document)
        )
    )
    env = lookup_environment(server, ["c1"], "name STRING", **FAST)
    assert join(env, "c.name") == [("c1", "name 1")]
    assert len(Handler.requests) == 3
    remaining_failures[:] = [503] * 9
    with pytest.raises(ExternalError, match=r"GET http://.*/client failed: HTTP status 503: busy"):
        join(env, "c.name")
    assert len(Handler.requests) == 3 + 4
    set_responses(lambda method, path, document: (404, b"no such customer"))
    with pytest.raises(ExternalError, match="HTTP status 404: no such customer"):
        join(env, "c.name")
    assert len(Handler.requests) == 3 + 4 + 1
    env = lookup_environment(server, ["c1"], "name STRING", **{f"{LOOKUP}ignored-response-codes": "4XX,!403"})
    assert join(env, "c.name") == [("c1", None)]
    assert join(env, "c.name", "JOIN") == []


def test_metadata_columns_describe_the_response(server: str) -> None:
    def by_key(method: str, path: str, document: Any) -> Response:
        key = parse_qs(urlsplit(path).query)["id"][0]
        responses: dict[str, Response] = {"bad": (200, b"{"), "gone": (410, b"gone"), "ignored": (204, b"")}
        return responses.get(key) or customer(method, path, document)

    set_responses(by_key)
    columns = (
        "name STRING, status INT METADATA FROM 'http-status-code' VIRTUAL, state STRING METADATA FROM "
        "'http-completion-state' VIRTUAL, problem STRING METADATA FROM 'error-string' VIRTUAL, "
        "headers MAP<STRING, ARRAY<STRING>> METADATA FROM 'http-headers-map' VIRTUAL"
    )
    options = {f"{LOOKUP}continue-on-error": "true", f"{LOOKUP}ignored-response-codes": "204"}
    env = lookup_environment(server, ["c1", "bad", "gone", "ignored"], columns, **options)
    assert join(env, "c.name, c.status, c.state, c.headers['x-served'][1]", "JOIN") == [
        ("bad", None, 200, "UNABLE_TO_DESERIALIZE_RESPONSE", "yes"),
        ("c1", "name 1", 200, "SUCCESS", "yes"),
        ("gone", None, 410, "HTTP_ERROR_STATUS", "yes"),
        ("ignored", None, 204, "IGNORE_STATUS_CODE", "yes"),
    ]
    unreachable = "http://127.0.0.1:9/client"
    env = lookup_environment(unreachable, ["c1"], columns, **{**options, "lookup.max-retries": "0"})
    ((_, status, state, problem),) = join(env, "c.status, c.state, c.problem")
    assert (status, state) == (None, "EXCEPTION")
    assert "refused" in problem


def test_responses_are_cached(server: str) -> None:
    set_responses(customer)
    env = lookup_environment(
        server, ["c1"] * 3, "name STRING", **{"lookup.cache": "PARTIAL", "lookup.partial-cache.max-rows": "10"}
    )
    env.get_config().set("millstream.epoch.max-records", "1")
    assert join(env, "c.name") == [("c1", "name 1")] * 3
    assert len(Handler.requests) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"url": "ftp://a"}, "not the URL of an HTTP server"),
        ({f"{LOOKUP}success-codes": "2X"}, "'2X' is not an HTTP status code"),
        ({f"{LOOKUP}sucess-codes": "2XX"}, "unknown option.*success-codes"),
        ({"lookup.cache": "FULL"}, "can be read as a whole"),
        ({"lookup-request.format": "csv"}, "requests are written as JSON"),
        ({f"{LOOKUP}request.timeout": "0"}, "must be a number of seconds above 0"),
        (
            {f"{LOOKUP}query-creator": "generic-json-url", f"{GID}request.url-map": "name:n"},
            "needs column 'name', which the join does not compare",
        ),
    ],
)
def test_wrong_options_are_refused(server: str, options: dict[str, str], message: str) -> None:
    env = lookup_environment(options.pop("url", server), ["a"], "name STRING", **options)
    with pytest.raises(UserError, match=f"(?s){message}"):
        join(env, "c.name")
    assert not Handler.requests


# ---------------------------------------------------------------------------------------------------------------- sink


def insert(url: str, rows: str, **options: str) -> None:
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    env.get_config().set("parallelism.default", "1")
    env.get_config().set("restart-strategy.type", "none")
    settings = {"connector": "http-sink", "format": "json", "url": url, **options}
    text = ", ".join(f"'{key}' = '{value}'" for key, value in settings.items())
    env.execute_sql(f"CREATE TABLE sent (id BIGINT, name STRING) WITH ({text})")
    env.execute_sql(f"INSERT INTO sent VALUES {rows}").wait()


SINK = f"{GID}sink."


def test_rows_are_sent_in_batches_or_one_by_one(server: str) -> None:
    insert(server, "(1, 'a'), (2, 'b'), (3, NULL)", **{f"{SINK}request.batch.size": "2", f"{SINK}header.X-Tenant": "t"})
    bodies = [document for _, _, document, _ in Handler.requests]
    assert [len(body) for body in bodies] == [2, 1]
    assert sorted((row["id"], row["name"]) for body in bodies for row in body) == [(1, "a"), (2, "b"), (3, None)]
    method, path, _, headers = Handler.requests[0]
    assert (method, path, headers["X-Tenant"], headers["Content-Type"]) == ("POST", "/client", "t", "application/json")
    Handler.requests.clear()
    single = {f"{SINK}writer.request.mode": "single", "insert-method": "PUT", f"{SINK}writer.thread-pool.size": "2"}
    insert(server, "(1, 'a'), (2, 'b')", **single)
    assert sorted((method, row["id"]) for method, _, row, _ in Handler.requests) == [("PUT", 1), ("PUT", 2)]


def test_a_refused_request_fails_the_job_and_a_busy_server_does_not(server: str) -> None:
    remaining_failures = [429, 503]
    set_responses(
        lambda method, path, document: (remaining_failures.pop(), b"busy") if remaining_failures else (200, b"")
    )
    insert(server, "(1, 'a')")
    assert [document for _, _, document, _ in Handler.requests] == [[{"id": 1, "name": "a"}]] * 3
    set_responses(lambda method, path, document: (422, b"no name"))
    with pytest.raises(MillstreamError, match=r"POST http://.* failed: HTTP status 422: no name"):
        insert(server, "(1, 'a')")
    insert(server, "(1, 'a')", **{f"{SINK}error.code.exclude": "422"})  # the status code is excluded from errors
    with pytest.raises(UserError, match="the format is 'csv'"):
        insert(server, "(1, 'a')", format="csv")
    with pytest.raises(UserError, match=re.escape(f"'{SINK}request.batch.size' must be 1 or more")):
        insert(server, "(1, 'a')", **{f"{SINK}request.batch.size": "0"})
