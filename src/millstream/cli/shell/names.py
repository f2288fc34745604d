"""What can be named in a session, for completion.

Promises: the tables, columns, functions and options there are now.
Does not know: how they are offered."""

from __future__ import annotations

from millstream import options
from millstream.cli.shell.completion import Names
from millstream.sql.catalog.catalog import Catalogs
from millstream.sql.connectors.registry import known_connectors
from millstream.sql.functions.aggregates import AGGREGATES
from millstream.sql.functions.library import known_names


def names_of(catalogs: Catalogs) -> Names:
    """Everything that can be named."""
    tables: dict[str, list[str]] = {}
    for catalog in catalogs.all.values():
        for database in catalog.databases:
            for name in catalogs.table_names(catalog.name, database):
                full = (catalog.name, database, name)
                columns = list(catalogs.table(full)[1].schema.names)
                tables[".".join(full)] = columns
                if catalog.name == catalogs.current_catalog:
                    tables[f"{database}.{name}"] = columns
                    if database == catalogs.current_database:
                        tables[name] = columns
    builtin = {name for name in (*known_names(), *AGGREGATES) if name.isidentifier()}
    return Names(
        dict(sorted(tables.items(), key=lambda item: (item[0].count("."), item[0]))),
        sorted(builtin | set(catalogs.function_names())),
        sorted(
            {
                *(key for key, option in options.OPTIONS.items() if option.kind == "used"),
            }
        ),
        known_connectors(),
    )
