"""Keyed state as a table: 'connector' = 'savepoint'.

Promises: the options of Flink's State Processor API. The primary key is the key of the state, each other column is one
keyed state of the operator: ARRAY a list state, MAP a map state, any other type a state with one value. A STRING column
shows any value as text. A column that does not fit its state is refused.
Does not know: how state is stored."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from millstream.connectors.savepoint import KeyedStateSource, describe_keyed_states, open_operator
from millstream.errors import UserError
from millstream.sql.columns import SqlTypeInfo, create_row_type_info
from millstream.sql.connector.table_connector import TableConnector, TableContext, TableSource
from millstream.sql.connector.table_formats import call_for_table, check_columns
from millstream.sql.errors import nearest
from millstream.sql.types import data_types as t
from millstream.state.deltas import TableSchema
from millstream.types.arrow_types import TypeMismatch
from millstream.types.row import Row

_TYPES_OF_CLASSES = (
    "key-class",
    "value-class",
    "key-type-factory",
    "value-type-factory",
    "map-key-format",
    "value-format",
)
_FIELD_OPTIONS = ("state-name", "state-type", *_TYPES_OF_CLASSES)
_KINDS = {"value": ("value", "reducing", "aggregating"), "list": ("list",), "map": ("map",)}

_NO_ROW = object()  # the value of an object without the fields of a row: no type accepts it

_log = logging.getLogger("millstream.savepoint")


class DoesNotFit(UserError):
    """A value of the state does not fit the type of its column."""

    def __init__(self, column: str, key: object, value: object, expected: object) -> None:
        super().__init__(
            f"the value of column '{column}' for the key {key!r} is {value!r}, which is not {expected}",
            hint="declare the type of the state, or STRING to read any value as text",
        )


@dataclass(frozen=True)
class StateRows:
    """Converts keys and values of states to rows of a table; `key_index` is the index of the key column."""

    schema: t.RowType
    key_index: int

    def __call__(self, keys: Sequence[Any], values: Sequence[Sequence[Any]]) -> list[Row]:
        """Return one row for each key."""
        columns = list(values)
        columns.insert(self.key_index, keys)
        fields = zip(self.schema.names, self.schema.types, columns, strict=True)
        converted = [_convert_column(name, data_type, column, keys) for name, data_type, column in fields]
        names = list(self.schema.names)
        return [Row._from(names, list(row)) for row in zip(*converted, strict=True)]


def _convert_column(name: str, data_type: t.DataType, column: Sequence[Any], keys: Sequence[Any]) -> list[Any]:
    adapted = [_adapt(value, data_type) for value in column]
    try:
        return SqlTypeInfo(data_type).conform(adapted)
    except TypeMismatch as mismatch:
        index = mismatch.index
        raise DoesNotFit(name, keys[index], column[index], data_type) from None


def _adapt(value: Any, data_type: t.DataType) -> Any:
    """Return a value in the form of a type: objects with named fields become rows, any value can be converted to
    text."""
    if value is None:
        return None
    match data_type:
        case t.VarCharType() | t.CharType():
            return value if isinstance(value, str) else str(value)
        case t.RowType():
            return _adapt_row(value, data_type)
        case t.ArrayType() if isinstance(value, list | tuple):
            return [_adapt(element, data_type.element) for element in value]
        case t.MapType() if isinstance(value, Mapping):
            return {_adapt(k, data_type.key): _adapt(v, data_type.value) for k, v in value.items()}
    return value


def _adapt_row(value: Any, data_type: t.RowType) -> Any:
    names = _list_field_names(value)
    if names is not None and set(data_type.names) <= set(names):
        values = [value[name] if isinstance(value, dict | Row) else getattr(value, name) for name in data_type.names]
    elif isinstance(value, tuple | list | Row) and len(value) == len(data_type):
        values = list(value)
    else:
        return _NO_ROW
    return Row(*(_adapt(field, field_type) for field, field_type in zip(values, data_type.types, strict=True)))


def _list_field_names(value: Any) -> Sequence[str] | None:
    if dataclasses.is_dataclass(value):
        return [field.name for field in dataclasses.fields(value)]
    if isinstance(value, Row):
        return getattr(value, "_fields", None)
    return list(value) if isinstance(value, dict) else getattr(value, "_fields", None)


def _read(context: TableContext) -> TableSource:
    key = _check(context)
    path, uid, uid_hash = (
        context.required("state.path"),
        *map(context.options.get, ("operator.uid", "operator.uid.hash")),
    )
    operator = call_for_table(context, lambda: open_operator(path, uid, uid_hash))
    schemas = describe_keyed_states(path, operator)
    schema = context.schema
    others = [name for name in schema.names if name != key]
    states = tuple(_find_state(context, name, schemas) for name in others)
    rows = StateRows(schema, schema.names.index(key))
    return TableSource(KeyedStateSource(path, operator.operator, states, create_row_type_info(schema), rows), schema)


def _check(context: TableContext) -> str:
    """Check the options and the columns; return the name of the key column."""
    names = context.schema.names
    known = [f"fields.{name}.{option}" for name in names for option in _FIELD_OPTIONS]
    context.check(["state.backend.type", "state.path", "operator.uid", "operator.uid.hash", *known])
    check_columns(context)
    if ("operator.uid" in context.options) == ("operator.uid.hash" in context.options):
        message = "either 'operator.uid' or 'operator.uid.hash' must be set"
        raise context.fail(message)
    if len(context.definition.primary_key) != 1:
        message = "a table of keyed state needs a primary key of one column, which is the key of the state"
        raise context.fail(message, "declare PRIMARY KEY (column) NOT ENFORCED")
    if len(names) == 1:
        message = "the table has no column for a state"
        raise context.fail(message, "add a column for each state to read")
    for option in context.options:
        if option == "state.backend.type" or option.rpartition(".")[2] in _TYPES_OF_CLASSES:
            _log.warning("option '%s' has no effect: the savepoint holds the types of its states", option)
    return context.definition.primary_key[0]


def _find_state(context: TableContext, column: str, schemas: Mapping[str, TableSchema]) -> str:
    """Return the full name of the state of a column."""
    name = context.options.get(f"fields.{column}.state-name", column)
    if name not in schemas:
        message = f"the operator has no keyed state '{name}'"
        known = ", ".join(f"'{state}'" for state in schemas if not state.startswith("timers/"))
        hint = nearest(name, schemas) or f"its keyed states are {known or 'none'}"
        raise context.fail(message, f"{hint}; 'fields.{column}.state-name' names the state of the column")
    schema = schemas[name]
    data_type = context.schema.types[context.schema.names.index(column)]
    default = "list" if isinstance(data_type, t.ArrayType) else "map" if isinstance(data_type, t.MapType) else "value"
    state_type = context.word(f"fields.{column}.state-type", _KINDS, default)
    is_text = isinstance(data_type, t.CharType | t.VarCharType)
    if schema.kind and schema.kind not in _KINDS[state_type] and not is_text:
        message = f"column '{column}' reads a {state_type} state, but '{name}' is a {schema.kind} state"
        raise context.fail(message, f"set 'fields.{column}.state-type', or declare ARRAY for a list and MAP for a map")
    return schema.name


CONNECTORS = (TableConnector("savepoint", read=_read),)
