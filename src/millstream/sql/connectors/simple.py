"""Connectors that need nothing outside: datagen, values, print, blackhole.

Promises: Flink's options and lines.
Does not know: queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from millstream.connector.lookup_cache import Key
from millstream.connectors.blackhole import BlackHoleSink
from millstream.connectors.collection import CollectionSource
from millstream.connectors.datagen import (
    DataGenSource,
    Field,
    RandomBoolean,
    RandomFloat,
    RandomInt,
    RandomString,
    random_columns,
)
from millstream.connectors.datagen import Sequence as Counting
from millstream.connectors.printing import PrintSink
from millstream.sql.columns import row_type_info
from millstream.sql.connector.lookup import CACHE_OPTIONS, Found, Lookup, TableLookup, cache_policy
from millstream.sql.connector.lookup_reload import Reload
from millstream.sql.connector.table_connector import TableConnector, TableContext, TableSink, TableSource
from millstream.sql.operators.join.whole_tables import whole_table
from millstream.sql.types import data_types as t
from millstream.sql.types.changelog_mode import ChangelogMode
from millstream.sql.types.durations import duration_millis

_LIMITS = {8: (-(2**7), 2**7 - 1), 16: (-(2**15), 2**15 - 1), 32: (-(2**31), 2**31 - 1), 64: (-(2**63), 2**63 - 1)}


def _datagen(context: TableContext) -> TableSource:
    names = context.schema.names
    known = ["rows-per-second", "number-of-rows", "scan.parallelism"]
    kinds = ("kind", "min", "max", "max-past", "length", "var-len", "null-rate", "start", "end")
    context.check([*known, *(f"fields.{name}.{kind}" for name in names for kind in kinds)])
    made: dict[str, Field] = {}
    ends: list[int] = []
    for name, kind in zip(names, context.schema.types, strict=True):
        made[name] = _field(context, name, kind, ends)
    count = context.integer("number-of-rows")
    if ends:
        count = min([*ends, *([] if count is None else [count])])
    rate = context.integer("rows-per-second", 10000)
    rate_or_none = None if count is not None and not rate else float(rate or 0) or None
    seed = random_columns.derive_key(0, *context.name)  # two tables with the same columns must not have the same values
    source = DataGenSource(made, seed=seed, count=count, rate=rate_or_none)
    schema = t.row_of(names, [_made_type(each) for each in made.values()], null=False)
    return TableSource(source, schema)


def _made_type(field: Field) -> t.DataType:
    return {"LONG": t.BIGINT, "DOUBLE": t.DOUBLE, "BOOLEAN": t.BOOLEAN, "STRING": t.STRING}.get(
        str(field.kind).upper().rpartition(".")[2].strip("()"), _by_arrow(field)
    )


def _by_arrow(field: Field) -> t.DataType:
    return {"int64": t.BIGINT, "double": t.DOUBLE, "bool": t.BOOLEAN, "string": t.STRING}[str(field.kind.arrow_type)]


def _field(context: TableContext, name: str, kind: t.DataType, ends: list[int]) -> Field:
    prefix = f"fields.{name}."
    how = context.options.get(f"{prefix}kind", "random")
    if how == "sequence":
        start, end = context.integer(f"{prefix}start"), context.integer(f"{prefix}end")
        if start is None or end is None:
            message = f"a sequence needs '{prefix}start' and '{prefix}end'"
            raise context.fail(message)
        ends.append(end - start + 1)
        return Counting(start)
    if how != "random":
        message = f"option '{prefix}kind' must be random or sequence, not '{how}'"
        raise context.fail(message)
    least, most = context.options.get(f"{prefix}min"), context.options.get(f"{prefix}max")
    match kind:
        case t.IntegerType():
            low, high = _LIMITS[kind.bits]
            return RandomInt(int(least) if least else low, int(most) if most else high)
        case t.FloatType() | t.DoubleType() | t.DecimalType():
            top = 10.0 ** (kind.precision - kind.scale) - 1 if isinstance(kind, t.DecimalType) else 1e9
            return RandomFloat(float(least) if least else -top, float(most) if most else top)
        case t.BooleanType():
            return RandomBoolean()
        case t.CharType() | t.VarCharType() | t.BinaryType() | t.VarBinaryType():
            length = context.integer(f"{prefix}length") or min(kind.length, 100)
            return RandomString(length=length)
        case t.TimestampType() | t.LocalZonedTimestampType():
            past = duration_millis(context.options.get(f"{prefix}max-past", "0 ms"))
            return RandomInt(-past, 0)
        case t.DateType():
            return RandomInt(0, 20_000)
        case t.TimeType():
            return RandomInt(0, 86_399_999)
    message = f"datagen cannot make {kind} (column '{name}')"
    raise context.fail(message)


def _print(context: TableContext) -> TableSink:
    context.check(["print-identifier", "standard-error", "sink.parallelism"])
    identifier = context.options.get("print-identifier") or None
    sink = PrintSink(identifier, context.options.get("standard-error", "false").lower() == "true")
    return TableSink(sink, ChangelogMode.RETRACT, context.integer("sink.parallelism"))


def _blackhole(context: TableContext) -> TableSink:
    context.check([])
    return TableSink(BlackHoleSink(), ChangelogMode.RETRACT)


_VALUES: dict[str, list[Any]] = {}


def offered(name: str, rows: list[Any]) -> None:
    """Have rows of the program read by tables WITH ('connector' = 'values', 'data-id' = name)."""
    _VALUES[name] = rows


def _offered(context: TableContext) -> list[Any]:
    context.check(["data-id", "changelog-mode", "disable-lookup", *CACHE_OPTIONS])
    name = context.required("data-id")
    if name not in _VALUES:
        message = f"nobody has offered the values '{name}'"
        raise context.fail(message)
    return row_type_info(context.schema).conform(list(_VALUES[name]))


def _values(context: TableContext) -> TableSource:
    kind = row_type_info(context.schema)
    changes = context.options.get("changelog-mode", "I").upper()
    mode = ChangelogMode.INSERT_ONLY if changes == "I" else ChangelogMode.RETRACT
    if "UA" in changes and "UB" not in changes:
        mode = ChangelogMode.UPSERT
    return TableSource(CollectionSource(_offered(context), kind), context.schema, mode)


@dataclass(frozen=True)
class ValuesLookup(Lookup):
    """Rows of the program by the values of some of their columns."""

    rows: tuple[Any, ...]
    keys: tuple[int, ...]

    def find(self, keys: Sequence[Key]) -> Mapping[Key, Found]:
        """As Lookup promises."""
        known = self._by_key
        return {key: known[key] for key in keys if key in known}

    @cached_property
    def _by_key(self) -> dict[Key, list[Any]]:
        found: dict[Key, list[Any]] = {}
        for row in self.rows:
            found.setdefault(tuple([row[i] for i in self.keys]), []).append(tuple(row))
        return found

    def __getstate__(self) -> dict[str, Any]:
        return {"rows": self.rows, "keys": self.keys}


def _values_lookup(context: TableContext, keys: tuple[str, ...]) -> TableLookup | None:
    if context.flag("disable-lookup"):
        return None
    policy = cache_policy(context)
    if isinstance(policy, Reload):
        return whole_table(context, _values(context), keys)
    places = tuple(context.schema.names.index(name) for name in keys)
    lookup = ValuesLookup(tuple(_offered(context)), places)
    return TableLookup(lookup, context.schema, policy, context.flag("lookup.async"))


CONNECTORS = (
    TableConnector("datagen", read=_datagen),
    TableConnector("values", read=_values, lookup=_values_lookup),
    TableConnector("print", write=_print),
    TableConnector("blackhole", write=_blackhole),
)
