"""Data types as JSON, in the form of Flink's gateway.

Promises: Flink's clients read every type; a type that Flink has no JSON form for becomes a string.
Does not know: values."""

from __future__ import annotations

from typing import Any

from millstream.sql.types import data_types as t

_NAMES = {
    "INT": "INTEGER",
    "TIME": "TIME_WITHOUT_TIME_ZONE",
    "TIMESTAMP": "TIMESTAMP_WITHOUT_TIME_ZONE",
    "TIMESTAMP_LTZ": "TIMESTAMP_WITH_LOCAL_TIME_ZONE",
}
_AS_STRING = (t.RawType, t.VariantType, t.BitmapType, t.DescriptorType, t.SymbolType)


def describe_type(data_type: t.DataType) -> dict[str, Any]:
    """Return a data type as a JSON value."""
    if isinstance(data_type, t.NullType):
        return {"type": "NULL"}
    if isinstance(data_type, _AS_STRING):
        return {"type": "VARCHAR", "nullable": data_type.null, "length": t.MAX_LENGTH}
    root = "ROW" if isinstance(data_type, t.RowType) else data_type.root
    return {"type": _NAMES.get(root, root), "nullable": data_type.null, **_details(data_type)}


def _details(data_type: t.DataType) -> dict[str, Any]:
    match data_type:
        case t.SizedType():
            return {"length": data_type.length}
        case t.DecimalType():
            return {"precision": data_type.precision, "scale": data_type.scale}
        case t.TimeType() | t.AnyTimestampType():
            return {"precision": data_type.precision}
        case t.YearMonthIntervalType():
            return {"precision": data_type.precision, "resolution": data_type.resolution.replace(" ", "_")}
        case t.DayTimeIntervalType():
            return {
                "precision": data_type.day_precision,
                "fractionalPrecision": data_type.fraction,
                "resolution": data_type.resolution.replace(" ", "_"),
            }
        case t.ArrayType() | t.MultisetType():
            return {"elementType": describe_type(data_type.element)}
        case t.MapType():
            return {"keyType": describe_type(data_type.key), "valueType": describe_type(data_type.value)}
        case t.RowType():
            fields = zip(data_type.names, data_type.types, strict=True)
            return {"fields": [{"name": name, "fieldType": describe_type(field)} for name, field in fields]}
    return {}
