"""Pipeline definitions: accepted and refused ones, patterns of tables, routes, projections."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from millstream.cdc.definition import Route, Transform, parse_pipeline, read_pipeline
from millstream.cdc.errors import InvalidPipeline
from millstream.cdc.projection import output_columns, query, uses_event_type
from millstream.cdc.sinks import open_sink
from millstream.cdc.sources import open_capture
from millstream.cdc.table_names import matches, route, split_patterns

SOURCE = {"type": "mysql", "hostname": "db", "username": "me", "password": "x", "tables": "shop.orders"}
SINK = {"type": "values"}


def test_a_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "pipeline.yaml"
    file.write_text(
        "source:\n  type: mysql\n  name: shop database\n  port: 3307\n  heartbeat: true\n"
        "sink:\n  type: values\n"
        "route:\n  - source-table: shop.a\n    sink-table: ods.a\n    description: one\n"
        "transform:\n  - source-table: shop.a\n    filter: id > 1\n    primary-keys: id, day\n"
        "pipeline:\n  name: copy\n  parallelism: 2\n"
    )
    pipeline = read_pipeline(file)
    assert pipeline.source.options == {"port": "3307", "heartbeat": "true"}
    assert (pipeline.source.name, pipeline.sink.name) == ("shop database", "sink")
    assert pipeline.routes == (Route("shop.a", "ods.a"),)
    assert pipeline.transforms == (Transform("shop.a", None, "id > 1", ("id", "day")),)
    assert (pipeline.name, pipeline.parallelism, pipeline.behavior) == ("copy", 2, "lenient")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ([], "the pipeline definition must be a mapping"),
        ({"source": SOURCE}, "the block sink is missing"),
        ({"source": SOURCE, "sinks": SINK}, "the key sinks, which is not supported; hint: did you mean sink?"),
        ({"source": {"hostname": "db"}, "sink": SINK}, "the block source has no type"),
        ({"source": SOURCE, "sink": SINK, "route": {}}, "the block route must be a list"),
        ({"source": SOURCE, "sink": SINK, "route": [{"source-table": "a.b"}]}, "has no sink-table"),
        (
            {"source": SOURCE, "sink": SINK, "transform": [{"source-table": "a.b", "projektion": "*"}]},
            "did you mean projection?",
        ),
        (
            {"source": SOURCE, "sink": SINK, "pipeline": {"parallelism": "two"}},
            "parallelism must be a positive integer",
        ),
        ({"source": SOURCE, "sink": SINK, "pipeline": {"schema.change.behavior": "evolve"}}, "use one of lenient"),
    ],
)
def test_a_wrong_definition_is_refused(content: Any, words: str) -> None:
    with pytest.raises(InvalidPipeline) as problem:
        parse_pipeline(content)
    assert words in str(problem.value)


def test_wrong_types_and_options_are_refused_before_a_connection_is_opened() -> None:
    def source(**options: str) -> Any:
        return parse_pipeline({"source": {**SOURCE, **options}, "sink": SINK}).source

    with pytest.raises(InvalidPipeline, match="no source of the type oracle; hint: use mysql"):
        open_capture(source(type="oracle"))
    with pytest.raises(InvalidPipeline, match=r"has no option hostnam; hint: did you mean hostname\?"):
        open_capture(source(hostnam="x"))
    with pytest.raises(InvalidPipeline, match=r"scan\.startup\.mode does not accept 'first'"):
        open_capture(source(**{"scan.startup.mode": "first"}))
    with pytest.raises(InvalidPipeline, match="no sink of the type doris; hint: use one of values, kafka"):
        open_sink(parse_pipeline({"source": SOURCE, "sink": {"type": "doris"}}).sink)
    with pytest.raises(InvalidPipeline, match="the sink needs the option url"):
        open_sink(parse_pipeline({"source": SOURCE, "sink": {"type": "jdbc"}}).sink)


@pytest.mark.parametrize(
    ("patterns", "table", "expected"),
    [
        ("shop.orders", "shop.orders", True),
        ("shop.orders", "shop.orders2", False),
        ("shop.orders", "shopXorders", False),
        (r"shop.\.*", "shop.anything", True),
        (r"shop.order_\.*", "shop.customers", False),
        (r"shop_[0-9]+.order_\d{1,3}, web.a", "shop_12.order_123", True),
        (r"shop_[0-9]+.order_\d{1,3}, web.a", "web.a", True),
        (r"(app|web).o\.*", "app.orders", True),
        (r"db.public.\.*", "db.public.t", True),
    ],
)
def test_patterns_select_tables(patterns: str, table: str, *, expected: bool) -> None:
    assert matches(patterns, table) is expected


def test_patterns_are_separated_by_commas_outside_of_brackets() -> None:
    assert split_patterns("a.b, c.d{1,2} ,[e,f].g") == ["a.b", "c.d{1,2}", "[e,f].g"]
    with pytest.raises(InvalidPipeline, match="has no dot between database and table"):
        matches("orders", "shop.orders")


def test_routes_name_sink_tables() -> None:
    routes = [Route(r"shop.o\.*", "ods.orders"), Route(r"shop.\.*", "ods.raw_<>", "<>")]
    assert route(routes, "shop.orders") == ["ods.orders", "ods.raw_orders"]
    assert route(routes, "shop.users") == ["ods.raw_users"]
    assert route(routes, "web.users") == ["web.users"]


def test_projections_name_columns() -> None:
    columns = ["id", "name", "Ort"]
    assert list(output_columns(None, columns)) == columns
    assert output_columns(r"\*, UPPER(name) AS name, id + 1 n", columns) == {
        "id": "`id`",
        "name": "UPPER(name)",
        "Ort": "`Ort`",
        "n": "id + 1",
    }
    assert output_columns("CONCAT(name, ', ', `Ort`) AS both, id", columns) == {
        "both": "CONCAT(name, ', ', `Ort`)",
        "id": "`id`",
    }
    with pytest.raises(InvalidPipeline, match=r"'UPPER\(name\)' of a projection has no name"):
        output_columns("UPPER(name)", columns)


def test_a_transform_is_a_query() -> None:
    text, names = query(Transform("s.t", "id, __table_name__ AS t", "id > 1"), "db.s.t", ["id"], "v")
    assert names == ["id", "t"]
    assert text == (
        "SELECT `id` AS `id`, __table_name__ AS `t` FROM (SELECT *, 'db' AS `__namespace_name__`, "
        "'s' AS `__schema_name__`, 't' AS `__table_name__` FROM `v`) WHERE id > 1"
    )
    assert uses_event_type(Transform("s.t", filter="__data_event_type__ <> '-D'"))
    assert not uses_event_type(None)
