"""The faker connector: 'connector' = 'faker', for tables with random values.

Promises: the options of flink-faker. A row depends on its index and the name of the table alone; a row that is looked
up depends on its key.
Does not know: how expressions are evaluated."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from millstream.connector.lookup_cache import Key
from millstream.connectors.datagen import DataGenSource, Field, random_columns
from millstream.connectors.datagen.faker_expressions import compile_expression, relative_time_range
from millstream.connectors.datagen.faker_fields import FakerField, RelativeTime
from millstream.connectors.datagen.seeded import SeededRandom
from millstream.sql.connector.lookup import CACHE_OPTIONS, Lookup, LookupRows, TableLookup, read_cache_policy
from millstream.sql.connector.lookup_reload import Reload
from millstream.sql.connector.table_connector import TableConnector, TableContext, TableSource
from millstream.sql.connector.table_formats import call_for_table
from millstream.sql.types import data_types as t

_FIELD_OPTIONS = ("expression", "null-rate", "length")
_SCALARS = (
    t.CharType, t.VarCharType, t.NumericType, t.BooleanType, t.DateType, t.TimeType, t.TimestampType,
    t.LocalZonedTimestampType,
)  # fmt: skip


def _read(context: TableContext) -> TableSource:
    names = context.schema.names
    fields: dict[str, Field] = {}
    types: list[t.DataType] = []
    _check_options(context)
    for name, data_type in zip(names, context.schema.types, strict=True):
        field, source_type = _create_field(context, name, data_type)
        fields[name] = field
        types.append(source_type)
    count = context.integer("number-of-rows")
    count = None if count is not None and count < 0 else count
    rate = context.integer("rows-per-second", 10000)
    seed = random_columns.derive_key(0, *context.name)
    source = DataGenSource(fields, seed=seed, count=count, rate=float(rate) if rate else None)
    return TableSource(source, t.row_of(names, types, null=False), parallelism=context.integer("scan.parallelism"))


def _check_options(context: TableContext) -> None:
    known = ["rows-per-second", "number-of-rows", "scan.parallelism", *CACHE_OPTIONS]
    context.check([*known, *(f"fields.{name}.{option}" for name in context.schema.names for option in _FIELD_OPTIONS)])


def _create_field(context: TableContext, name: str, data_type: t.DataType) -> tuple[Field, t.DataType]:
    """Return the generator of a column, and the type of its values, which are cast to the type of the column."""
    expression = context.required(f"fields.{name}.expression")
    null_rate = _read_null_rate(context, name)
    length = context.integer(f"fields.{name}.length")
    times = call_for_table(context, lambda: relative_time_range(expression))
    if times is not None and t.is_timestamp(data_type):
        return RelativeTime(*times, null_rate), t.BIGINT
    if isinstance(data_type, t.ArrayType) and isinstance(data_type.element, _SCALARS):
        field = call_for_table(context, lambda: FakerField(expression, null_rate, 1 if length is None else length))
        return field, t.ArrayType(t.STRING)
    if not isinstance(data_type, _SCALARS):
        message = f"faker cannot generate {data_type} (column '{name}')"
        raise context.fail(message, "use a scalar type or an ARRAY of one, and build other types in a query")
    return call_for_table(context, lambda: FakerField(expression, null_rate)), t.STRING


def _read_null_rate(context: TableContext, name: str) -> float:
    key = f"fields.{name}.null-rate"
    text = context.options.get(key, "0")
    try:
        null_rate = float(text)
    except ValueError:
        null_rate = -1.0
    if not 0 <= null_rate <= 1:
        message = f"option '{key}' must be a number from 0 to 1, not '{text}'"
        raise context.fail(message)
    return null_rate


@dataclass(frozen=True)
class FakerLookup(Lookup):
    """Generates one row for each key: the key columns have the values of the key."""

    seed: int
    names: tuple[str, ...]
    types: tuple[t.DataType, ...]
    expressions: tuple[str, ...]
    keys: tuple[int, ...]

    def find(self, keys: Sequence[Key]) -> Mapping[Key, LookupRows]:
        """Return the row of each key."""
        return {key: [self._row(key)] for key in keys}

    def _row(self, key: Key) -> tuple[Any, ...]:
        row: list[Any] = []
        for index, (name, expression) in enumerate(zip(self.names, self.expressions, strict=True)):
            if index in self.keys:
                row.append(key[self.keys.index(index)])
                continue
            rng = SeededRandom(random_columns.derive_key(self.seed, name, repr(key)))
            row.append(_create_parser(self.types[index])(compile_expression(expression)(rng)))
        return tuple(row)


def _create_parser(data_type: t.DataType) -> Callable[[str], Any]:
    match data_type:
        case t.IntegerType():
            return int
        case t.FloatType() | t.DoubleType():
            return float
        case t.DecimalType():
            return lambda text: Decimal(text).quantize(Decimal(1).scaleb(-data_type.scale))
        case t.BooleanType():
            return lambda text: text.lower() == "true"
    return str


def _create_lookup(context: TableContext, keys: tuple[str, ...]) -> TableLookup | None:
    _check_options(context)
    schema = context.schema
    for name, data_type in zip(schema.names, schema.types, strict=True):
        if not isinstance(data_type, t.CharType | t.VarCharType | t.NumericType | t.BooleanType):
            message = f"faker cannot look up {data_type} (column '{name}')"
            raise context.fail(message, "use text, numbers and booleans in a table that is looked up")
    expressions = tuple(context.required(f"fields.{name}.expression") for name in schema.names)
    call_for_table(context, lambda: [compile_expression(expression) for expression in expressions])
    policy = read_cache_policy(context)
    if isinstance(policy, Reload):
        message = "'lookup.cache' = 'FULL' needs a table with a fixed number of rows, and a faker table has none"
        raise context.fail(message, "use PARTIAL or NONE")
    seed = random_columns.derive_key(0, *context.name)
    indexes = tuple(schema.names.index(name) for name in keys)
    lookup = FakerLookup(seed, tuple(schema.names), tuple(schema.types), expressions, indexes)
    return TableLookup(lookup, schema, policy)


CONNECTORS = (TableConnector("faker", read=_read, lookup=_create_lookup),)
