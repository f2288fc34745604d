"""Rows as the lines of one page.

Promises: columns keep their width while rows change; a line is never wider than the page.
Does not know: terminals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from millstream.sql import tableau
from millstream.sql.types import data_types as t
from millstream.types.row import Row

HEAD = 3  # a border, the names, a border


@dataclass(frozen=True)
class Columns:
    """What is shown of each row: names and types of its columns, and how a row becomes cells."""

    names: Sequence[str]
    kinds: Sequence[t.DataType]
    cells: Callable[[Row], list[str]]
    most: int = tableau.MAX_WIDTH
    ops: bool = False

    def lines(self, rows: Sequence[Row]) -> list[str]:
        """The names and the rows, with borders."""
        widths = tableau.stream_widths(self.names, self.kinds, self.most)
        names = list(self.names)
        listed = [self.cells(row) for row in rows]
        if self.ops:
            widths, names = [2, *widths], ["op", *names]
            listed = [[str(row.get_row_kind()), *cells] for row, cells in zip(rows, listed, strict=True)]
        line = tableau.border(widths)
        return [line, tableau.line(names, widths), line, *(tableau.line(cells, widths) for cells in listed), line]


def cut(text: str, start: int, width: int) -> str:
    """What a page of that width shows of a line, scrolled to the right by `start` places."""
    shown, at = "", 0
    for each in text:
        step = tableau.text_width(each)
        if at >= start and at + step <= start + width:
            shown += each
        at += step
    return shown
