"""The layout of rows of a query on a page of a terminal.

Promises: columns keep their width while rows change, and a line is never wider than the page.
Does not know: queries, terminals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from millstream.sql import tableau
from millstream.sql.types import data_types as t
from millstream.types.row import Row

HEAD = 3  # lines: a border, the column names, a border


@dataclass(frozen=True)
class Columns:
    """How rows are shown: names and types of columns, a function from a row to its cells, the maximal column width.

    With `show_row_kinds`, the first column is the row kind."""

    names: Sequence[str]
    types: Sequence[t.DataType]
    cells: Callable[[Row], list[str]]
    max_width: int = tableau.MAX_WIDTH
    show_row_kinds: bool = False

    def lines(self, rows: Sequence[Row]) -> list[str]:
        """Return the lines of a table of rows, with borders and column names."""
        widths = tableau.compute_stream_widths(self.names, self.types, self.max_width)
        names = list(self.names)
        cells = [self.cells(row) for row in rows]
        if self.show_row_kinds:
            widths, names = [2, *widths], ["op", *names]
            cells = [[str(row.get_row_kind()), *row_cells] for row, row_cells in zip(rows, cells, strict=True)]
        border = tableau.format_border(widths)
        return [
            border,
            tableau.format_line(names, widths),
            border,
            *(tableau.format_line(row, widths) for row in cells),
            border,
        ]


def clip(text: str, start: int, width: int) -> str:
    """Return the part of a line that is visible on a page of this width, scrolled to the right by `start` columns."""
    visible, column = "", 0
    for character in text:
        character_width = tableau.compute_text_width(character)
        if column >= start and column + character_width <= start + width:
            visible += character
        column += character_width
    return visible
