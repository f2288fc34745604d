"""Connectors without an external system: values, print and blackhole.

Promises: Flink's options, and Flink's output of print.
Does not know: queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from millstream.connector.lookup_cache import Key
from millstream.connectors.blackhole import BlackHoleSink
from millstream.connectors.collection import CollectionSource
from millstream.connectors.printing import PrintSink
from millstream.sql.columns import create_row_type_info
from millstream.sql.connector.lookup import CACHE_OPTIONS, Lookup, LookupRows, TableLookup, read_cache_policy
from millstream.sql.connector.lookup_reload import Reload
from millstream.sql.connector.table_connector import TableConnector, TableContext, TableSink, TableSource
from millstream.sql.connectors.datagen import DATAGEN
from millstream.sql.connectors.printed_rows import TableRowFormat
from millstream.sql.operators.join.whole_tables import read_whole_table
from millstream.sql.types.changelog_mode import ChangelogMode


def _write_print(context: TableContext) -> TableSink:
    context.check(["print-identifier", "standard-error", "sink.parallelism"])
    identifier = context.options.get("print-identifier") or None
    to_stderr = context.options.get("standard-error", "false").lower() == "true"
    sink = PrintSink(TableRowFormat(context.sink_schema), identifier, to_stderr)
    return TableSink(sink, ChangelogMode.RETRACT, context.integer("sink.parallelism"))


def _write_blackhole(context: TableContext) -> TableSink:
    context.check([])
    return TableSink(BlackHoleSink(), ChangelogMode.RETRACT)


_VALUES: dict[str, list[Any]] = {}


def register_values(name: str, rows: list[Any]) -> None:
    """Register rows of the program for tables WITH ('connector' = 'values', 'data-id' = name)."""
    _VALUES[name] = rows


def _find_values(context: TableContext) -> list[Any]:
    context.check(["data-id", "changelog-mode", "disable-lookup", *CACHE_OPTIONS])
    name = context.required("data-id")
    if name not in _VALUES:
        message = f"there are no registered values '{name}'"
        raise context.fail(message, f"call register_values('{name}', rows) first")
    return create_row_type_info(context.schema).conform(list(_VALUES[name]))


def _read_values(context: TableContext) -> TableSource:
    row_kinds = context.options.get("changelog-mode", "I").upper()
    mode = ChangelogMode.INSERT_ONLY if row_kinds == "I" else ChangelogMode.RETRACT
    if "UA" in row_kinds and "UB" not in row_kinds:
        mode = ChangelogMode.UPSERT
    source = CollectionSource(_find_values(context), create_row_type_info(context.schema))
    return TableSource(source, context.schema, mode)


@dataclass(frozen=True)
class ValuesLookup(Lookup):
    """Finds registered rows by the values of key columns; `keys` are column indexes."""

    rows: tuple[Any, ...]
    keys: tuple[int, ...]

    def find(self, keys: Sequence[Key]) -> Mapping[Key, LookupRows]:
        """Return the rows of each key."""
        rows_by_key = self._rows_by_key
        return {key: rows_by_key[key] for key in keys if key in rows_by_key}

    @cached_property
    def _rows_by_key(self) -> dict[Key, list[Any]]:
        rows_by_key: dict[Key, list[Any]] = {}
        for row in self.rows:
            rows_by_key.setdefault(tuple([row[i] for i in self.keys]), []).append(tuple(row))
        return rows_by_key

    def __getstate__(self) -> dict[str, Any]:
        return {"rows": self.rows, "keys": self.keys}


def _create_values_lookup(context: TableContext, keys: tuple[str, ...]) -> TableLookup | None:
    if context.flag("disable-lookup"):
        return None
    policy = read_cache_policy(context)
    if isinstance(policy, Reload):
        return read_whole_table(context, _read_values(context), keys)
    key_indexes = tuple(context.schema.names.index(name) for name in keys)
    lookup = ValuesLookup(tuple(_find_values(context)), key_indexes)
    return TableLookup(lookup, context.schema, policy, context.flag("lookup.async"))


CONNECTORS = (
    DATAGEN,
    TableConnector("values", read=_read_values, lookup=_create_values_lookup),
    TableConnector("print", write=_write_print),
    TableConnector("blackhole", write=_write_blackhole),
)
