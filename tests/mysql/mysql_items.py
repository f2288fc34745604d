"""The table that these tests change, as a source of changes reads it."""

from __future__ import annotations

from typing import Any

from millstream.datastream.connectors.mysql_cdc import MySqlSource, MySqlSourceBuilder


def builder(database: Any, *tables: str) -> MySqlSourceBuilder:
    server = database.server
    return (
        MySqlSource.builder().hostname(server.host).port(server.port).username(server.user).password(server.password)
        .table_list(*(tables or (f"{database.name}.items",))).split_size(1)
    )  # fmt: skip


def table_of(database: Any, table: str = "items") -> dict[Any, list[Any]]:
    return {(row[0],): list(row) for row in database.execute(f"SELECT * FROM {table}")}
