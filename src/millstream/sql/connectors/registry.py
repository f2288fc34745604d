"""The registry of table connectors, by the value of the option `connector`.

Promises: built-in connectors are listed here; connectors of other packages are found by the entry point group
`millstream.table_connectors`, and are loaded when a table names them.
Does not know: what a connector reads or writes."""

from __future__ import annotations

from importlib.metadata import entry_points

from millstream.sql.connector.table_connector import TableConnector, TableContext
from millstream.sql.connectors import (
    elasticsearch,
    faker,
    filesystem,
    http_lookup,
    http_sink,
    jdbc,
    kafka,
    lakehouse,
    legacy,
    mysql_cdc,
    postgres_cdc,
    redis,
    savepoint,
    simple,
)
from millstream.sql.errors import nearest

_GROUP = "millstream.table_connectors"
_BUILT_IN = (
    *simple.CONNECTORS,
    *elasticsearch.CONNECTORS,
    *faker.CONNECTORS,
    *filesystem.CONNECTORS,
    *http_lookup.CONNECTORS,
    *http_sink.CONNECTORS,
    *jdbc.CONNECTORS,
    *kafka.CONNECTORS,
    *lakehouse.CONNECTORS,
    *mysql_cdc.CONNECTORS,
    *postgres_cdc.CONNECTORS,
    *redis.CONNECTORS,
    *savepoint.CONNECTORS,
)
_CONNECTORS = {connector.name: connector for connector in _BUILT_IN}


def register(connector: TableConnector) -> None:
    """Add a connector; it replaces a connector of the same name."""
    _CONNECTORS[connector.name] = connector


def list_connectors() -> list[str]:
    """Return the names of all connectors, sorted."""
    return sorted({*_CONNECTORS, *(entry.name for entry in entry_points(group=_GROUP))})


def find_connector(context: TableContext) -> TableConnector:
    """Return the connector of a table; raise if its option `connector` is missing or names no connector."""
    if legacy.is_legacy(context):
        return legacy.adapt_connector(context, _CONNECTORS["filesystem"])
    name = context.options.get("connector")
    if name is None:
        message = "option 'connector' is missing"
        raise context.fail(message, f"set it to one of {', '.join(list_connectors())}")
    if name not in _CONNECTORS:
        for entry in entry_points(group=_GROUP):
            if entry.name == name:
                register(entry.load())
    if name not in _CONNECTORS:
        message = f"there is no connector '{name}'"
        raise context.fail(message, nearest(name, list_connectors()))
    return _CONNECTORS[name]
