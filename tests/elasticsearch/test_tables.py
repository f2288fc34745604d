"""Elasticsearch and OpenSearch as sinks: what is written to a real server, and what is refused."""

from __future__ import annotations

import datetime
import http.server
import json
import threading
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from elasticsearch_server import SearchServer, start_server

from millstream.common import Types
from millstream.connector.http_client import Backoff, HttpOptions, HttpRequestFailed
from millstream.connectors.elasticsearch.bulk import ActionFormat, BulkClient, BulkServer, DocumentRefused
from millstream.datastream import StreamExecutionEnvironment
from millstream.datastream.connectors import DeliveryGuarantee
from millstream.datastream.connectors.elasticsearch import (
    Elasticsearch6SinkBuilder,
    Elasticsearch7SinkBuilder,
    ElasticsearchEmitter,
    FlushBackoffType,
)
from millstream.errors import ExternalError, MillstreamError, UserError
from millstream.sql.connectors.simple import register_values
from millstream.table import EnvironmentSettings, TableEnvironment
from millstream.types.row import Row, RowKind

pytestmark = pytest.mark.usefixtures("inline_engine")


@pytest.fixture(scope="module")
def search_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SearchServer]:
    with start_server(tmp_path_factory.mktemp("elasticsearch")) as server:
        yield server


def environment(columns: str, url: str = "http://127.0.0.1:9", **options: str) -> TableEnvironment:
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    env.get_config().set("parallelism.default", "1")
    env.get_config().set("restart-strategy.type", "none")
    settings = {"connector": "opensearch-2", "hosts": url, "index": "stored", **options}
    text = ", ".join(f"'{key.replace('__', '.')}' = '{value}'" for key, value in settings.items())
    env.execute_sql(f"CREATE TABLE stored ({columns}) WITH ({text})")
    return env


def insert(env: TableEnvironment, query: str) -> None:
    env.execute_sql(f"INSERT INTO stored {query}").wait()


def changes(env: TableEnvironment, columns: str, rows: list[tuple[RowKind, Any]]) -> None:
    """Create the table `changes` with rows of these kinds."""
    register_values("changes", [Row.of_kind(kind, *values) for kind, values in rows])
    env.execute_sql(
        f"CREATE TABLE changes ({columns}) "
        "WITH ('connector' = 'values', 'data-id' = 'changes', 'changelog-mode' = 'I,UB,UA,D')"
    )


def test_rows_follow_the_changes_of_a_query(search_server: SearchServer) -> None:
    env = environment("word STRING, n BIGINT, PRIMARY KEY (word) NOT ENFORCED", search_server.url, index="counts")
    search_server.request("PUT", "counts/_doc/b", {"word": "b", "n": 7, "colour": "red"})
    search_server.request("PUT", "counts/_doc/c", {"word": "c", "n": 1})
    columns = "word STRING, n BIGINT, PRIMARY KEY (word) NOT ENFORCED"
    insert_a, delete_c = (RowKind.INSERT, ("a", 1)), (RowKind.DELETE, ("c", 1))
    update_b = [(RowKind.UPDATE_BEFORE, ("b", 7)), (RowKind.UPDATE_AFTER, ("b", None))]
    changes(env, columns, [insert_a, *update_b, delete_c, (RowKind.DELETE, ("never there", 1))])
    insert(env, "SELECT * FROM changes")
    # an update writes the columns of the table only
    expected = {"a": {"word": "a", "n": 1}, "b": {"word": "b", "n": None, "colour": "red"}}
    assert search_server.documents("counts") == expected


def test_keys_and_indexes_are_texts_of_values(search_server: SearchServer) -> None:
    columns = "id INT, price DECIMAL(6, 2), day DATE, at TIMESTAMP(3), ok BOOLEAN"
    env = environment(
        f"{columns}, tags ARRAY<STRING>, PRIMARY KEY (id, price, day, at, ok) NOT ENFORCED",
        search_server.url,
        **{"index": "log-{at|yyyy-MM-dd}-x", "document-id.key-delimiter": "$", "sink.bulk-flush.max-actions": "2"},
    )
    later = "(2, 10.00, DATE '2024-03-01', TIMESTAMP '2024-03-02 00:00:00', FALSE, ARRAY['a', 'b'])"
    insert(
        env,
        "SELECT CAST(a AS INT), CAST(b AS DECIMAL(6, 2)), c, CAST(d AS TIMESTAMP(3)), e, f FROM (VALUES "
        f"(1, 1.50, DATE '2024-03-01', TIMESTAMP '2024-03-01 10:20:30.5', TRUE, ARRAY['c', 'd']), {later}, "
        f"(3, 10.00, DATE '2024-03-01', TIMESTAMP '2024-03-02 00:00:00', FALSE, ARRAY['e', 'f'])) "
        "AS v(a, b, c, d, e, f)",
    )
    first = search_server.documents("log-2024-03-01-x")
    assert first == {
        "1$1.50$2024-03-01$2024-03-01T10:20:30.500$true": {
            "id": 1, "price": 1.5, "day": "2024-03-01", "at": "2024-03-01 10:20:30.5", "ok": True, "tags": ["c", "d"],
        }
    }  # fmt: skip
    assert list(search_server.documents("log-2024-03-02-x")) == [
        "2$10.00$2024-03-01$2024-03-02T00:00$false",
        "3$10.00$2024-03-01$2024-03-02T00:00$false",
    ]


def test_a_row_without_a_key_is_a_new_document(search_server: SearchServer) -> None:
    env = environment("kind STRING, n INT", search_server.url, connector="elasticsearch-7", index="events-{kind}")
    insert(env, "VALUES ('a', 1), ('a', 1), ('b', 2)")
    assert list(search_server.documents("events-a").values()) == [{"kind": "a", "n": 1}] * 2
    assert list(search_server.documents("events-b").values()) == [{"kind": "b", "n": 2}]
    env = environment("n INT", search_server.url, index="written-{now()|yyyy}", connection__timeout="5 s")
    insert(env, "VALUES 1")
    year = datetime.datetime.now(datetime.UTC).year
    assert list(search_server.documents(f"written-{year}").values()) == [{"n": 1}]


def test_a_document_that_the_server_refuses_fails_the_job(search_server: SearchServer) -> None:
    search_server.request("PUT", "typed", {"mappings": {"properties": {"n": {"type": "integer"}}}})
    env = environment("k STRING, n STRING, PRIMARY KEY (k) NOT ENFORCED", search_server.url, index="typed")
    expected = r"refused to update document 'b' of the index 'typed': HTTP status 400, .*failed to parse field \[n\]"
    with pytest.raises(ExternalError, match=expected):
        insert(env, "VALUES ('a', '1'), ('b', 'many')")
    env = environment("k STRING, PRIMARY KEY (k) NOT ENFORCED", search_server.url)
    with pytest.raises(UserError, match="cannot be the id of a document: it is longer than 512 bytes"):
        insert(env, f"VALUES ('{'x' * 513}')")
    with pytest.raises(ExternalError, match="Connection refused"):
        insert(environment("k STRING"), "VALUES ('a')")


def test_dicts_are_documents(search_server: SearchServer) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    day = datetime.date(2024, 3, 1)
    users = [
        {"id": 1, "table": "dict-users", "born": day, "height": Decimal("1.5"), "photo": b"abc"},
        {"id": 2, "table": "dict-guests", "seen": datetime.datetime(2024, 3, 1, 10, tzinfo=datetime.UTC)},
        {"id": 1, "table": "dict-users", "height": Decimal("1.6")},
    ]
    builder = Elasticsearch7SinkBuilder().set_emitter(ElasticsearchEmitter.dynamic_index("table", "id"))
    builder.set_hosts([search_server.url.removeprefix("http://")]).set_bulk_flush_max_size_mb(1)
    builder.set_delivery_guarantee(DeliveryGuarantee.AT_LEAST_ONCE).set_bulk_flush_interval(1000)
    env.from_collection(users).sink_to(builder.build())
    env.execute()
    assert search_server.documents("dict-users") == {
        "1": {"id": 1, "table": "dict-users", "born": "2024-03-01", "height": 1.6, "photo": "YWJj"}
    }
    guest = {"id": 2, "table": "dict-guests", "seen": "2024-03-01T10:00:00+00:00"}
    assert search_server.documents("dict-guests") == {"2": guest}
    builder.set_emitter(ElasticsearchEmitter.static_index("dict-users", "id"))
    for record, problem in (
        ((1, 2), "it is a tuple"),
        ({"x": 1}, "the field 'id' is missing"),
        ({"id": 1, "x": 1j}, "complex"),
    ):
        env.from_collection([record], type_info=Types.PICKLED_BYTE_ARRAY()).sink_to(builder.build())
        with pytest.raises(UserError, match=problem):
            env.execute()


class BusyServer(http.server.ThreadingHTTPServer):
    """Answers bulk requests with the statuses of a script; `received` has the lines of each request."""

    def __init__(self, script: list[Any]) -> None:
        super().__init__(("127.0.0.1", 0), BusyHandler)
        self.script, self.received = script, list[list[Any]]()
        self.authorizations = set[str | None]()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class BusyHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        server = self.server
        assert isinstance(server, BusyServer)
        body = self.rfile.read(int(self.headers["Content-Length"]))
        lines = [json.loads(line) for line in body.splitlines()]
        server.received.append(lines)
        server.authorizations.add(self.headers["Authorization"])
        answer, status = server.script.pop(0), 200
        if isinstance(answer, int):
            status, content = answer, b"no"
        else:
            names = [name for line in lines for name in line if name in ("index", "update", "delete")]
            items = [
                {name: {"status": code, "error": {"reason": "busy"}}} for name, code in zip(names, answer, strict=True)
            ]
            content = json.dumps({"errors": any(code >= 300 for code in answer), "items": items}).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *words: object) -> None:
        pass


@pytest.fixture
def busy_server() -> Iterator[BusyServer]:
    with BusyServer([]) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def client_of(*hosts: str, retries: int = 3) -> BulkClient:
    return BulkClient(BulkServer(hosts, HttpOptions(backoff=Backoff(0)), Backoff(retries, 0.001)))


def test_what_a_busy_server_rejects_is_sent_again_in_order(busy_server: BusyServer) -> None:
    actions = ActionFormat(retry_on_conflict=2)
    first, other, last = (
        actions.upsert("i", "1", b'{"n":1}'),
        actions.upsert("i", "2", b'{"n":2}'),
        actions.delete("i", "1"),
    )
    busy_server.script[:] = [[429, 200, 200], 503, [200, 404]]
    client = client_of(busy_server.url)
    client.send([first, other, last])
    assert [len(lines) for lines in busy_server.received] == [5, 3, 3]
    update = {"update": {"_index": "i", "_id": "1", "retry_on_conflict": 2}}
    assert busy_server.received[2] == [
        update,
        {"doc": {"n": 1}, "doc_as_upsert": True},
        {"delete": {"_index": "i", "_id": "1"}},
    ]
    busy_server.script[:] = [[429], [429], [429], [429]]
    with pytest.raises(DocumentRefused, match="refused to index a document of the index 'i': HTTP status 429, busy"):
        client.send([actions.index("i", b"{}")])
    busy_server.script[:] = [413]
    with pytest.raises(HttpRequestFailed, match="make the requests smaller"):
        client.send([actions.index("i", b"{}")])
    client.close()


def test_a_node_that_does_not_answer_is_left_out(busy_server: BusyServer) -> None:
    busy_server.script[:] = [[200], [200]]
    client = client_of("http://127.0.0.1:9", busy_server.url, retries=0)
    for _ in range(2):
        client.send([ActionFormat("user").index("i", b"{}")])
    assert busy_server.received[0] == [{"index": {"_index": "i", "_type": "user"}}, {}]
    client.close()


def test_builders_have_what_they_need(busy_server: BusyServer) -> None:
    emitter = ElasticsearchEmitter.static_index("users", "id")
    builder = Elasticsearch7SinkBuilder().set_emitter(emitter)
    with pytest.raises(UserError, match=r"has no hosts; hint: call set_hosts\(...\)"):
        builder.build()
    with pytest.raises(UserError, match="'ftp://x' is not the URL"):
        builder.set_hosts("ftp://x")
    with pytest.raises(UserError, match="does not support EXACTLY_ONCE"):
        builder.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
    with pytest.raises(UserError, match="need a type"):
        Elasticsearch6SinkBuilder().set_emitter(emitter).set_hosts("es:9200").build()
    builder.set_hosts(busy_server.url).set_connection_username("me").set_connection_password("secret")
    builder.set_connection_path_prefix("/search/").set_socket_timeout(2000).set_connection_timeout(1000)
    builder.set_bulk_flush_max_actions(-1).set_connection_request_timeout(1)
    sink = builder.set_bulk_flush_backoff_strategy(FlushBackoffType.EXPONENTIAL, 2, 1).build()
    assert "secret" not in repr(sink)
    assert sink.server.url_of(busy_server.url, "_bulk") == f"{busy_server.url}/search/_bulk"
    busy_server.script[:] = [503, 503, [200]]
    client = BulkClient(sink.server)
    client.send([ActionFormat().index("i", b"{}")])
    client.close()
    assert busy_server.authorizations == {"Basic bWU6c2VjcmV0"}


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ("k STRING", {"index": "i-{kk}"}, "names the column 'kk'"),
        ("k STRING", {"index": "{k}{k}"}, "can have one part in braces"),
        ("k STRING", {"index": "i-{k"}, "a brace without its partner"),
        ("k STRING", {"index": "i-{k|yyyy}"}, "has a date pattern and is STRING"),
        ("k DATE", {"index": "i-{k|yyyyb}"}, "pattern"),
        ("k DOUBLE", {"index": "i-{k}"}, "of the option 'index' is DOUBLE"),
        ("k STRING, PRIMARY KEY (k) NOT ENFORCED", {"index": "i-{NOW()|yyyy}"}, "the index has the processing time"),
        ("k BYTES, PRIMARY KEY (k) NOT ENFORCED", {}, "the primary key cannot have BYTES"),
        ("k STRING", {"hosts": " "}, "option 'hosts' is empty"),
        ("k STRING", {"hosts": "ftp://x"}, "is not the URL"),
        ("k STRING", {"username": "me"}, "must be set together"),
        ("k STRING", {"sink.delivery-guarantee": "exactly-once"}, "is not supported"),
        ("k STRING", {"sink.bulk-flush.max-size": "3 kb"}, "must be a number of megabytes"),
        ("k STRING", {"sink.bulk-flush.backoff.max-retries": "0"}, "must be 1 or more"),
        ("k STRING", {"sink.bulk-flush.max-action": "1"}, "did you mean 'sink.bulk-flush.max-actions'"),
        ("k STRING", {"format": "csv"}, "documents are JSON, and the format is 'csv'"),
        ("k STRING", {"connector": "elasticsearch-6"}, "option 'document-type' is missing"),
        ("k STRING", {"connector": "elasticsearch"}, "there is no connector 'elasticsearch'"),
        ("k STRING", {"connector": "elasticsearch-7", "allow-insecure": "true"}, "unknown option 'allow-insecure'"),
    ],
)  # fmt: skip
def test_tables_that_do_not_fit_are_refused(columns: str, options: dict[str, str], message: str) -> None:
    with pytest.raises(MillstreamError, match=message):
        insert(environment(columns, **options), "SELECT * FROM stored")
