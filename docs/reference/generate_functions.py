"""Writes functions.md from the functions as they are declared: python docs/reference/generate_functions.py."""

from __future__ import annotations

from pathlib import Path

from millstream.sql.functions import library
from millstream.sql.functions.aggregates import AGGREGATES
from millstream.sql.functions.registry import all_functions, signature

assert library  # loads every function

INTRODUCTION = """\
# Functions

Every built-in function, as declared in `millstream/sql/functions`; this page is generated from there
(`python docs/reference/generate_functions.py`). Names and meanings are Flink's.
"""


def page() -> str:
    """The whole page."""
    parts = [INTRODUCTION]
    functions = [each for each in all_functions() if each.category != "internal"]
    for category in sorted({each.category for each in functions}):
        parts += [f"\n## {category.capitalize()}\n", "| function | what it gives |", "|---|---|"]
        parts += [f"| {cell(signature(each))} | {cell(each.doc)} |" for each in functions if each.category == category]
    parts += ["\n## Aggregates\n", "| function | what it gives |", "|---|---|"]
    for name, each in sorted(AGGREGATES.items()):
        if name.isidentifier() and name != "SINGLE_VALUE":
            parts.append(f"| {cell(each.syntax or f'{name}(value)')} | {cell(each.doc)} |")
    return "\n".join(parts) + "\n"


def cell(text: str) -> str:
    """Text that does not end its cell."""
    return text.replace("|", "\\|")


if __name__ == "__main__":
    Path(__file__).with_name("functions.md").write_text(page(), encoding="utf-8")
