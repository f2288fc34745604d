"""Write options.md from the declarations of the options: python docs/reference/generate_options.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from millstream import sql_options
from millstream.options import OPTIONS, Option

INTRODUCTION = """\
# Options

All options. Keys, defaults and older keys are Flink's where Flink has the option.

This page is generated from the declarations in `millstream/options.py` and `millstream/sql_options.py`
(`python docs/reference/generate_options.py`).
"""


def page() -> str:
    """Return the page as text."""
    used = [option for option in OPTIONS.values() if option.kind == "used"]
    ignored = [option for option in OPTIONS.values() if option.kind == "ignored"]
    of_sql = [option for option in used if option.key.startswith(sql_options.SQL_PREFIXES)]
    of_jobs = [option for option in used if option not in of_sql]
    header = ["| key | default | description |", "|---|---|---|"]
    parts = [INTRODUCTION, "## Jobs and clusters\n", *header, *map(row, of_jobs)]
    parts += ["\n## SQL and Table API\n", *header, *map(row, of_sql)]
    parts.append(
        f"\n`{sql_options.PLAN_SECRETS_PREFIX}<table>.<option>` sets the value of a secret option of a "
        "table, which compiled plans do not contain."
    )
    if ignored:
        parts += [
            "\n## Accepted and ignored\n",
            "Options of Flink that have no effect here. A program that sets one runs, and a warning is logged once.\n",
            "| key | reason |",
            "|---|---|",
            *(f"| `{option.key}` | {cell(option.description)} |" for option in ignored),
        ]
    return "\n".join(parts) + "\n"


def row(option: Option[Any]) -> str:
    """Return the row of an option."""
    key = f"`{option.key}`"
    if option.fallback_keys:
        key += " (or " + ", ".join(f"`{name}`" for name in option.fallback_keys) + ")"
    text = option.description
    if option.choices:
        text += " One of " + ", ".join(f"`{choice}`" for choice in option.choices) + "."
    return f"| {key} | {default(option.default)} | {cell(text)} |"


def default(value: object) -> str:
    """Return a default value as it is written in a configuration."""
    if value is None:
        return "none"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def cell(text: str) -> str:
    """Escape the characters that would end a cell of the table."""
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    Path(__file__).with_name("options.md").write_text(page(), encoding="utf-8")
