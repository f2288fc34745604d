"""Legacy options of tables: 'connector.type' and 'format.type', which Flink 2.3 still takes for CSV files.

Promises: a table with legacy options is read and written by the connector `filesystem` with the format `csv`; options
without a counterpart are refused with the name of the table.
Does not know: files, CSV.

Differences from Flink: a sink writes a directory of part files, as the connector `filesystem` does."""

from __future__ import annotations

import re
from dataclasses import replace

from millstream.sql.connector.table_connector import TableConnector, TableContext
from millstream.sql.errors import nearest

_TYPE, _FORMAT, _HEADER = "connector.type", "format.type", "format.ignore-first-line"
_OPTIONS = {
    "connector.path": "path",
    "format.field-delimiter": "csv.field-delimiter",
    "format.quote-character": "csv.quote-character",
    "format.ignore-parse-errors": "csv.ignore-parse-errors",
}
#: Options that repeat the schema of the table, or whose only useful value is the default.
_WITHOUT_EFFECT = re.compile(
    r"(connector|format)\.property-version|update-mode|format\.derive-schema|format\.line-delimiter"
    r"|(format\.fields|schema)\.\d+\.(name|data-type|type)|format\.(write-mode|num-files)"
)


def is_legacy(context: TableContext) -> bool:
    """Return whether a table has legacy options."""
    return "connector" not in context.options and _TYPE in context.options


def adapt_connector(context: TableContext, filesystem: TableConnector) -> TableConnector:
    """Return the connector of a table with legacy options.

    Args:
        context: The table.
        filesystem: The connector of files, which gets the options under their present names.

    """
    connector_type, format_type = context.options[_TYPE], context.options.get(_FORMAT)
    if connector_type != "filesystem" or format_type != "csv":
        message = f"the legacy options '{_TYPE}'='{connector_type}', '{_FORMAT}'='{format_type}' are not supported"
        hint = f"use 'connector'='{connector_type}'" + ("" if format_type is None else f", 'format'='{format_type}'")
        raise context.fail(message, hint)
    read, write = filesystem.read, filesystem.write
    assert read is not None
    assert write is not None
    return TableConnector(
        filesystem.name,
        read=lambda table: read(_translate(table)),
        write=lambda table: write(_translate(table)),
    )


def _translate(context: TableContext) -> TableContext:
    options = {"connector": "filesystem", "format": "csv", "csv.ignore-surplus-fields": "true"}
    for key, value in context.options.items():
        if key in _OPTIONS:
            options[_OPTIONS[key]] = value
        elif key == _HEADER:
            if value.lower() != "false":
                message = f"'{key}' = '{value}' is not supported: every line of a CSV file is a row"
                raise context.fail(message, "remove the first line of the files")
        elif key not in (_TYPE, _FORMAT) and not _WITHOUT_EFFECT.fullmatch(key):
            message = f"unknown option '{key}'"
            raise context.fail(message, nearest(key, _OPTIONS))
    return replace(context, options=options)
