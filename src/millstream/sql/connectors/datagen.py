"""The table connector datagen: random and sequential rows of every type.

Promises: Flink's options, defaults and ranges of values. Columns are independent of each other, of other tables and of
other jobs. The job, the table and the index of a row determine its values, so a job that restarts from a checkpoint
generates the same rows again.
Does not know: how rows are generated; see `generated_columns`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from millstream.connectors.datagen import DataGenSource, random_columns
from millstream.sql.connector.table_connector import TableConnector, TableContext, TableSource
from millstream.sql.connectors import generated_columns as g
from millstream.sql.types import data_types as t
from millstream.sql.types.durations import parse_duration_millis

_TEXT_LENGTH, _COLLECTION_LENGTH = 100, 3
_MAX_MONTHS, _MAX_COUNT = 120_000, 10  # of an interval, of an element of a multiset
_MAX_MILLIS = 86_399_999_999_999_999  # the longest time that Python can represent

T = TypeVar("T")


def _read_datagen(context: TableContext) -> TableSource:
    names = context.schema.names
    options = _FieldOptions(context)
    fields = {
        name: options.column(name, data_type) for name, data_type in zip(names, context.schema.types, strict=True)
    }
    context.check(["rows-per-second", "number-of-rows", "scan.parallelism", *options.known])
    count = context.integer("number-of-rows")
    if options.sequence_lengths:
        count = min([*options.sequence_lengths, *([] if count is None else [count])])
    rate = context.integer("rows-per-second", 10000)
    rate_or_none = None if count is not None and not rate else float(rate or 0) or None
    seed = random_columns.derive_key(0, *context.name)  # tables with the same columns have different values
    source = DataGenSource(fields, seed=seed, count=count, rate=rate_or_none, new_seed_per_job=True)
    return TableSource(source, t.row_of(names, [field.data_type for field in fields.values()], null=False))


class _FieldOptions:
    """Reads the options of columns, and of the parts of their values: `fields.NAME.OPTION`."""

    def __init__(self, context: TableContext) -> None:
        self._context = context
        self.known: list[str] = []
        self.sequence_lengths: list[int] = []

    def column(self, name: str, data_type: t.DataType) -> g.GeneratedColumn:
        """Return the generator of a column. Dates and times are relative to the processing time of the job."""
        generator = self._read(name, "kind", str, "random")
        if generator not in ("random", "sequence"):
            message = f"option 'fields.{name}.kind' must be random or sequence, not '{generator}'"
            raise self._context.fail(message)
        column = self._sequence(name, data_type) if generator == "sequence" else self._random(name, data_type)
        if isinstance(column, g.TimeColumn):
            return g.PastColumn(null_rate=column.null_rate, low=-column.max_past)
        return column

    def _sequence(self, name: str, data_type: t.DataType) -> g.GeneratedColumn:
        if isinstance(data_type, t.BooleanType | t.DateType | t.TimeType):
            return self._random(name, data_type)
        if not isinstance(data_type, t.NumericType) and not t.is_text(data_type) and not t.is_bytes(data_type):
            message = f"datagen has no sequence of {data_type} (column '{name}')"
            raise self._context.fail(message)
        start, end = self._read(name, "start", int, None), self._read(name, "end", int, None)
        if start is None or end is None:
            message = f"a sequence needs 'fields.{name}.start' and 'fields.{name}.end'"
            raise self._context.fail(message)
        self.sequence_lengths.append(end - start + 1)
        return g.SequenceColumn(data_type, start=start)

    def _random(self, name: str, data_type: t.DataType) -> g.GeneratedColumn:
        """Return the generator of random values; `name` is the path of a column or of a part of its values."""
        match data_type:
            case t.BinaryType() | t.VarBinaryType():
                return self._text(name, data_type)
            case t.DateType() | t.TimeType():
                return g.TimeColumn(data_type)
        column = self._random_or_null(name, data_type)
        return replace(column, null_rate=self._null_rate(name))

    def _random_or_null(self, name: str, data_type: t.DataType) -> g.GeneratedColumn:
        match data_type:
            case t.BooleanType():
                return g.BooleanColumn(data_type)
            case t.CharType() | t.VarCharType():
                return self._text(name, data_type)
            case t.IntegerType():
                limit = 1 << (data_type.bits - 1)
                return self._integer(name, data_type, -limit, limit - 1)
            case t.YearMonthIntervalType():
                return self._integer(name, data_type, 0, _MAX_MONTHS)
            case t.DayTimeIntervalType():
                return self._integer(name, data_type, -_MAX_MILLIS, _MAX_MILLIS)
            case t.FloatType():
                return self._float(name, data_type, 1.401298464324817e-45, 3.4028234663852886e38)
            case t.DoubleType():
                return self._float(name, data_type, 5e-324, 1.7976931348623157e308)
            case t.DecimalType():
                return self._decimal(name, data_type)
            case t.TimestampType() | t.LocalZonedTimestampType():
                max_past = self._read(name, "max-past", parse_duration_millis, 0)
                return g.TimeColumn(data_type, max_past=max_past)
            case t.ArrayType():
                element = self._random(f"{name}.element", data_type.element)
                return g.ArrayColumn(data_type, element=element, length=self._collection_length(name))
            case t.MultisetType():
                element = self._random(f"{name}.element", data_type.element)
                count = g.IntegerColumn(t.INT, high=_MAX_COUNT)
                length = self._collection_length(name)
                return g.MapColumn(data_type, key_column=element, value_column=count, length=length)
            case t.MapType():
                key = self._random(f"{name}.key", data_type.key)
                value = self._random(f"{name}.value", data_type.value)
                length = self._collection_length(name)
                return g.MapColumn(data_type, key_column=key, value_column=value, length=length)
            case t.RowType():
                fields = [
                    self._random(f"{name}.{field}", field_type)
                    for field, field_type in zip(data_type.names, data_type.types, strict=True)
                ]
                return g.RowColumn(data_type, fields=tuple(fields))
        message = f"datagen cannot generate {data_type} (column '{name}')"
        raise self._context.fail(message)

    def _integer(self, name: str, data_type: t.DataType, low: int, high: int) -> g.GeneratedColumn:
        low, high = self._read(name, "min", int, low), self._read(name, "max", int, high)
        self._check_range(name, low, high)
        return g.IntegerColumn(data_type, low=low, high=high)

    def _float(self, name: str, data_type: t.DataType, low: float, high: float) -> g.GeneratedColumn:
        low, high = self._read(name, "min", float, low), self._read(name, "max", float, high)
        self._check_range(name, low, high)
        return g.FloatColumn(data_type, low=low, high=high)

    def _decimal(self, name: str, data_type: t.DecimalType) -> g.GeneratedColumn:
        largest = 10.0 ** (data_type.precision - data_type.scale) - 10.0**-data_type.scale
        low, high = self._read(name, "min", float, 0.0), self._read(name, "max", float, largest)
        self._check_range(name, low, high)
        return g.FloatColumn(data_type, low=max(-largest, low), high=min(largest, high))

    def _check_range(self, name: str, low: float, high: float) -> None:
        if low > high:
            message = f"'fields.{name}.min' is {low}, which is greater than 'fields.{name}.max', {high}"
            raise self._context.fail(message)

    def _text(
        self, name: str, data_type: t.CharType | t.VarCharType | t.BinaryType | t.VarBinaryType
    ) -> g.GeneratedColumn:
        length = self._read(name, "length", int, None)
        has_variable_length = self._read(name, "var-len", _parse_boolean, False)
        if isinstance(data_type, t.CharType | t.BinaryType):
            if length is not None or has_variable_length:
                message = f"column '{name}' has the fixed length of its type, {data_type}"
                raise self._context.fail(message, f"remove 'fields.{name}.length' and 'fields.{name}.var-len'")
            return g.BytesColumn(data_type, length=data_type.length)
        if length is not None and length > data_type.length:
            message = f"'fields.{name}.length' is {length}, more than the length of {data_type}"
            raise self._context.fail(message)
        if length is None:
            length = _TEXT_LENGTH if data_type.length == t.MAX_LENGTH else data_type.length
        return g.BytesColumn(data_type, length=length, has_variable_length=has_variable_length)

    def _collection_length(self, name: str) -> int:
        return self._read(name, "length", int, _COLLECTION_LENGTH)

    def _null_rate(self, name: str) -> float:
        null_rate = self._read(name, "null-rate", float, 0.0)
        if not 0 <= null_rate <= 1:
            message = f"option 'fields.{name}.null-rate' must be between 0 and 1, not {null_rate}"
            raise self._context.fail(message)
        return null_rate

    def _read(self, name: str, option: str, parse: Callable[[str], T], default: T) -> T:
        key = f"fields.{name}.{option}"
        self.known.append(key)
        text = self._context.options.get(key)
        if text is None:
            return default
        try:
            return parse(text)
        except ValueError:
            message = f"option '{key}' cannot be '{text}'"
            raise self._context.fail(message) from None


def _parse_boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


DATAGEN = TableConnector("datagen", read=_read_datagen)
