"""The tables and functions that a compiled plan names: which are written into it, and where they are found again.

Promises: Flink's options. ALL writes whole definitions, so the catalog may be empty when the plan runs; SCHEMA leaves
the options of tables to the catalog, IDENTIFIER all but the name. A table that the catalog has by then must have the
columns it had; its options count, for they may have moved on. ALL_ENFORCED reads the plan alone, except for secrets,
which no plan holds.
Does not know: nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from millstream.config.option import Option
from millstream.sql.catalog.catalog import Catalogs, TableDefinition
from millstream.sql.compiled.codec import Reader, Writer
from millstream.sql.compiled.secrets import resolve_hints, resolve_options, split_secrets
from millstream.sql.errors import CatalogError, SqlNotSupported, SqlValidationError
from millstream.sql.functions.user_functions import UserFunction
from millstream.sql.physical.identity.identity import inputs_first
from millstream.sql.physical.nodes import Operation, Origin
from millstream.sql_options import PLAN_COMPILE_OBJECTS, PLAN_RESTORE_OBJECTS

Options = Callable[[str], str | None]


def _read_choice(options: Options, option: Option[str]) -> str:
    word = (options(option.key) or option.default).upper()
    if word not in option.choices:
        message = f"option '{option.key}' must be {', '.join(option.choices)}, not '{word}'"
        raise SqlValidationError(message)
    return word


# ------------------------------------------------------------------------------------------------------ functions


class NamedFunctions:
    """Users' functions by the names that a catalog has for them."""

    def __init__(self, catalogs: Catalogs) -> None:
        self._catalogs = catalogs

    def name(self, user: UserFunction) -> tuple[str, ...]:
        """The name under which a function is registered; one that has none cannot be written into a plan."""
        catalogs = self._catalogs
        known: list[tuple[tuple[str, ...], Any]] = [((name,), each) for name, each in catalogs.system_functions.items()]
        known += [(path, each) for path, each in catalogs.temporary_functions.items()]
        for catalog in catalogs.all.values():
            for database, found in catalog.databases.items():
                known += [((catalog.name, database, name), each) for name, each in found.functions.items()]
        known += [((name,), catalogs.function((name,))) for name in (user.name,)]
        for path, each in known:
            if isinstance(each, UserFunction) and each.function is user.function:
                return path
        message = f"function '{user.name}' has no name in a catalog, so a plan cannot find it again"
        raise SqlNotSupported(message, hint="register it with create_temporary_system_function, and call it by name")

    def found(self, path: tuple[str, ...]) -> UserFunction:
        """The function of that name, which must be registered by now."""
        user = self._catalogs.function(path)
        if not isinstance(user, UserFunction):
            message = f"the plan calls function '{'.'.join(path)}', which is not registered"
            raise CatalogError(message, hint="register it before the plan runs")
        return user


# --------------------------------------------------------------------------------------------------------- tables


def written_tables(operations: Sequence[Operation], writer: Writer, options: Options) -> list[dict[str, Any]]:
    """The tables that plans read, write and look up, each once, as far as they are to be written."""
    how = _read_choice(options, PLAN_COMPILE_OBJECTS)
    found: dict[tuple[str, ...], TableDefinition] = {}
    for operation in inputs_first(operations):
        if isinstance(operation.origin, Origin):
            found.setdefault(operation.origin.name, operation.origin.table)
    if how == "IDENTIFIER":
        return [{"name": list(name)} for name in found]
    return [_written_table(name, each, writer, how) for name, each in found.items()]


def _written_table(name: tuple[str, ...], table: TableDefinition, writer: Writer, how: str) -> dict[str, Any]:
    options, secrets = split_secrets(table.options) if how == "ALL" else ({}, [])
    made = {"name": list(name), "definition": writer.plain(replace(table, options=options)), "holds": how}
    return {**made, "secrets": secrets} if secrets else made


class Tables:
    """Definitions of tables by name, from a plan and from a catalog."""

    def __init__(self, stored: Sequence[Any], reader: Reader, catalogs: Catalogs, options: Options) -> None:
        self._how = _read_choice(options, PLAN_RESTORE_OBJECTS)
        self._catalogs = catalogs
        self._stored = {tuple(each["name"]): each for each in stored}
        self._reader, self._options = reader, options

    def hints(self, name: tuple[str, ...], hints: Sequence[Any]) -> tuple[tuple[str, str], ...]:
        """The OPTIONS hints of the table of that name."""
        return resolve_hints(name, hints, self._options)

    def definition(self, name: tuple[str, ...]) -> TableDefinition:
        """The table of that name."""
        entry = self._stored.get(name, {})
        planned = self._reader.value(entry["definition"]) if "definition" in entry else None
        found = self._catalogs.find(name) if len(name) == 3 else None
        current = found[1] if found is not None and isinstance(found[1], TableDefinition) else None
        if current is not None and self._how != "ALL_ENFORCED":
            if planned is not None and self._how == "ALL":
                _same_columns(name, planned, current)
            return current
        if self._how != "IDENTIFIER" and isinstance(planned, TableDefinition) and entry.get("holds") == "ALL":
            catalog = {} if current is None else current.options
            secrets = resolve_options(name, entry.get("secrets", ()), catalog, self._options)
            return replace(planned, options={**planned.options, **secrets})
        message = f"the plan uses table '{'.'.join(name)}', which is in no catalog"
        told = (
            "create it first"
            if self._how != "ALL_ENFORCED"
            else f"compile the plan with '{PLAN_COMPILE_OBJECTS.key}' = 'ALL'"
        )
        raise CatalogError(message, hint=told)


def _same_columns(name: tuple[str, ...], planned: TableDefinition, current: TableDefinition) -> None:
    mine, theirs = replace(planned, options={}, comment=None), replace(current, options={}, comment=None)
    if mine == theirs:
        return
    before, after = {c.name: c for c in planned.columns}, {c.name: c for c in current.columns}
    changed = [column for column in dict.fromkeys((*before, *after)) if before.get(column) != after.get(column)]
    what = f"column '{changed[0]}' has changed" if changed else "its keys or its watermark have changed"
    message = f"table '{'.'.join(name)}' is not what it was when the plan was compiled: {what}"
    raise SqlValidationError(message, hint=f"compile again, or set '{PLAN_RESTORE_OBJECTS.key}' = 'ALL_ENFORCED'")
