"""The columns of the streams that tables are converted to.

Promises: a table is converted to a target by position, with the implicit casts of INSERT. Another number of columns or
an incompatible type is refused before anything runs.
Does not know: streams."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from millstream.sql.catalog.catalog import ColumnDefinition, TableDefinition
from millstream.sql.columns import create_row_type_info
from millstream.sql.errors import SqlValidationError
from millstream.sql.expressions.nodes import Convert
from millstream.sql.logical import nodes as l
from millstream.sql.logical.bind.inserts import bind_insert
from millstream.sql.types import data_types as t
from millstream.table.bridging import find_sql_type
from millstream.table.schema import Schema
from millstream.types.composite_types import StructTypeInfo
from millstream.types.factory import TypeInformation
from millstream.types.row import Row

_STREAM = ("target stream",)


def project_to_schema(plan: l.Plan, schema: Schema) -> tuple[l.Plan, int | None]:
    """Project a table to the columns of a schema; a schema without physical columns keeps the columns of the table.

    Returns:
        The plan, and the index of the metadata column `rowtime`, which becomes the timestamp of the records.

    Raises:
        SqlValidationError: If the columns do not fit, or the primary key names another column or one with NULLs.

    """
    columns = _find_persisted_columns(schema)
    if not any(column.is_physical for column in columns):
        metadata = [column.name for column in columns]
        derived = [ColumnDefinition(f.name, f.data_type) for f in plan.schema.fields if f.name not in metadata]
        columns = [*derived, *columns]
    types = {column.name: column.type for column in columns}
    for name in schema._key:
        if name not in types or types[name].null:
            problem = "is nullable" if name in types else "is not a column of the schema"
            message = f"the primary key contains '{name}', which {problem}"
            raise SqlValidationError(message, hint="declare the column in the schema as DataTypes...not_null()")
    rowtime_columns = [i for i, column in enumerate(columns) if column.metadata_key is not None]
    return _project(plan, columns), rowtime_columns[0] if rowtime_columns else None


def _find_persisted_columns(schema: Schema) -> list[ColumnDefinition]:
    """Return the columns that are written: physical columns, and the metadata column `rowtime`."""
    columns = []
    for name, data_type, expr, metadata_key, is_virtual in schema._columns:
        if expr is not None or is_virtual or data_type is None:
            continue
        if metadata_key not in (None, "rowtime"):
            message = f"the target schema has the metadata column '{name}' ('{metadata_key}')"
            raise SqlValidationError(message, hint="a stream has only the metadata 'rowtime'")
        columns.append(ColumnDefinition(name, data_type, None, metadata_key))
    return columns


def create_column_remover(schema: t.RowType, index: int) -> tuple[Callable[[Row], Row], TypeInformation]:
    """Return a function that removes a column from a row, and the type of the remaining row."""
    names = [name for i, name in enumerate(schema.names) if i != index]
    row_type = t.row_of(names, [data_type for i, data_type in enumerate(schema.types) if i != index], null=False)

    def remove_column(row: Row) -> Row:
        return Row._from(names, [value for i, value in enumerate(row._values) if i != index], row._row_kind)

    return remove_column, create_row_type_info(row_type)


def project_to_type(plan: l.Plan, type_info: TypeInformation) -> l.Plan:
    """Project a table to the fields of a type: those of rows and tuples, or one value."""
    field_types: Sequence[t.DataType]
    if isinstance(type_info, StructTypeInfo):
        names, field_types = list(type_info.field_names), [find_sql_type(field) for field in type_info.field_types]
    else:
        names, field_types = ["f0"], [find_sql_type(type_info)]
    if len(field_types) == len(plan.schema):
        field_types = [
            _choose_target_type(source, target) for source, target in zip(plan.schema.types, field_types, strict=True)
        ]
    return _project(plan, [ColumnDefinition(*column) for column in zip(names, field_types, strict=True)])


def project_to_row_type(plan: l.Plan, row_type: t.RowType) -> l.Plan:
    """Cast the columns of a table to the fields of a row type."""
    if len(plan.schema) != len(row_type):
        message = f"the elements have {len(plan.schema)} columns, but the schema has {len(row_type)}"
        raise SqlValidationError(message)
    values = [
        ref if ref.type.same(data_type) else Convert(data_type, ref)
        for ref, data_type in zip(plan.refs(), row_type.types, strict=True)
    ]
    return l.project(plan, values, row_type.names)


def _choose_target_type(source: t.DataType, target: t.DataType) -> t.DataType:
    """Return the type of a column of the stream. Type information has no precision and no type for any object."""
    has_no_precision = isinstance(target, t.RawType | t.DecimalType | t.TimestampType | t.LocalZonedTimestampType)
    return source if isinstance(target, t.RawType) or (has_no_precision and type(source) is type(target)) else target


def _project(plan: l.Plan, columns: Sequence[ColumnDefinition]) -> l.Plan:
    sink = bind_insert(_STREAM, TableDefinition(tuple(columns), {}), plan, ())  # type: ignore[arg-type]
    assert isinstance(sink, l.Sink)
    return sink.input
