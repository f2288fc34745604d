"""The description of a captured table, which the CDC sources of all databases share.

Promises: deserializers and the snapshot algorithm use only these members, so they work for every database.
Does not know: any particular database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from millstream.errors import UserError
from millstream.types.factory import RowTypeInfo


class CannotCapture(UserError):
    """Changes of a table or a server cannot be captured."""


class CapturedTable(Protocol):
    """A captured table: schema, name, and its columns with the database's description of their types."""

    @property
    def schema(self) -> str:
        """The schema, or the database in MySQL."""

    @property
    def name(self) -> str:
        """The name of the table."""

    @property
    def columns(self) -> tuple[tuple[str, Any], ...]:
        """The names of the columns, each with the description of its type."""

    @property
    def id(self) -> str:
        """The schema and the name."""

    def row_type(self) -> RowTypeInfo:
        """Return the type of its rows."""

    def read_texts(self, texts: Sequence[str | None]) -> list[Any]:
        """Return the values of a row whose values are given as text."""

    def source_fields(self, commit: int) -> dict[str, Any]:
        """Return the fields of Debezium's `source` that locate a change."""
