"""Results as text tables, as Flink's clients print them.

Promises: columns of a stream have the width of their types, columns of a bounded result that of their
values; wide characters count twice.
Does not know: queries."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from millstream.sql.types import data_types as t
from millstream.sql_options import MAX_COLUMN_WIDTH

MAX_WIDTH = MAX_COLUMN_WIDTH.default
NULL = "<NULL>"
_OPS = ("+I", "-U", "+U", "-D")


def compute_type_width(data_type: t.DataType, most: int = MAX_WIDTH) -> int:
    """Return the width of a column whose values are not known yet."""
    match data_type:
        case t.BooleanType():
            return 5
        case t.TinyIntType():
            return 4
        case t.SmallIntType():
            return 6
        case t.IntType():
            return 11
        case t.BigIntType():
            return 20
        case t.DecimalType():
            return data_type.precision + 2
        case t.DateType():
            return 10
        case t.TimeType():
            return 8 if data_type.precision == 0 else 9 + data_type.precision
        case t.TimestampType() | t.LocalZonedTimestampType():
            return 19 if data_type.precision == 0 else 20 + data_type.precision
    return most


def compute_text_width(text: str) -> int:
    """Return the number of terminal cells of a text."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _format_cell(text: str, width: int) -> str:
    if compute_text_width(text) > width:
        kept, used = "", 0
        for c in text:
            step = compute_text_width(c)
            if used + step > width - 3:
                break
            kept, used = kept + c, used + step
        text = f"{kept}..."
    return " " * (width - compute_text_width(text)) + text


def format_stream(
    names: Sequence[str],
    data_types: Sequence[t.DataType],
    rows: Iterable[tuple[int, Sequence[str]]],
    most: int = MAX_WIDTH,
) -> Iterator[str]:
    """Return the lines of a changelog, with an op column; `rows` are (row kind, cells)."""
    widths = [2, *compute_stream_widths(names, data_types, most)]
    count = 0
    for row_kind, cells in rows:
        if not count:
            yield format_border(widths)
            yield format_line(["op", *names], widths)
            yield format_border(widths)
        yield format_line([_OPS[row_kind], *cells], widths)
        count += 1
    if count:
        yield format_border(widths)
        yield "1 row in set" if count == 1 else f"{count} rows in set"
    else:
        yield "Empty set"


def format_table(names: Sequence[str], rows: Sequence[Sequence[str]], most: int | None = MAX_WIDTH) -> Iterator[str]:
    """Return the lines of a finished result; `most` is the maximum width of columns, None for no limit."""
    if not rows:
        yield "Empty set"
        return
    widths = [
        max(compute_text_width(name), *(compute_text_width(row[i]) for row in rows)) for i, name in enumerate(names)
    ]
    if most is not None:
        widths = [min(most, width) for width in widths]
    yield format_border(widths)
    yield format_line(names, widths)
    yield format_border(widths)
    for row in rows:
        yield format_line(row, widths)
    yield format_border(widths)
    yield "1 row in set" if len(rows) == 1 else f"{len(rows)} rows in set"


def compute_stream_widths(names: Sequence[str], data_types: Sequence[t.DataType], most: int = MAX_WIDTH) -> list[int]:
    """Return the widths of columns whose values are not known yet."""
    least = len(NULL)
    return [
        max(compute_type_width(data_type, most), compute_text_width(name), least)
        for name, data_type in zip(names, data_types, strict=True)
    ]


def format_border(widths: Sequence[int]) -> str:
    """Return the line above and below rows."""
    return "+" + "+".join("-" * (width + 2) for width in widths) + "+"


def format_line(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Return the line of a row."""
    return "|" + "|".join(f" {_format_cell(cell, width)} " for cell, width in zip(cells, widths, strict=True)) + "|"
