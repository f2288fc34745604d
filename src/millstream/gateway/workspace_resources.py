"""REST resources for editors of SQL: problems of a statement, completions, and the tables that exist. Flink's gateway
has no such resources, so the names are those of millstream.

Promises: nothing is executed. A statement that cannot be checked in time has no problems.
Does not know: sessions, how statements are planned."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import APIRouter, Body
from typing_extensions import TypedDict

from millstream.gateway.context import GatewayContext
from millstream.gateway.session_resources import CompleteStatement, SessionPath
from millstream.sql.catalog.catalog import Catalogs, ViewDefinition
from millstream.sql.errors import SqlError

_WORD = re.compile(r"`[^`]*`|'[^']*'|[\w$]+|.", re.DOTALL)
_MOST_TABLES = 1_000


class CheckStatement(TypedDict):
    """The body that asks for problems of one statement."""

    statement: str


class Problem(TypedDict):
    """A problem of a statement, and the range of its characters."""

    start: int
    end: int
    message: str
    hint: str | None


class Column(TypedDict):
    """A column of a table."""

    name: str
    type: str


class TableObject(TypedDict):
    """A table or view."""

    name: str
    kind: str
    columns: list[Column]


class DatabaseObject(TypedDict):
    """A database with its tables and views."""

    name: str
    tables: list[TableObject]


class CatalogObject(TypedDict):
    """A catalog with its databases."""

    name: str
    databases: list[DatabaseObject]


class CatalogTree(TypedDict):
    """The names that a session can use, and its current catalog and database; `complete` says whether all tables are
    listed."""

    catalog: str
    database: str
    catalogs: list[CatalogObject]
    complete: bool


def create_router(context: GatewayContext) -> APIRouter:
    """Return the routes."""
    router = APIRouter(prefix="/workspace/{session_handle}", tags=["workspace"])
    sessions = context.sessions

    @router.post("/check")
    def check_statement(session_handle: SessionPath, body: Annotated[CheckStatement, Body()]) -> list[Problem]:
        """Return the problems of a statement: syntax errors, unknown names, wrong types."""
        statement = body["statement"]
        problem = sessions.get(session_handle).check(statement)
        return [] if problem is None else [_describe(problem, statement)]

    @router.post("/complete")
    def complete_statement(session_handle: SessionPath, body: Annotated[CompleteStatement, Body()]) -> list[str]:
        """Return the texts that can replace the word before a position."""
        session = sessions.get(session_handle)
        return context.complete(body["statement"], body["position"], session.catalogs())

    @router.get("/catalogs")
    def get_catalogs(session_handle: SessionPath) -> CatalogTree:
        """Return the catalogs, databases and tables of a session."""
        return _describe_catalogs(sessions.get(session_handle).catalogs())

    return router


def _describe(problem: SqlError, statement: str) -> Problem:
    start = problem.at
    if start is None and problem.about:
        start = max(0, statement.lower().find(problem.about.lower()))
    start = min(max(start or 0, 0), len(statement))
    word = _WORD.match(statement, start)
    return {
        "start": start,
        "end": start if word is None else word.end(),
        "message": problem.problem,
        "hint": problem.hint,
    }


def _describe_catalogs(catalogs: Catalogs) -> CatalogTree:
    described: list[CatalogObject] = []
    remaining = _MOST_TABLES
    complete = True
    for catalog in catalogs.all.values():
        databases: list[DatabaseObject] = []
        for database in catalog.databases:
            names = catalogs.table_names(catalog.name, database)
            complete = complete and len(names) <= remaining
            tables = [_describe_table(catalogs, (catalog.name, database, name)) for name in names[:remaining]]
            remaining -= len(tables)
            databases.append({"name": database, "tables": tables})
        described.append({"name": catalog.name, "databases": databases})
    return {
        "catalog": catalogs.current_catalog,
        "database": catalogs.current_database,
        "catalogs": described,
        "complete": complete,
    }


def _describe_table(catalogs: Catalogs, full_name: tuple[str, str, str]) -> TableObject:
    table = catalogs.table(full_name)[1]
    columns = zip(table.schema.names, table.schema.types, strict=True)
    return {
        "name": full_name[2],
        "kind": "view" if isinstance(table, ViewDefinition) else "table",
        "columns": [{"name": name, "type": str(data_type)} for name, data_type in columns],
    }
