"""ANALYZE TABLE: computes statistics of a table or of its partitions, and registers them in the catalog.

Promises: Flink's statistics: the row count and, for columns, ndv, nullCount, avgLen, maxLen, minValue, maxValue and
valueCount where the type has them. One batch query reads the table.
Does not know: who reads the statistics. Planning does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from millstream.sql.catalog.catalog import TableDefinition
from millstream.sql.ddl.partitions import format_partition
from millstream.sql.errors import CatalogError, SqlNotSupported, SqlValidationError, nearest
from millstream.sql.logical.bind.queries import QueryBinder
from millstream.sql.syntax import parse_query
from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t
from millstream.table.catalog.statistics import CatalogColumnStatistics, CatalogTableStatistics

if TYPE_CHECKING:
    from millstream.table.planning_session import PlanningSession

_ORDERED = (t.NumericType, t.DateType, t.TimeType, t.TimestampType, t.LocalZonedTimestampType)


def analyze_table(session: PlanningSession, node: s.Analyze) -> None:
    """Execute ANALYZE TABLE."""
    if not session._is_batch():
        message = "ANALYZE TABLE needs batch mode"
        raise SqlNotSupported(message, at=node.at, hint="SET 'execution.runtime-mode' = 'batch'")
    full_name, table = session._catalogs.table(node.table, node.table_at)
    if not isinstance(table, TableDefinition):
        message = f"'{'.'.join(node.table)}' is not a table: statistics of views and streams cannot be registered"
        raise SqlValidationError(message, at=node.table_at)
    _check_partition(node, table)
    columns = _choose_columns(node, table)
    partition_columns = table.partitions if node.partition else ()
    items = [(column, statistic, sql) for column in columns for statistic, sql in _compute_statistics(column, table)]
    select = [*(_quote(name) for name in partition_columns), "COUNT(*)", *(sql for _, _, sql in items)]
    query = f"SELECT {', '.join(select)} FROM {'.'.join(map(_quote, full_name))}"
    if partition_columns:
        query = f"{query} GROUP BY {', '.join(map(_quote, partition_columns))}"
    with session._collect(QueryBinder(session._session()).query(parse_query(query))).collect() as results:
        rows = [list(row) for row in results]
    partition_values = {key: str(value.value) for key, value in node.partition if isinstance(value, s.Literal)}
    notes, width = session._catalogs.notes(full_name), len(partition_columns)
    is_empty = True
    for row in rows:
        values = dict(zip(partition_columns, map(str, row[:width]), strict=True))
        if any(values[key] != value for key, value in partition_values.items()):
            continue
        is_empty = False
        spec = frozenset(values.items()) if partition_columns else None
        if spec is not None:
            notes.partitions.setdefault(spec, ({}, None))
        notes.statistics[spec] = CatalogTableStatistics(row[width], -1, -1, -1)
        if columns:
            notes.column_statistics[spec] = CatalogColumnStatistics(_group_by_column(items, row[width + 1 :]))
    if partition_values and is_empty:
        partition = format_partition(
            table, frozenset({**dict.fromkeys(table.partitions, "*"), **partition_values}.items())
        )
        message = f"table '{'.'.join(node.table)}' has no partition {partition}"
        raise CatalogError(message, at=node.table_at, hint="see SHOW PARTITIONS")


def _check_partition(node: s.Analyze, table: TableDefinition) -> None:
    name = ".".join(node.table)
    if node.partition and not table.partitions:
        message = f"table '{name}' is not partitioned"
        raise SqlValidationError(message, at=node.table_at, hint="leave out PARTITION")
    if table.partitions and not node.partition:
        message = f"table '{name}' is partitioned: ANALYZE TABLE needs PARTITION"
        hint = f"for all partitions write PARTITION ({', '.join(table.partitions)})"
        raise SqlValidationError(message, at=node.table_at, hint=hint)
    for key, value in node.partition:
        if key not in table.partitions:
            message = f"'{key}' is not a partition column of '{name}'"
            raise SqlValidationError(message, at=node.table_at, hint=nearest(key, table.partitions))
        if value is not None and not isinstance(value, s.Literal):
            message = f"the value of '{key}' must be a literal"
            raise SqlValidationError(message, at=value.at)


def _choose_columns(node: s.Analyze, table: TableDefinition) -> list[str]:
    physical = list(table.physical.names)
    if node.columns is None:
        return physical
    for column in node.columns:
        if column not in physical:
            message = f"'{column}' is not a physical column of '{'.'.join(node.table)}'"
            raise SqlValidationError(message, at=node.table_at, hint=nearest(column, physical))
    return list(node.columns)


def _compute_statistics(column: str, table: TableDefinition) -> Sequence[tuple[str, str]]:
    """Return the statistics of a column that its type has, with the SQL that computes them."""
    name = _quote(column)
    data_type = table.physical.types[table.physical.names.index(column)]
    statistics = [("nullCount", f"COUNT(*) - COUNT({name})")]
    if isinstance(data_type, t.BooleanType):
        statistics += [("trueCount", f"COUNT(*) FILTER (WHERE {name})")]
        statistics += [("falseCount", f"COUNT(*) FILTER (WHERE NOT {name})")]
    elif isinstance(data_type, t.CharType | t.VarCharType):
        statistics += [("ndv", f"COUNT(DISTINCT {name})")]
        statistics += [("avgLen", f"AVG(CAST(CHAR_LENGTH({name}) AS DOUBLE))"), ("maxLen", f"MAX(CHAR_LENGTH({name}))")]
    elif isinstance(data_type, _ORDERED):
        statistics += [("ndv", f"COUNT(DISTINCT {name})"), ("minValue", f"MIN({name})"), ("maxValue", f"MAX({name})")]
    return statistics


def _group_by_column(items: Sequence[tuple[str, str, str]], values: Sequence[Any]) -> dict[str, dict[str, Any]]:
    """Return the statistics of each column; the counts of a BOOLEAN column become its valueCount."""
    by_column: dict[str, dict[str, Any]] = {}
    for (column, statistic, _), value in zip(items, values, strict=True):
        by_column.setdefault(column, {})[statistic] = value
    for statistics in by_column.values():
        if "trueCount" in statistics:
            statistics["valueCount"] = {True: statistics.pop("trueCount"), False: statistics.pop("falseCount")}
    return by_column


def _quote(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
