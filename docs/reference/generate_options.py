"""Writes options.md from the options as they are declared: python docs/reference/generate_options.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from millstream.options import OPTIONS, Option

INTRODUCTION = """\
# Options

Every option, as declared in `millstream/options.py`; this page is generated from there
(`python docs/reference/generate_options.py`). Keys, defaults and older keys are Flink's where Flink has the option.
"""


def page() -> str:
    """The whole page."""
    used = [option for option in OPTIONS.values() if option.kind == "used"]
    ignored = [option for option in OPTIONS.values() if option.kind == "ignored"]
    parts = [INTRODUCTION, "| key | default | what it does |", "|---|---|---|", *map(row, used)]
    if ignored:
        parts += [
            "\n## Accepted and ignored\n",
            "Flink's options that have no meaning here: a program that sets one runs, and is told so once.\n",
            "| key | why it has no meaning here |",
            "|---|---|",
            *(f"| `{option.key}` | {cell(option.description)} |" for option in ignored),
        ]
    return "\n".join(parts) + "\n"


def row(option: Option[Any]) -> str:
    """One option as a row of the table."""
    key = f"`{option.key}`"
    if option.fallback_keys:
        key += " (or " + ", ".join(f"`{name}`" for name in option.fallback_keys) + ")"
    text = option.description
    if option.choices:
        text += " One of " + ", ".join(f"`{choice}`" for choice in option.choices) + "."
    return f"| {key} | {default(option.default)} | {cell(text)} |"


def default(value: object) -> str:
    """A default as it would be written in a configuration."""
    if value is None:
        return "none"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def cell(text: str) -> str:
    """Text that cannot end its cell."""
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    Path(__file__).with_name("options.md").write_text(page(), encoding="utf-8")
