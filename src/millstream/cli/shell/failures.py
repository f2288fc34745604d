"""A statement that failed, and where it stands.

Promises: a person finds the statement by its number and line.
Does not know: what statements do."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Place:
    """A statement of a text: its number and line, from 1, and what the text is."""

    number: int
    line: int
    origin: str


class Failed(Exception):
    """A statement failed: why, and where it stands."""

    def __init__(self, error: Exception, place: Place) -> None:
        self.error, self.place = error, place
        super().__init__(str(error))

    @property
    def where(self) -> str:
        """The statement in words."""
        return f"statement {self.place.number} of {self.place.origin} (line {self.place.line}) failed: "
