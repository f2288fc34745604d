"""Planning of scans and sinks: the features of the connector of a table, and the types of rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from planning_inputs import FakePlanner, table

from millstream.sql.catalog.catalog import ColumnDefinition, StreamTable, TableDefinition, TableDistribution
from millstream.sql.connector.table_connector import TableConnector, TableContext, TableSink, TableSource
from millstream.sql.connectors import registry
from millstream.sql.errors import SqlNotSupported, SqlValidationError
from millstream.sql.expressions.nodes import Apply, Convert
from millstream.sql.logical import nodes as l
from millstream.sql.operators.rank.sort import MaterializeSpec
from millstream.sql.physical.nodes import FORWARD, SINGLE, Operation, distribute_by_hash
from millstream.sql.physical.planning.contract import Settings
from millstream.sql.physical.planning.tables import Tables, materialize
from millstream.sql.types import data_types as t
from millstream.sql.types.changelog_mode import ChangelogMode

COLUMNS = (ColumnDefinition("a", t.INT), ColumnDefinition("b", t.STRING))
DEFINITION = TableDefinition(COLUMNS, {"connector": "planning-test"})
KEYED = replace(DEFINITION, primary_key=("a",))


def use(monkeypatch: pytest.MonkeyPatch, connector: TableConnector) -> None:
    monkeypatch.setitem(registry._CONNECTORS, "planning-test", connector)


def tables(options: Mapping[str, str] | None = None, **settings: object) -> Tables:
    return Tables((options or {}).get, Settings(**settings))  # type: ignore[arg-type]


def scan(definition: TableDefinition = DEFINITION) -> l.Scan:
    return l.Scan(definition.schema, definition, ("c", "d", "orders"))


def reading(schema: t.RowType = DEFINITION.schema, mode: ChangelogMode = ChangelogMode.INSERT_ONLY) -> TableConnector:
    return TableConnector("planning-test", read=lambda _: TableSource("the source", schema, mode, parallelism=3))


def test_a_scan_reads_the_source_of_the_connector(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, reading())
    operation = tables().scan(scan())
    assert (operation.name, operation.source, operation.parallelism) == ("TableSourceScan", "the source", 3)
    assert operation.detail == "table=[[c, d, orders]], fields=[a, b]"
    assert operation.upsert_keys == frozenset()


def test_a_primary_key_is_an_upsert_key(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, reading(KEYED.schema))
    assert tables().scan(scan(KEYED)).upsert_keys == {(0,)}


def test_a_source_of_upserts_is_normalized_by_the_primary_key(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, reading(KEYED.schema, ChangelogMode.UPSERT))
    operation = tables().scan(scan(KEYED))
    assert (operation.name, operation.mode) == ("ChangelogNormalize", ChangelogMode.RETRACT)
    use(monkeypatch, reading(mode=ChangelogMode.UPSERT))
    with pytest.raises(SqlValidationError, match="needs a primary key"):
        tables().scan(scan())


def test_other_types_of_the_source_are_converted(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, reading(t.row_of(["b", "a"], [t.STRING, t.BIGINT], null=False)))
    operation = tables().scan(scan())
    assert operation.name == "Calc"
    first, second = operation.spec.exprs
    assert isinstance(first, Convert)
    assert (first.type, second.index) == (t.INT, 0)


def test_generated_numbers_become_timestamps(monkeypatch: pytest.MonkeyPatch) -> None:
    definition = TableDefinition((ColumnDefinition("ts", t.TimestampType(3)),), DEFINITION.options)
    use(monkeypatch, reading(t.row_of(["ts"], [t.BIGINT], null=False)))
    (expr,) = tables().scan(scan(definition)).spec.exprs
    assert isinstance(expr, Apply)
    assert expr.function == "$PAST"


def test_types_that_cannot_be_converted_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, reading(t.row_of(["a", "b"], [t.ArrayType(t.INT), t.STRING], null=False)))
    with pytest.raises(SqlNotSupported, match="cannot be converted to INT"):
        tables().scan(scan())


def test_a_stream_of_the_program_plans_itself() -> None:
    def origin(detail: str, schema: t.RowType, mode: ChangelogMode, keys: frozenset[tuple[int, ...]]) -> Operation:
        return Operation("Stream", detail, schema, mode=mode, upsert_keys=keys)

    stream = StreamTable(KEYED.schema, origin, primary_key=("a",), mode=ChangelogMode.RETRACT)
    operation = tables().scan(l.Scan(KEYED.schema, stream, ("c", "d", "s")))
    assert (operation.name, operation.mode, operation.upsert_keys) == ("Stream", ChangelogMode.RETRACT, {(0,)})


def test_a_connector_that_only_writes_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, TableConnector("planning-test"))
    with pytest.raises(SqlValidationError, match=r"table 'c.d.orders': connector 'planning-test' cannot be read"):
        tables().scan(scan())


def test_metadata_columns_need_a_connector_with_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    offset = ColumnDefinition("position", t.BIGINT, metadata_key="offset")
    use(monkeypatch, reading())
    with pytest.raises(SqlValidationError, match="has no metadata columns"):
        tables().scan(scan(replace(DEFINITION, columns=(*COLUMNS, offset))))


ROWS = table(a=t.INT, b=t.STRING)


def sink(definition: TableDefinition = DEFINITION, *, overwrite: bool = False, **settings: object) -> Operation:
    node = l.Sink(ROWS.schema, ROWS, definition, ("c", "d", "out"), overwrite=overwrite)
    return tables(**settings).sink(node, lambda before: FakePlanner().plan(ROWS, before=before))


def writing(
    accepts: ChangelogMode = ChangelogMode.INSERT_ONLY, parallelism: int | None = None, *, overwrites: bool = False
) -> TableConnector:
    def write(context: TableContext) -> TableSink:
        return TableSink(f"overwrites: {context.overwrite}", accepts, parallelism)

    return TableConnector("planning-test", write=write, overwrites=overwrites)


def test_a_sink_gets_rows_without_an_exchange(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, writing())
    operation = sink()
    assert (operation.name, operation.sink, operation.distributions) == ("Sink", "overwrites: False", (FORWARD,))
    assert operation.detail == "table=[c.d.out], fields=[a, b]"


@pytest.mark.parametrize(
    ("definition", "parallelism", "distribution"),
    [(KEYED, 2, distribute_by_hash((0,))), (KEYED, None, FORWARD), (DEFINITION, 2, FORWARD)],
)
def test_a_sink_of_another_parallelism_gets_the_rows_of_a_key_in_order(
    monkeypatch: pytest.MonkeyPatch, definition: TableDefinition, parallelism: int | None, distribution: object
) -> None:
    use(monkeypatch, writing(parallelism=parallelism))
    assert sink(definition).distributions == (distribution,)


def test_a_connector_that_only_reads_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, reading())
    with pytest.raises(SqlValidationError, match="cannot be written to"):
        sink()


def test_overwriting_needs_batch_mode_and_a_connector_that_can(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, writing())
    with pytest.raises(SqlValidationError, match="does not support INSERT OVERWRITE"):
        sink(overwrite=True, batch=True)
    use(monkeypatch, writing(overwrites=True))
    with pytest.raises(SqlValidationError, match="needs batch mode"):
        sink(overwrite=True)
    assert sink(overwrite=True, batch=True).sink == "overwrites: True"


def test_a_table_in_buckets_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, writing())
    with pytest.raises(SqlValidationError, match="DISTRIBUTED into buckets"):
        sink(replace(DEFINITION, distribution=TableDistribution("HASH", ("a",), 4)))


def test_a_batch_writes_final_rows_only() -> None:
    updates = Operation("Table", "", ROWS.schema, mode=ChangelogMode.RETRACT)
    operation = materialize(updates, Settings(batch=True))
    assert (type(operation.spec), operation.distributions) == (MaterializeSpec, (SINGLE,))
    assert materialize(updates, Settings()) is updates
    inserts = Operation("Table", "", ROWS.schema)
    assert materialize(inserts, Settings(batch=True)) is inserts
