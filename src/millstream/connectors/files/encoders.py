"""Encoders of lines: JSON, or a message format.

Promises: one line of valid JSON for each record, with the names of its fields; values without a JSON form are refused.
Does not know: files."""

from __future__ import annotations

import base64
import dataclasses
import datetime
import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, BinaryIO

from millstream.connector.serialization_schema import Encoder, NotSerializable, SimpleStringEncoder
from millstream.formats import Format
from millstream.types.composite_types import is_named_tuple
from millstream.types.row import Row, RowKind


class JsonLinesEncoder(Encoder):
    """Writes one record per line, as JSON: rows, dataclasses and named tuples as objects, other tuples as arrays.

    Times are in ISO 8601, decimals are strings, bytes are Base64.

    Example:
        >>> import io
        >>> stream = io.BytesIO()
        >>> JsonLinesEncoder().encode({"id": 1, "total": 12.5}, stream)
        >>> stream.getvalue().decode().strip()
        '{"id": 1, "total": 12.5}'

    """

    def encode(self, element: Any, stream: BinaryIO) -> None:
        """Write the record and a line feed."""
        try:
            text = json.dumps(_plain(element), ensure_ascii=False, allow_nan=False, default=_plain_or_raise)
        except (TypeError, ValueError, RecursionError) as problem:
            raise NotSerializable(self, element, f"values with a JSON form ({problem})") from None
        stream.write(f"{text}\n".encode())


def json_lines() -> Encoder:
    """Create an encoder that writes one record per line, as JSON."""
    return JsonLinesEncoder()


class FormatEncoder(Encoder):
    """Writes one record per line, in a message format such as `format_named("csv", ...)`.

    Example:
        >>> from millstream.common import Types
        >>> from millstream.formats import format_named
        >>> encoder = FormatEncoder(format_named("csv", Types.ROW_NAMED(["id"], [Types.LONG()])))

    """

    #: True if `encode_many` also accepts typed records as one Arrow array.
    columnar: bool = False

    def __init__(self, line_format: Format, end: bytes = b"\n") -> None:
        self._format, self._end = line_format, end

    def encode(self, element: Any, stream: BinaryIO) -> None:
        """Write the record and the end of its line."""
        self.encode_many([element], stream)

    def encode_many(self, elements: Sequence[Any], stream: BinaryIO) -> None:
        """Write records, each with the end of its line.

        Args:
            elements: The records.
            stream: The file.

        """
        if len(elements):
            stream.write(self._end.join([*self._format.encode(elements), b""]))


def encode_all(encoder: Encoder, elements: Sequence[Any], stream: BinaryIO) -> None:
    """Write the records in order; the same bytes as one by one, faster for strings."""
    if isinstance(encoder, SimpleStringEncoder) and set(map(type, elements)) == {str}:
        end = "\n".encode(encoder.charset)
        if end == b"\n":  # without a byte order mark, which each record would get
            stream.write("\n".join([*elements, ""]).encode(encoder.charset))
            return
    if isinstance(encoder, FormatEncoder):
        encoder.encode_many(elements, stream)
        return
    for element in elements:
        encoder.encode(element, stream)


def _plain(value: Any) -> Any:
    """Convert rows, named tuples and dataclasses to plain Python values; other values stay unchanged."""
    if isinstance(value, Row):
        if value.get_row_kind() is not RowKind.INSERT:
            message = f"a row of kind {value.get_row_kind()} is a change, not a record"
            raise ValueError(message)
        names = getattr(value, "_fields", None)
        return dict(zip(names, map(_plain, value), strict=False)) if names is not None else list(map(_plain, value))
    if is_named_tuple(type(value)):
        return {name: _plain(field) for name, field in zip(value._fields, value, strict=True)}
    if isinstance(value, (list, tuple)):
        return list(map(_plain, value))
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return value


def _plain_or_raise(value: Any) -> Any:
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode()
    message = f"{type(value).__name__} has no JSON form"
    raise TypeError(message)
