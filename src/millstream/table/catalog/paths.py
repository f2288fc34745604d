"""Where an object of a catalog is.

Promises: PyFlink's names; paths and identifiers are values.
Does not know: what is there."""

from __future__ import annotations

from functools import total_ordering


@total_ordering
class ObjectPath:
    """A database and a name in it."""

    def __init__(self, database_name: str | None = None, object_name: str | None = None) -> None:
        self._database, self._name = database_name or "", object_name or ""

    @staticmethod
    def from_string(full_name: str) -> ObjectPath:
        """The path of database.name."""
        database, _, name = full_name.partition(".")
        return ObjectPath(database, name)

    def get_database_name(self) -> str:
        """The database."""
        return self._database

    def get_object_name(self) -> str:
        """The name."""
        return self._name

    def get_full_name(self) -> str:
        """Both, with a dot between."""
        return f"{self._database}.{self._name}"

    def compare_to(self, other: ObjectPath) -> int:
        """Less than, equal to or greater than 0."""
        return (self.get_full_name() > other.get_full_name()) - (self.get_full_name() < other.get_full_name())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectPath) and self.get_full_name() == other.get_full_name()

    def __lt__(self, other: ObjectPath) -> bool:
        return self.get_full_name() < other.get_full_name()

    def __hash__(self) -> int:
        return hash(self.get_full_name())

    def __str__(self) -> str:
        return self.get_full_name()


class ObjectIdentifier:
    """Catalog, database and name."""

    def __init__(self, catalog_name: str, database_name: str, object_name: str) -> None:
        self._parts = (catalog_name, database_name, object_name)

    @staticmethod
    def of(catalog_name: str, database_name: str, object_name: str) -> ObjectIdentifier:
        """An identifier."""
        return ObjectIdentifier(catalog_name, database_name, object_name)

    def get_catalog_name(self) -> str:
        """The catalog."""
        return self._parts[0]

    def get_database_name(self) -> str:
        """The database."""
        return self._parts[1]

    def get_object_name(self) -> str:
        """The name."""
        return self._parts[2]

    def to_object_path(self) -> ObjectPath:
        """Database and name."""
        return ObjectPath(self._parts[1], self._parts[2])

    def to_list(self) -> list[str]:
        """The three parts."""
        return list(self._parts)

    def as_serializable_string(self) -> str:
        """The parts in backticks."""
        return ".".join(f"`{part.replace('`', '``')}`" for part in self._parts)

    def as_summary_string(self) -> str:
        """The parts with dots."""
        return ".".join(self._parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectIdentifier) and self._parts == other._parts

    def __hash__(self) -> int:
        return hash(self._parts)

    def __str__(self) -> str:
        return self.as_summary_string()
