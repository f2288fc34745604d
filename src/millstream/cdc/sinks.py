"""Sinks of pipelines: which table connector writes a table, and how the table is created and gets new columns.

Promises: a sink table that is missing is created; a column that it lacks is added, nullable; nothing is ever dropped or
converted.
Does not know: sources; how rows are written. The table connectors do that."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from millstream.cdc.definition import Endpoint
from millstream.cdc.errors import InvalidPipeline
from millstream.cdc.jdbc_tables import prepare_jdbc_table
from millstream.cdc.sources import check_options, required
from millstream.connectors.jdbc.options import JdbcConnectionOptions
from millstream.connectors.lakehouse.evolution import add_delta_columns, add_iceberg_columns
from millstream.connectors.lakehouse.iceberg_catalog import TableLoader
from millstream.sql.arrow_exchange import find_sql_type_of_arrow
from millstream.sql.columns import create_row_type_info
from millstream.sql.types import data_types as t
from millstream.types.factory import RowTypeInfo


@dataclass(frozen=True)
class SinkTable:
    """A table to write: its name `database.table`, its columns and its primary key."""

    name: str
    columns: Mapping[str, t.DataType]
    key: tuple[str, ...]

    @property
    def path(self) -> tuple[str, str]:
        """The name of the database, or of the schema, and of the table."""
        database, _, table = self.name.rpartition(".")
        return database.rpartition(".")[2], table


class PipelineSink(ABC):
    """A sink: options of a table connector for each table."""

    needs_key = True

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = options

    @abstractmethod
    def connector_options(self, table: SinkTable) -> dict[str, str]:
        """Return the options of the table that the rows are inserted into."""

    def prepare(self, table: SinkTable) -> Mapping[str, t.DataType]:
        """Create the table, or add the columns that it lacks; return the columns to write, in order."""
        return table.columns


class ValuesSink(PipelineSink):
    """Prints changes, for tests of a pipeline."""

    needs_key = False

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(options)
        check_options("sink", "values", options, ("print.enabled",))

    def connector_options(self, table: SinkTable) -> dict[str, str]:
        """Return the options of the print connector with the name of the table, or of the blackhole connector."""
        if self._options.get("print.enabled") == "false":
            return {"connector": "blackhole"}
        return {"connector": "print", "print-identifier": table.name}


class KafkaPipelineSink(PipelineSink):
    """Writes messages: to one topic, or to a topic for each table."""

    needs_key = False

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(options)
        known = ("topic", "value.format", "sink.delivery-guarantee", "sink.transactional-id-prefix")
        check_options("sink", "kafka", options, known, "properties.", "debezium-json.", "canal-json.", "maxwell-json.")
        required("sink", options, "properties.bootstrap.servers")

    def connector_options(self, table: SinkTable) -> dict[str, str]:
        """Write changes in Debezium's JSON, unless another format is set."""
        options = {key: value for key, value in self._options.items() if key != "value.format"}
        return {
            "topic": table.name,
            **options,
            "connector": "kafka",
            "format": self._options.get("value.format", "debezium-json"),
        }


class JdbcPipelineSink(PipelineSink):
    """Writes upserts to tables of PostgreSQL, MySQL, MariaDB or SQLite."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(options)
        known = (
            "url", "driver", "username", "password", "sink.buffer-flush.max-rows", "sink.buffer-flush.interval",
            "sink.max-retries", "sink.parallelism", "sink.delivery-guarantee",
        )  # fmt: skip
        check_options("sink", "jdbc", options, known)
        (url,) = required("sink", options, "url")
        others = (options.get(name) for name in ("driver", "username", "password"))
        self._connection = JdbcConnectionOptions(url, *others)

    def connector_options(self, table: SinkTable) -> dict[str, str]:
        """Write exactly once, unless another guarantee is set."""
        return {
            "sink.delivery-guarantee": "exactly-once",
            **self._options,
            "connector": "jdbc",
            "table-name": self._name(table),
        }

    def prepare(self, table: SinkTable) -> Mapping[str, t.DataType]:
        """Create the table, or add the columns that it lacks."""
        prepare_jdbc_table(self._connection, table.path, table.columns, table.key)
        return table.columns

    def _name(self, table: SinkTable) -> str:
        has_databases = self._connection.database() != "sqlite"
        return ".".join(part for part in table.path if part) if has_databases else table.path[1]


class DeltaPipelineSink(PipelineSink):
    """Writes Delta tables, each in the directory `path/database/table`."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(options)
        check_options("sink", "delta", options, ("path", "sink.parallelism"), "storage.")
        required("sink", options, "path")

    def connector_options(self, table: SinkTable) -> dict[str, str]:
        """Merge changes into the table by primary key."""
        options = {key: value for key, value in self._options.items() if key != "path"}
        return {**options, "connector": "delta", "table-path": self._location(table)}

    def prepare(self, table: SinkTable) -> Mapping[str, t.DataType]:
        """Add the columns that the table lacks; the connector creates it."""
        storage = {k.removeprefix("storage."): v for k, v in self._options.items() if k.startswith("storage.")}
        return _with_other_columns(table, add_delta_columns(self._location(table), storage, _row_type(table)))

    def _location(self, table: SinkTable) -> str:
        return "/".join([self._options["path"].rstrip("/"), *(part for part in table.path if part)])


class IcebergPipelineSink(PipelineSink):
    """Writes Iceberg tables of a catalog."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(options)
        known = ("catalog-name", "catalog-type", "uri", "warehouse", "sink.parallelism")
        check_options("sink", "iceberg", options, known, "catalog.properties.")

    def connector_options(self, table: SinkTable) -> dict[str, str]:
        """Merge changes into the table by primary key."""
        options = {k: v for k, v in self._options.items() if not k.startswith("catalog.properties.")}
        properties = {f"catalog.{name}": value for name, value in self._properties().items()}
        database, name = table.path
        path = {"catalog-database": database or "default", "catalog-table": name}
        return {"catalog-name": "pipeline", **options, **properties, **path, "connector": "iceberg"}

    def prepare(self, table: SinkTable) -> Mapping[str, t.DataType]:
        """Add the columns that the table lacks; the connector creates it."""
        names = {"catalog-type": "type", "uri": "uri", "warehouse": "warehouse"}
        properties = {names[key]: value for key, value in self._options.items() if key in names} | self._properties()
        database, name = table.path
        loader = TableLoader.from_catalog(
            self._options.get("catalog-name", "pipeline"), properties, f"{database or 'default'}.{name}"
        )
        return _with_other_columns(table, add_iceberg_columns(loader, _row_type(table)))

    def _properties(self) -> dict[str, str]:
        prefix = "catalog.properties."
        return {k.removeprefix(prefix): v for k, v in self._options.items() if k.startswith(prefix)}


def _row_type(table: SinkTable) -> RowTypeInfo:
    return create_row_type_info(t.row_of(list(table.columns), list(table.columns.values())))


def _with_other_columns(table: SinkTable, existing: pa.Schema | None) -> Mapping[str, t.DataType]:
    """Return the columns in the order of the existing table, with those that only it has."""
    if existing is None:
        return table.columns
    return {field.name: table.columns.get(field.name, find_sql_type_of_arrow(field.type)) for field in existing}


_SINKS: Mapping[str, type[PipelineSink]] = {
    "values": ValuesSink,
    "kafka": KafkaPipelineSink,
    "jdbc": JdbcPipelineSink,
    "delta": DeltaPipelineSink,
    "iceberg": IcebergPipelineSink,
}


def open_sink(endpoint: Endpoint) -> PipelineSink:
    """Return the sink of a pipeline."""
    sink = _SINKS.get(endpoint.type)
    if sink is None:
        message = f"there is no sink of the type {endpoint.type}"
        raise InvalidPipeline(message, hint=f"use one of {', '.join(_SINKS)}")
    return sink(endpoint.options)
