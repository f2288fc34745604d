"""HTML fragments for notebooks.

Promises: all texts are escaped, so that values and names of a program cannot become markup; a fragment needs no script
and no style sheet, so that every notebook client shows it.
Does not know: tables, jobs, notebooks."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from html import escape


def text(line: str) -> str:
    """Return a line of text."""
    return f"<div>{escape(line)}</div>" if line else ""


def table(names: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "") -> str:
    """Return a table of texts with a header row.

    Args:
        names: The texts of the header.
        rows: The texts of the cells, row by row.
        caption: A line above the table.

    """
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"{text(caption)}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def facts(title: str, rows: Iterable[tuple[str, str]], notes: Iterable[str] = ()) -> str:
    """Return pairs of a name and a text below a title, and further lines below them."""
    body = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in rows)
    lines = "".join(text(note) for note in notes)
    return f"<div><b>{escape(title)}</b></div><table><tbody>{body}</tbody></table>{lines}"


def picture(svg: str, description: str) -> str:
    """Return an SVG document as an image, whose styles do not apply to the page."""
    data = base64.b64encode(svg.encode()).decode()
    return f'<img alt="{escape(description)}" src="data:image/svg+xml;base64,{data}">'


def details(summary: str, content: str) -> str:
    """Return a collapsed section that the reader can expand; `content` is HTML."""
    return f"<details><summary>{escape(summary)}</summary>{content}</details>"
