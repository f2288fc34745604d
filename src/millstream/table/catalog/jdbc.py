"""JdbcCatalog: the tables of a database server as a catalog.

Promises: PyFlink's constructor; the catalog is the one of `CREATE CATALOG ... WITH ('type' = 'jdbc')`.
Does not know: how the server is read."""

from __future__ import annotations

from millstream.sql.catalog.jdbc import open_jdbc_catalog
from millstream.table.catalog.catalog import Catalog


class JdbcCatalog(Catalog):
    """The databases and tables of a PostgreSQL server, as a catalog that is read only.

    Args:
        catalog_name: The name of the catalog.
        default_database: The database that `TableEnvironment.use_catalog` makes the current one.
        username: The name of the user.
        pwd: The password.
        base_url: The URL of the server without a database, such as `jdbc:postgresql://localhost:5432/`.

    Raises:
        InvalidJdbcOption: If the URL is not one of a PostgreSQL server.

    Example:
        >>> JdbcCatalog("shop", "orders", "reader", "secret", "jdbc:postgresql://localhost:5432")
        JdbcCatalog(name='shop')

    """

    def __init__(self, catalog_name: str, default_database: str, username: str, pwd: str, base_url: str) -> None:
        options = {
            "type": "jdbc",
            "base-url": base_url,
            "default-database": default_database,
            "username": username,
            "password": pwd,
        }
        super().__init__(open_jdbc_catalog(catalog_name, options))

    def __repr__(self) -> str:
        return f"JdbcCatalog(name={self._catalog.name!r})"
