"""New columns of lakehouse tables.

Promises: columns that a table lacks are added, nullable, at its end; nothing else is changed.
Does not know: why there are new columns."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from millstream.connectors.lakehouse.columns import table_schema
from millstream.connectors.lakehouse.delta_commits import deltalake
from millstream.connectors.lakehouse.delta_sink import delta_schema
from millstream.connectors.lakehouse.iceberg_catalog import TableLoader, pyiceberg
from millstream.connectors.lakehouse.iceberg_sink import iceberg_field
from millstream.files.errors import ConnectorStorageFailure
from millstream.types.factory import RowTypeInfo


def add_delta_columns(location: str, storage: Mapping[str, str], row_type: RowTypeInfo) -> pa.Schema | None:
    """Add the columns of a row type that a Delta table lacks; return its columns, None if there is no table."""
    package, options = deltalake(), dict(storage) or None
    try:
        if not package.DeltaTable.is_deltatable(location, storage_options=options):
            return None
        table = package.DeltaTable(location, storage_options=options)
        existing = pa.schema(table.schema().to_arrow())
        new = [field.with_nullable(True) for field in delta_schema(row_type) if field.name not in existing.names]
        if new:
            table.alter.add_columns(package.Schema.from_arrow(pa.schema(new)).fields)
        return pa.schema([*existing, *new])
    except (package.exceptions.DeltaError, OSError) as problem:
        raise ConnectorStorageFailure(location, "change", problem) from problem


def add_iceberg_columns(loader: TableLoader, row_type: RowTypeInfo) -> pa.Schema | None:
    """Add the columns of a row type that an Iceberg table lacks; return its columns, None if there is no table."""
    arrow = pyiceberg("io.pyarrow")
    with loader.open_table() as (_, table):
        if table is None:
            return None
        existing = arrow.schema_to_pyarrow(table.schema(), include_field_ids=False)
        new = [
            iceberg_field(field).with_nullable(True)
            for field in table_schema(row_type)
            if field.name not in existing.names
        ]
        if new:
            with table.update_schema() as update:
                update.union_by_name(pa.schema([*existing, *new]))
        return pa.schema([*existing, *new])
