"""Paths and identifiers of catalog objects.

Promises: PyFlink's names. Paths and identifiers compare by value.
Does not know: the objects."""

from __future__ import annotations

from functools import total_ordering

from millstream.errors import InvalidArgument


@total_ordering
class ObjectPath:
    """The path of an object in a catalog: a database and a name.

    Example:
        >>> ObjectPath.from_string("sales.orders").get_object_name()
        'orders'

    """

    def __init__(self, database_name: str | None = None, object_name: str | None = None) -> None:
        self._database, self._name = database_name or "", object_name or ""

    @staticmethod
    def from_string(full_name: str) -> ObjectPath:
        """Parse a path of the form `database.name`.

        Args:
            full_name: The text.

        Raises:
            InvalidArgument: If the text has another form.

        """
        database, _, name = full_name.partition(".")
        if not database or not name or "." in name:
            message = f"'{full_name}' is no path of the form database.name"
            raise InvalidArgument(message)
        return ObjectPath(database, name)

    def get_database_name(self) -> str:
        """Return the name of the database."""
        return self._database

    def get_object_name(self) -> str:
        """Return the name of the object."""
        return self._name

    def get_full_name(self) -> str:
        """Return the path as `database.name`."""
        return f"{self._database}.{self._name}"

    def compare_to(self, other: ObjectPath) -> int:
        """Compare two paths by their full names.

        Args:
            other: The other path.

        Returns:
            -1, 0 or 1, if this path is less than, equal to or greater than the other.

        """
        return (self.get_full_name() > other.get_full_name()) - (self.get_full_name() < other.get_full_name())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectPath) and self.get_full_name() == other.get_full_name()

    def __lt__(self, other: object) -> bool:
        return self.get_full_name() < other.get_full_name() if isinstance(other, ObjectPath) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.get_full_name())

    def __str__(self) -> str:
        return self.get_full_name()


class ObjectIdentifier:
    """The full identifier of an object: catalog, database and name.

    Example:
        >>> ObjectIdentifier.of("shop", "sales", "orders").as_serializable_string()
        '`shop`.`sales`.`orders`'

    """

    def __init__(self, catalog_name: str, database_name: str, object_name: str) -> None:
        self._parts = (catalog_name, database_name, object_name)

    @staticmethod
    def of(catalog_name: str, database_name: str, object_name: str) -> ObjectIdentifier:
        """Create an identifier.

        Args:
            catalog_name: The catalog.
            database_name: The database.
            object_name: The table, view, function or model.

        """
        return ObjectIdentifier(catalog_name, database_name, object_name)

    def get_catalog_name(self) -> str:
        """Return the name of the catalog."""
        return self._parts[0]

    def get_database_name(self) -> str:
        """Return the name of the database."""
        return self._parts[1]

    def get_object_name(self) -> str:
        """Return the name of the object."""
        return self._parts[2]

    def to_object_path(self) -> ObjectPath:
        """Return the path inside the catalog."""
        return ObjectPath(self._parts[1], self._parts[2])

    def to_list(self) -> list[str]:
        """Return catalog, database and name as a list."""
        return list(self._parts)

    def as_serializable_string(self) -> str:
        """Return the identifier as SQL, with each part in backticks."""
        return ".".join(f"`{part.replace('`', '``')}`" for part in self._parts)

    def as_summary_string(self) -> str:
        """Return the identifier for people, with dots between the parts."""
        return ".".join(self._parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectIdentifier) and self._parts == other._parts

    def __hash__(self) -> int:
        return hash(self._parts)

    def __str__(self) -> str:
        return self.as_summary_string()
