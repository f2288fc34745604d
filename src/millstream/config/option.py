"""Options of the system: each is declared once, as a constant, and listed in `OPTIONS`.

Promises: no two options have the same key.
Does not know: which options there are; `millstream.options` and `millstream.sql_options` declare them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from millstream.config.configuration import ConfigOption

T = TypeVar("T")

#: Every option, by its key.
OPTIONS: dict[str, Option[Any]] = {}


@dataclass(frozen=True)
class Option(ConfigOption[T]):
    """A ConfigOption that is part of the system; an option with `kind="ignored"` has no effect."""

    kind: Literal["used", "ignored"] = "used"

    def __post_init__(self) -> None:
        if self.key in OPTIONS:
            message = f"option {self.key} is declared twice"
            raise ValueError(message)
        OPTIONS[self.key] = self
