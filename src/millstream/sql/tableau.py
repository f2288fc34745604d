"""Results as text tables, line by line as Flink's clients print them.

Promises: a stream's table has the width of its types, a bounded one that of its values; wide characters count twice.
Does not know: where rows come from."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from millstream.sql.types import data_types as t
from millstream.sql_options import MAX_COLUMN_WIDTH

MAX_WIDTH = MAX_COLUMN_WIDTH.default
NULL = "<NULL>"
_OPS = ("+I", "-U", "+U", "-D")


def type_width(kind: t.DataType, most: int = MAX_WIDTH) -> int:
    """The width of a column of a type whose values are not known yet."""
    match kind:
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
            return kind.precision + 2
        case t.DateType():
            return 10
        case t.TimeType():
            return 8 if kind.precision == 0 else 9 + kind.precision
        case t.TimestampType() | t.LocalZonedTimestampType():
            return 19 if kind.precision == 0 else 20 + kind.precision
    return most


def text_width(text: str) -> int:
    """The places a text takes in a terminal."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _cell(text: str, width: int) -> str:
    if text_width(text) > width:
        kept, used = "", 0
        for c in text:
            step = text_width(c)
            if used + step > width - 3:
                break
            kept, used = kept + c, used + step
        text = f"{kept}..."
    return " " * (width - text_width(text)) + text


def streamed(
    names: Sequence[str],
    kinds: Sequence[t.DataType],
    rows: Iterable[tuple[int, Sequence[str]]],
    most: int = MAX_WIDTH,
) -> Iterator[str]:
    """The lines of a changelog: (kind of change, cells) in, with an op column."""
    widths = [2, *stream_widths(names, kinds, most)]
    count = 0
    for kind, cells in rows:
        if not count:
            yield border(widths)
            yield line(["op", *names], widths)
            yield border(widths)
        yield line([_OPS[kind], *cells], widths)
        count += 1
    if count:
        yield border(widths)
        yield "1 row in set" if count == 1 else f"{count} rows in set"
    else:
        yield "Empty set"


def bounded(names: Sequence[str], rows: Sequence[Sequence[str]], most: int | None = MAX_WIDTH) -> Iterator[str]:
    """The lines of a finished result; `most` cuts columns, None shows all of them."""
    if not rows:
        yield "Empty set"
        return
    widths = [max(text_width(name), *(text_width(row[i]) for row in rows)) for i, name in enumerate(names)]
    if most is not None:
        widths = [min(most, width) for width in widths]
    yield border(widths)
    yield line(names, widths)
    yield border(widths)
    for row in rows:
        yield line(row, widths)
    yield border(widths)
    yield "1 row in set" if len(rows) == 1 else f"{len(rows)} rows in set"


def stream_widths(names: Sequence[str], kinds: Sequence[t.DataType], most: int = MAX_WIDTH) -> list[int]:
    """The widths of columns whose values are not known yet."""
    least = len(NULL)
    return [max(type_width(kind, most), text_width(name), least) for name, kind in zip(names, kinds, strict=True)]


def border(widths: Sequence[int]) -> str:
    """The line above and below rows."""
    return "+" + "+".join("-" * (width + 2) for width in widths) + "+"


def line(cells: Sequence[str], widths: Sequence[int]) -> str:
    """One row."""
    return "|" + "|".join(f" {_cell(cell, width)} " for cell, width in zip(cells, widths, strict=True)) + "|"
