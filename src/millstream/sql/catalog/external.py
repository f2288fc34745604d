"""What catalogs outside of the session have in common.

Promises: what such a catalog cannot hold is refused with a hint.
Does not know: catalogs of one type."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NoReturn

from millstream.sql.errors import CatalogError, SqlNotSupported, nearest


class NoFunctions(dict[str, Any]):
    """The functions of a database whose catalog stores only tables: an empty mapping that cannot be changed."""

    def __setitem__(self, name: str, function: Any) -> None:
        message = f"the catalog stores tables and views, not functions such as '{name}'"
        raise SqlNotSupported(message, hint="write CREATE TEMPORARY FUNCTION")


def check_options(name: str, options: Mapping[str, str], required: Collection[str], known: Collection[str]) -> None:
    """Refuse options of a catalog that are missing or unknown."""
    for key in required:
        if not options.get(key):
            message = f"catalog '{name}' has no option '{key}'"
            raise CatalogError(message, hint=f"a catalog of type '{options['type']}' needs {', '.join(required)}")
    for key in options:
        if key not in known and key not in required and key != "type":
            message = f"catalog '{name}' has an unknown option '{key}'"
            raise CatalogError(message, hint=nearest(key, [*required, *known]))


def refuse_change(catalog_type: str, action: str, hint: str) -> NoReturn:
    """Refuse a change that a type of catalog does not support."""
    message = f"a catalog of type '{catalog_type}' cannot {action}"
    raise SqlNotSupported(message, hint=hint)
