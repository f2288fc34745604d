"""Models: CREATE MODEL and its relatives, ML_PREDICT and ML_EVALUATE with an HTTP server and with Python objects."""

from __future__ import annotations

import json
import re
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any, ClassVar

import pytest

from millstream.errors import MillstreamError, UserError
from millstream.sql.errors import SqlError
from millstream.sql.models import registry
from millstream.sql.models.context_limits import ContextLimit
from millstream.sql.models.provider import ModelProvider, PredictFunction
from millstream.table import DataTypes, EnvironmentSettings, ModelDescriptor, Schema, TableEnvironment, TableResult

pytestmark = pytest.mark.usefixtures("inline_engine")


class ModelServerHandler(BaseHTTPRequestHandler):
    """A server with OpenAI's interface: `failures` is how often a text is answered with status 503 first."""

    requests: ClassVar[list[tuple[str, dict[str, Any], str]]] = []
    failures: ClassVar[dict[str, int]] = {}
    in_flight: ClassVar[list[int]] = [0, 0]
    barrier: ClassVar[threading.Barrier | None] = None

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.requests.append((self.path, body, self.headers["Authorization"]))
        text = body["input"] if "input" in body else body["messages"][-1]["content"]
        if self.barrier is not None:
            self.barrier.wait(10)
        if text == "forbidden":
            self._respond(401, {"error": "no such key"})
        elif self.failures.get(text, 0) > 0:
            self.failures[text] -= 1
            self._respond(503, {"error": "busy"}, {"Retry-After-Ms": "1"})
        elif "input" in body:
            self._respond(200, {"data": [{"embedding": [float(len(text)), 0.5]}]})
        else:
            count = body.get("n", 1)
            self._respond(200, {"choices": [{"message": {"content": f"{text}!{i}"}} for i in range(count)]})

    def _respond(self, status: int, body: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Do not write to stderr."""


@pytest.fixture
def server() -> Iterator[str]:
    ModelServerHandler.requests.clear()
    ModelServerHandler.failures.clear()
    ModelServerHandler.barrier = None
    with ThreadingHTTPServer(("127.0.0.1", 0), ModelServerHandler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}/v1"
        running.shutdown()
        thread.join()


def create_chat(t_env: TableEnvironment, server: str, output: str = "content STRING", **options: str) -> None:
    settings = {
        "provider": "openai", "endpoint": f"{server}/chat/completions", "api-key": "k-123", "model": "small", **options,
    }  # fmt: skip
    listed = ", ".join(f"'{key.replace('_', '-')}' = '{value}'" for key, value in settings.items())
    t_env.execute_sql(f"CREATE MODEL chat INPUT (`input` STRING) OUTPUT ({output}) WITH ({listed})")


def create_texts(t_env: TableEnvironment, *texts: str | None) -> None:
    rows = [(i, text) for i, text in enumerate(texts)]
    types = DataTypes.ROW([DataTypes.FIELD("id", DataTypes.INT()), DataTypes.FIELD("content", DataTypes.STRING())])
    t_env.create_temporary_view("texts", t_env.from_elements(rows, types))


def changelog(result: TableResult) -> list[tuple[Any, ...]]:
    with result.collect() as rows:
        return [(str(row.get_row_kind()), *row) for row in rows]


PREDICT = "SELECT * FROM ML_PREDICT(TABLE texts, MODEL chat, DESCRIPTOR(content){})"


# ------------------------------------------------------------------------------------------------------ definitions


def rows_of(t_env: TableEnvironment, statement: str) -> list[tuple[Any, ...]]:
    with t_env.execute_sql(statement).collect() as rows:
        return [tuple(row) for row in rows]


def test_a_model_is_created_described_altered_and_dropped(t_env: TableEnvironment) -> None:
    t_env.execute_sql(
        "CREATE MODEL m INPUT (a INT COMMENT 'feature', b STRING NOT NULL) OUTPUT (p DOUBLE) COMMENT 'a model' "
        "WITH ('provider' = 'openai', 'api-key' = 'k-123')"
    )
    assert rows_of(t_env, "DESCRIBE MODEL m") == [
        ("a", "INT", True, True, "feature"),
        ("b", "STRING", False, True, None),
        ("p", "DOUBLE", True, False, None),
    ]
    t_env.execute_sql("ALTER MODEL m SET ('n' = '2', 'seed' = '1')")
    t_env.execute_sql("ALTER MODEL m RESET ('seed', 'unknown')")
    t_env.execute_sql("ALTER MODEL IF EXISTS nothing SET ('n' = '2')")
    t_env.execute_sql("ALTER MODEL m RENAME TO m2")
    assert rows_of(t_env, "SHOW MODELS LIKE 'm%'") == [("m2",)]
    assert rows_of(t_env, "SHOW CREATE MODEL m2") == [
        (
            "CREATE MODEL `default_catalog`.`default_database`.`m2`\n"
            "INPUT (`a` INT COMMENT 'feature', `b` VARCHAR(2147483647) NOT NULL)\n"
            "OUTPUT (`p` DOUBLE)\n"
            "COMMENT 'a model'\n"
            "WITH (\n  'api-key' = '******',\n  'n' = '2',\n  'provider' = 'openai'\n)\n",
        )
    ]
    t_env.execute_sql("CREATE TEMPORARY MODEL m2 INPUT (x INT) OUTPUT (y INT) WITH ('provider' = 'python')")
    assert rows_of(t_env, "DESC MODEL m2")[0][0] == "x"
    with pytest.raises(SqlError, match="write DROP TEMPORARY MODEL"):
        t_env.execute_sql("DROP MODEL m2")
    t_env.execute_sql("DROP TEMPORARY MODEL m2")
    t_env.execute_sql("DROP MODEL m2")
    t_env.execute_sql("DROP MODEL IF EXISTS m2")
    assert rows_of(t_env, "SHOW MODELS IN default_database") == []


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("DROP MODEL chap", "there is no model 'chap' .*did you mean 'chat'"),
        ("CREATE MODEL chat INPUT (a INT) OUTPUT (b INT) WITH ('provider' = 'x')", "there is a model .*chat' already"),
        ("CREATE MODEL m2 INPUT (a INT) OUTPUT (b INT)", "has no options"),
        ("CREATE MODEL m2 INPUT (a INT, a INT) OUTPUT (b INT) WITH ('a' = 'b')", "column 'a' is defined twice"),
        ("SELECT * FROM ML_PREDICT(TABLE texts, MODEL nothing, DESCRIPTOR(content))", "there is no model 'nothing'"),
        ("SELECT * FROM ML_PREDICT(TABLE texts, MODEL chat, DESCRIPTOR(id, content))", "has 1 input columns, not 2"),
        ("SELECT * FROM ML_PREDICT(TABLE texts, MODEL chat, DESCRIPTOR(id))", "'id' of type INT cannot be assigned"),
        ("SELECT * FROM ML_PREDICT(TABLE texts, MODEL chat, DESCRIPTOR(it))", "the table has no column 'it'"),
        ("SELECT * FROM ML_PREDICT(TABLE texts, DESCRIPTOR(id), MODEL chat)", "second argument .* must be a model"),
        (PREDICT.format(", MAP['async', 'false']"), "cannot be called in synchronous mode"),
        (PREDICT.format(", MAP['max-concurrent-operations', '0']"), "at least 1"),
        (PREDICT.format(", MAP['asink', 'true']"), "CONFIG has no option 'asink'"),
        (
            "SELECT * FROM ML_PREDICT(TABLE (SELECT content, COUNT(*) AS n FROM texts GROUP BY content), "
            "MODEL chat, DESCRIPTOR(content))",
            "needs an insert-only table",
        ),
    ],
)
def test_an_invalid_statement_is_refused(t_env: TableEnvironment, statement: str, message: str) -> None:
    create_chat(t_env, "http://127.0.0.1:1")
    create_texts(t_env, "a")
    with pytest.raises(SqlError) as refused:
        t_env.execute_sql(statement)
    assert re.search(message, " ".join(str(refused.value).split()))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"provider": "openaj"}, "there is no provider 'openaj'"),
        ({"temprature": "1"}, "unknown option 'temprature'"),
        ({"endpoint": "http://127.0.0.1/v1/images"}, "ends neither with"),
        ({"endpoint": "file:///chat/completions"}, "must start with http"),
        ({"n": "many"}, "option 'n' must be an integer, not 'many'"),
        ({"error_handling_strategy": "panic"}, "must be retry, failover, ignore, not 'panic'"),
    ],
)
def test_options_of_openai_are_checked_when_a_query_is_planned(
    t_env: TableEnvironment, options: dict[str, str], message: str
) -> None:
    create_chat(t_env, "http://127.0.0.1:1", **options)
    create_texts(t_env, "a")
    with pytest.raises(SqlError, match=message):
        t_env.execute_sql(PREDICT.format(""))


# ---------------------------------------------------------------------------------------------------- HTTP provider


def test_chat_completions_are_added_to_the_rows(t_env: TableEnvironment, server: str) -> None:
    create_chat(t_env, server, temperature="0.5", stop="a,b", response_format="json_object", system_prompt="Be short.")
    create_texts(t_env, "one", None, "two")
    assert changelog(t_env.execute_sql(PREDICT.format(""))) == [
        ("+I", 0, "one", "one!0"), ("+I", 2, "two", "two!0"),
    ]  # fmt: skip
    path, body, authorization = sorted(ModelServerHandler.requests, key=lambda request: str(request[1]))[0]
    assert (path, authorization) == ("/v1/chat/completions", "Bearer k-123")
    assert body == {
        "model": "small", "temperature": 0.5, "stop": ["a", "b"], "response_format": {"type": "json_object"},
        "messages": [{"role": "system", "content": "Be short."}, {"role": "user", "content": "one"}],
    }  # fmt: skip


def test_names_of_predictions_are_unique_and_named_arguments_are_taken(t_env: TableEnvironment, server: str) -> None:
    create_chat(t_env, server, n="2")
    create_texts(t_env, "x")
    table = t_env.sql_query(
        "SELECT * FROM ML_PREDICT(INPUT => TABLE texts, MODEL => MODEL chat, ARGS => DESCRIPTOR(content), "
        "CONFIG => MAP['async', 'true', 'timeout', '100s'])"
    )
    assert table.get_schema().get_field_names() == ["id", "content", "content0"]
    assert changelog(table.execute()) == [("+I", 0, "x", "x!0"), ("+I", 0, "x", "x!1")]


def test_several_requests_are_in_flight(t_env: TableEnvironment, server: str) -> None:
    create_chat(t_env, server)
    create_texts(t_env, "a", "b", "c")
    ModelServerHandler.barrier = threading.Barrier(3)  # a request is answered when three have arrived
    t_env.get_config().set("table.exec.async-ml-predict.max-concurrent-operations", "3")
    assert [row[3] for row in changelog(t_env.execute_sql(PREDICT.format("")))] == ["a!0", "b!0", "c!0"]


def test_embeddings_are_arrays(t_env: TableEnvironment, server: str) -> None:
    t_env.execute_sql(
        "CREATE MODEL vectors INPUT (t STRING) OUTPUT (v ARRAY<FLOAT>) WITH ('provider' = 'openai', "
        f"'endpoint' = '{server}/embeddings/', 'api-key' = 'k', 'model' = 'e', 'dimension' = '2')"
    )
    create_texts(t_env, "abc")
    query = "SELECT v FROM ML_PREDICT(TABLE texts, MODEL vectors, DESCRIPTOR(content))"
    assert changelog(t_env.execute_sql(query)) == [("+I", [3.0, 0.5])]
    assert ModelServerHandler.requests[0][1] == {
        "model": "e",
        "encoding_format": "float",
        "dimensions": 2,
        "input": "abc",
    }


def test_a_request_to_a_busy_server_is_retried(t_env: TableEnvironment, server: str) -> None:
    create_chat(t_env, server, retry_num="2")
    create_texts(t_env, "slow")
    ModelServerHandler.failures["slow"] = 2
    assert changelog(t_env.execute_sql(PREDICT.format(""))) == [("+I", 0, "slow", "slow!0")]
    assert len(ModelServerHandler.requests) == 3


def test_an_error_fails_the_job_without_the_key(t_env: TableEnvironment, server: str) -> None:
    create_chat(t_env, server, retry_num="0")
    create_texts(t_env, "forbidden")
    with pytest.raises(MillstreamError, match="HTTP status 401") as failed:
        changelog(t_env.execute_sql(PREDICT.format("")))
    assert "k-123" not in str(failed.value)


@pytest.mark.parametrize(
    "options",
    [{"error_handling_strategy": "ignore"}, {"retry_num": "1", "retry_fallback_strategy": "IGNORE"}],
)
def test_an_ignored_error_is_a_row_of_metadata(t_env: TableEnvironment, server: str, options: dict[str, str]) -> None:
    output = (
        "answer STRING, `error-string` STRING METADATA VIRTUAL, `http-status-code` INT METADATA VIRTUAL, "
        "`http-headers-map` MAP<STRING, ARRAY<STRING>> METADATA VIRTUAL"
    )
    create_chat(t_env, server, output, **options)
    create_texts(t_env, "fine", "forbidden")
    fine, failed = changelog(t_env.execute_sql(PREDICT.format("")))
    assert fine[3:] == ("fine!0", None, None, None)
    assert (failed[3], failed[5]) == (None, 401)
    assert "no such key" in failed[4]
    assert failed[6]["content-length"] == ["24"]


def test_an_ignored_error_without_metadata_drops_the_row(t_env: TableEnvironment, server: str) -> None:
    create_chat(t_env, server, error_handling_strategy="ignore")
    create_texts(t_env, "forbidden", "fine")
    assert changelog(t_env.execute_sql(PREDICT.format(""))) == [("+I", 1, "fine", "fine!0")]


class Letters:
    """An encoding in which each letter is a token."""

    def encode_ordinary(self, text: str) -> list[int]:
        return list(map(ord, text))

    def decode(self, tokens: list[int]) -> str:
        return "".join(map(chr, tokens))


@pytest.mark.parametrize(
    ("action", "shortened"),
    [("truncated-tail", "ab"), ("truncated-tail-log", "ab"), ("truncated-head", "cd"), ("skipped", None)],
)
def test_a_long_text_is_shortened_or_skipped(action: str, shortened: str | None) -> None:
    assert ContextLimit(2, action).apply("abcd", Letters()) == shortened
    assert ContextLimit(4, action).apply("abcd", Letters()) == "abcd"


# -------------------------------------------------------------------------------------------------- Python provider


class Doubler:
    """A model as scikit-learn's: `predict` takes an array of features."""

    calls = 0

    def predict(self, features: Any) -> Any:
        Doubler.calls += 1
        return features.sum(axis=1) * 2.0

    def predict_proba(self, features: Any) -> Any:
        import numpy as np

        return np.stack([features[:, 0] / 10, 1 - features[:, 0] / 10], axis=1)


class WordCounts:
    """A model of texts, such as a pipeline with a vectorizer."""

    def predict(self, texts: list[str]) -> list[int]:
        assert isinstance(texts, list)
        return [len(text.split()) for text in texts]


class Session:
    """A session with ONNX's interface: one input of floats, two outputs."""

    class Input:
        name, type = "X", "tensor(float)"

    def get_inputs(self) -> list[Any]:
        return [self.Input()]

    def run(self, names: Any, feed: dict[str, Any]) -> list[Any]:
        assert feed["X"].dtype == "float32"
        return [feed["X"][:, :1].astype("int64"), feed["X"].sum(axis=1)]


class Shout:
    """The predict function of a provider of another package."""

    def eval(self, text: str) -> list[str]:
        return [f"{text}!"]


def add(a: float, b: float) -> float:
    return a + b


async def subtract(a: float, b: float) -> float:
    return a - b


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("my_models")
    for member in (Doubler, WordCounts, Session, add, subtract):
        setattr(module, member.__name__, member)
    module.number = 3  # type: ignore[attr-defined]
    module.SHOUT = ModelProvider("shout", lambda context: PredictFunction(Shout()))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "my_models", module)


@pytest.mark.usefixtures("models")
@pytest.mark.parametrize(
    ("name", "output", "method", "expected"),
    [
        ("Doubler", "p DOUBLE", None, [(6.0,), (14.0,)]),
        ("Doubler", "no DOUBLE, yes DOUBLE", "predict_proba", [(0.1, 0.9), (0.3, 0.7)]),
        ("Session", "k BIGINT, total DOUBLE", None, [(1, 3.0), (3, 7.0)]),
        ("add", "p DOUBLE", None, [(3.0,), (7.0,)]),
        ("subtract", "p DOUBLE", None, [(-1.0,), (-1.0,)]),
    ],
)
@pytest.mark.parametrize("batch", [False, True])
def test_python_objects_predict(
    name: str, output: str, method: str | None, expected: list[tuple[Any, ...]], batch: bool
) -> None:
    settings = EnvironmentSettings.in_batch_mode() if batch else EnvironmentSettings.in_streaming_mode()
    t_env = TableEnvironment.create(settings)
    t_env.get_config().set("parallelism.default", "1")
    extra = "" if method is None else f", 'method' = '{method}'"
    t_env.execute_sql(
        f"CREATE MODEL m INPUT (a DOUBLE, b DOUBLE) OUTPUT ({output}) "
        f"WITH ('provider' = 'python', 'object' = 'my_models.{name}'{extra})"
    )
    t_env.create_temporary_view("t", t_env.from_elements([(1, 2), (3, 4)], ["x", "y"]))
    query = "SELECT * FROM ML_PREDICT(TABLE t, MODEL m, DESCRIPTOR(x, y))"
    assert [row[3:] for row in changelog(t_env.execute_sql(query))] == expected


@pytest.mark.usefixtures("models")
def test_a_model_of_texts_gets_a_list(t_env: TableEnvironment) -> None:
    t_env.execute_sql(
        "CREATE MODEL chat INPUT (a STRING) OUTPUT (n INT) WITH ('provider' = 'python', "
        "'object' = 'my_models.WordCounts')"
    )
    create_texts(t_env, "a b", "c")
    Doubler.calls = 0
    assert [row[3] for row in changelog(t_env.execute_sql(PREDICT.format("")))] == [2, 1]


@pytest.mark.usefixtures("models")
@pytest.mark.parametrize(
    ("path", "message"),
    [("my_models.nothing", "cannot be imported"), ("my_models.number", "it is a int"), ("add", "cannot be imported")],
)
def test_an_object_that_is_no_model_is_refused(t_env: TableEnvironment, path: str, message: str) -> None:
    t_env.execute_sql(
        f"CREATE MODEL chat INPUT (a STRING) OUTPUT (n INT) WITH ('provider' = 'python', 'object' = '{path}')"
    )
    create_texts(t_env, "a")
    with pytest.raises(SqlError, match=message):
        t_env.execute_sql(PREDICT.format(""))


@pytest.mark.usefixtures("models")
def test_a_package_can_offer_a_provider(t_env: TableEnvironment, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = EntryPoint("shout", "my_models:SHOUT", "millstream.model_providers")
    monkeypatch.setattr(registry, "entry_points", lambda group: [entry] if group == entry.group else [])
    t_env.execute_sql("CREATE MODEL chat INPUT (a STRING) OUTPUT (b STRING) WITH ('provider' = 'shout')")
    create_texts(t_env, "a")
    assert [row[3] for row in changelog(t_env.execute_sql(PREDICT.format("")))] == ["a!"]


@pytest.mark.usefixtures("models")
def test_an_error_of_the_model_names_it(t_env: TableEnvironment) -> None:
    t_env.execute_sql(
        "CREATE MODEL chat INPUT (a STRING) OUTPUT (n INT) WITH ('provider' = 'python', "
        "'object' = 'my_models.Doubler', 'method' = 'predict')"
    )
    create_texts(t_env, "a")
    with pytest.raises(UserError, match="chat"):
        changelog(t_env.execute_sql(PREDICT.format("")))


# --------------------------------------------------------------------------------------------------------- evaluate


@pytest.mark.usefixtures("models")
@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ("regression", {"mean_absolute_error": 1.0, "mean_squared_error": 2.0, "r2_score": 7 / 9}),
        ("classification", {"accuracy": 0.5, "precision": 1 / 3, "recall": 1 / 3, "f1_score": 1 / 3}),
        ("clustering", {"purity": 1.0, "rand_index": 1.0}),
        ("text_generation", {"exact_match": 0.5}),
    ],
)
def test_predictions_are_compared_with_labels(task: str, expected: dict[str, float]) -> None:
    t_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    t_env.execute_sql(
        "CREATE MODEL m INPUT (a DOUBLE, b DOUBLE) OUTPUT (p DOUBLE) "
        "WITH ('provider' = 'python', 'object' = 'my_models.add')"
    )
    rows = [(1.0, 2.0, 3.0), (3.0, 4.0, 9.0)]  # the model predicts 3 and 7
    t_env.create_temporary_view("t", t_env.from_elements(rows, ["a", "b", "label"]))
    query = f"SELECT * FROM ML_EVALUATE(TABLE t, MODEL m, DESCRIPTOR(label), DESCRIPTOR(a, b), '{task}')"
    ((_, metrics),) = changelog(t_env.execute_sql(query))
    assert {key: metrics[key] for key in expected} == pytest.approx(expected)


@pytest.mark.usefixtures("models")
def test_an_unknown_task_is_refused(t_env: TableEnvironment) -> None:
    t_env.execute_sql(
        "CREATE MODEL m INPUT (a DOUBLE) OUTPUT (p DOUBLE) WITH ('provider' = 'python', 'object' = 'my_models.Doubler')"
    )
    t_env.create_temporary_view("t", t_env.from_elements([(1.0, 2.0)], ["a", "b"]))
    with pytest.raises(SqlError, match="must be one of regression, classification"):
        t_env.execute_sql("SELECT * FROM ML_EVALUATE(TABLE t, MODEL m, DESCRIPTOR(b), DESCRIPTOR(a), 'guess')")


# -------------------------------------------------------------------------------------------------------- Table API


@pytest.mark.usefixtures("models")
def test_the_table_api_creates_models_and_predicts(t_env: TableEnvironment) -> None:
    descriptor = (
        ModelDescriptor.for_provider("python")
        .input_schema(Schema.new_builder().column("a", DataTypes.DOUBLE()).column("b", DataTypes.DOUBLE()).build())
        .output_schema(Schema.new_builder().column("p", DataTypes.DOUBLE()).build())
        .option("object", "my_models.add")
        .comment("a sum")
        .build()
    )
    t_env.create_model("m", descriptor)
    t_env.create_model("m", descriptor, ignore_if_exists=True)
    t_env.create_temporary_model("temporary", descriptor)
    assert (t_env.list_models(), t_env.list_temporary_models()) == (["m", "temporary"], ["temporary"])
    table = t_env.from_elements([(1.0, 2.0)], ["x", "y"])
    for model in (t_env.from_model("m"), t_env.from_model(descriptor)):
        assert model.get_resolved_output_schema().get_column_names() == ["p"]
        assert changelog(model.predict(table, ["x", "y"]).execute()) == [("+I", 1.0, 2.0, 3.0)]
    assert t_env.drop_temporary_model("temporary")
    assert t_env.drop_model("m")
    assert not t_env.drop_model("m")
    assert t_env.list_models() == []
