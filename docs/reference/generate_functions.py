"""Write functions.md from the declarations of the functions: python docs/reference/generate_functions.py."""

from __future__ import annotations

from pathlib import Path

from millstream.sql.functions.aggregates import AGGREGATES
from millstream.sql.functions.library import describe_usage, list_functions
from millstream.sql.functions.over_functions import OVER_FUNCTIONS
from millstream.sql.functions.special_forms import SPECIAL_FORMS

INTRODUCTION = """\
# Functions

All built-in functions. Names and semantics are Flink's. Unless the description says otherwise, a function returns NULL
if an argument is NULL, and an aggregate function ignores NULLs.

This page is generated from the declarations in `millstream/sql/functions`
(`python docs/reference/generate_functions.py`).
"""

#: The sections of the page: category, title, introduction.
SECTIONS = (
    ("comparison", "Comparison", ""),
    ("logic", "Logical operators", ""),
    ("arithmetic", "Arithmetic", ""),
    ("string", "Strings", ""),
    ("hash", "Hashes", ""),
    ("temporal", "Dates, times and timestamps", "The current time is the processing time of the epoch."),
    ("conditional", "Conditions", ""),
    ("conversion", "Type conversion", ""),
    ("construction", "Value construction", ""),
    ("collection", "Arrays, maps and multisets", ""),
    ("json", "JSON and VARIANT", ""),
    ("bitmap", "Bitmaps", ""),
    ("catalog", "Catalog", ""),
    ("aggregate", "Aggregates", "Each can be used with GROUP BY, in a window, and with OVER."),
    ("over", "Functions with OVER", "These functions need OVER."),
    ("grouping", "Grouping sets", ""),
    ("table-valued", "Table-valued functions", "Each is used in FROM as TABLE(function(...)), UNNEST without TABLE."),
    ("group window", "Parts of group windows", "For the older syntax GROUP BY TUMBLE(time, size), HOP or SESSION."),
    ("pattern", "Pattern matching", "These functions are used in MATCH_RECOGNIZE."),
)  # fmt: skip


def rows() -> dict[str, list[tuple[str, str, str]]]:
    """Return (name, syntax, description) of every function, by category."""
    found: dict[str, list[tuple[str, str, str]]] = {category: [] for category, _, _ in SECTIONS}
    for function in list_functions():
        if function.category != "internal":
            syntax = describe_usage(function)
            others = [alias for alias in function.aliases if f"{alias}(" not in syntax]
            if others:
                syntax += f" (also {', '.join(others)})"
            found[function.category].append((function.name, syntax, function.doc))
    for form in SPECIAL_FORMS.values():
        found[form.category].append((form.name, form.syntax, form.doc))
    for name, aggregate in AGGREGATES.items():
        if name.isidentifier() and name != "SINGLE_VALUE":
            found["aggregate"].append((name, aggregate.syntax or f"{name}(value)", aggregate.doc))
    for over in OVER_FUNCTIONS.values():
        found["over"].append((over.name, over.syntax, over.doc))
    return found


def page() -> str:
    """Return the page as text."""
    parts = [INTRODUCTION]
    declared = rows()
    for category, title, introduction in SECTIONS:
        parts += [f"## {title}\n", *([f"{introduction}\n"] if introduction else [])]
        parts += ["| function | description |", "|---|---|"]
        parts += [f"| {cell(syntax)} | {cell(doc)} |" for _, syntax, doc in sorted(declared[category])]
        parts.append("")
    return "\n".join(parts)


def cell(text: str) -> str:
    """Escape the characters that would end a cell of the table."""
    return text.replace("|", "\\|")


if __name__ == "__main__":
    Path(__file__).with_name("functions.md").write_text(page(), encoding="utf-8")
