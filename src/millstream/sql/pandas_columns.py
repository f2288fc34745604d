"""Columns as pandas Series and DataFrames, for pandas functions and `to_pandas`.

Promises: PyFlink's forms. A column of rows is a DataFrame with the names of the fields, an array is a numpy array,
TIMESTAMP_LTZ is in the session's time zone, and NaN in a result is NULL. Fields of results are taken by position.
Does not know: functions, and how often they are called."""

from __future__ import annotations

import datetime
from typing import Any

import pandas as pd
import pyarrow as pa

from millstream.sql.arrow_exchange import export_column, get_exchange_type, relabel
from millstream.sql.columns import arrow_type, create_external_converter, scalar_value, to_internal_values
from millstream.sql.types import data_types as t
from millstream.types.row import Row

_OBJECTS = (t.RawType, t.BitmapType, t.VariantType)


def to_series(array: pa.Array, data_type: t.DataType, zone: str) -> pd.Series:
    """Convert a column to a Series; rows become dicts, variants JSON."""
    series = export_column(array, data_type).to_pandas(date_as_object=True)
    return series.dt.tz_convert(zone) if isinstance(data_type, t.LocalZonedTimestampType) else series


def to_argument(array: pa.Array, data_type: t.DataType, zone: str) -> Any:
    """Convert a column to the argument of a pandas function: a DataFrame for rows, otherwise a Series."""
    if isinstance(data_type, t.RowType):
        return _to_frame(array, data_type, zone)
    if not isinstance(data_type, _OBJECTS):
        return to_series(array, data_type, zone)
    convert = create_external_converter(data_type)
    assert convert is not None
    return pd.Series([None if v is None else convert(v) for v in to_internal_values(array, data_type)], dtype=object)


def _to_frame(array: pa.Array, row: t.RowType, zone: str) -> pd.DataFrame:
    columns = zip(array.flatten(), row.fields, strict=True)
    series = [to_series(column, field.data_type, zone).rename(field.name) for column, field in columns]
    return pd.concat(series, axis=1) if series else pd.DataFrame(index=range(len(array)))


def from_result(result: Any, data_type: t.DataType, zone: str) -> pa.Array:
    """Convert the result of a pandas function to a column.

    Raises:
        pa.ArrowException, TypeError, ValueError: If a value does not fit the type.

    """
    if isinstance(result, pd.DataFrame):
        return _from_frame(result, data_type, zone)
    if isinstance(result, pa.ChunkedArray):
        result = result.combine_chunks()
    if isinstance(result, pa.Array):
        target = arrow_type(data_type)
        return result if result.type == target else relabel(result.cast(get_exchange_type(data_type)), target)
    if isinstance(data_type, t.LocalZonedTimestampType) and isinstance(result, pd.Series):
        result = _to_instants(result, zone)
    return relabel(pa.array(result, get_exchange_type(data_type), from_pandas=True), arrow_type(data_type))


def from_single_result(result: Any, data_type: t.DataType, zone: str) -> Any:
    """Convert the result of a pandas aggregate function to an internal value.

    Raises:
        pa.ArrowException, TypeError, ValueError: If the value does not fit the type.

    """
    if isinstance(result, pa.Scalar):
        result = scalar_value(result)
    if isinstance(data_type, t.RowType) and isinstance(result, Row | tuple):
        values: Any = tuple(None if _is_missing(value) else value for value in result)
        if len(values) != len(data_type):
            message = f"the result has {len(values)} fields, the row {len(data_type)}"
            raise TypeError(message)
    elif isinstance(result, pd.Series):
        values = result.to_numpy()
    else:
        values = None if _is_missing(result) else result
    if isinstance(data_type, t.LocalZonedTimestampType) and isinstance(values, datetime.datetime):
        values = values if values.tzinfo is not None else pd.Timestamp(values).tz_localize(zone)
    if isinstance(data_type, t.IntegerType) and isinstance(values, float) and not values.is_integer():
        message = f"{values} is not an integer"  # Arrow would truncate it
        raise ValueError(message)
    return to_internal_values(pa.array([values], get_exchange_type(data_type)), data_type)[0]


def _is_missing(value: Any) -> bool:
    """Return whether a value is NULL for pandas: None, NaN, NaT or NA."""
    return value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and value != value)


def _from_frame(frame: pd.DataFrame, data_type: t.DataType, zone: str) -> pa.Array:
    if not isinstance(data_type, t.RowType):
        message = "a DataFrame is a column of rows"
        raise TypeError(message)
    if frame.shape[1] != len(data_type):
        message = f"the DataFrame has {frame.shape[1]} columns, the row {len(data_type)}"
        raise TypeError(message)
    columns = [from_result(frame.iloc[:, i], field_type, zone) for i, field_type in enumerate(data_type.types)]
    return pa.StructArray.from_arrays(columns, fields=list(arrow_type(data_type)))


def _to_instants(series: pd.Series, zone: str) -> pd.Series:
    """Interpret timestamps without a time zone in the session's time zone."""
    is_local = isinstance(series.dtype, pd.DatetimeTZDtype) or series.dtype.kind != "M"
    return series if is_local else series.dt.tz_localize(zone)
