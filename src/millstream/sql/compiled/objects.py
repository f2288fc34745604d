"""Tables and functions of compiled plans: what is stored in a plan, and how it is found when the plan runs.

Promises: Flink's options. ALL stores whole definitions, so that the catalog may be empty when the plan runs; SCHEMA
stores definitions without options, IDENTIFIER only names. If the catalog has the table when the plan runs, it must have
the same columns, and its options are used. ALL_ENFORCED uses the plan only, except for secrets, which are
not stored in plans.
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
from millstream.sql.functions.model_functions import ModelFunction
from millstream.sql.functions.user_functions import UserFunction
from millstream.sql.physical.identity.identity import order_inputs_first
from millstream.sql.physical.nodes import Operation, Origin
from millstream.sql_options import PLAN_COMPILE_OBJECTS, PLAN_RESTORE_OBJECTS

Options = Callable[[str], str | None]


def _read_choice(options: Options, option: Option[str]) -> str:
    choice = (options(option.key) or option.default).upper()
    if choice not in option.choices:
        message = f"option '{option.key}' must be {', '.join(option.choices)}, not '{choice}'"
        raise SqlValidationError(message)
    return choice


# ------------------------------------------------------------------------------------------------------ functions


class NamedFunctions:
    """User-defined functions by their names in a catalog."""

    def __init__(self, catalogs: Catalogs) -> None:
        self._catalogs = catalogs

    def name(self, user: UserFunction) -> tuple[str, ...]:
        """Return the name of a registered function; a function without a name cannot be stored in a plan."""
        if isinstance(user, ModelFunction):
            message = f"a query that calls the model '{user.name}' cannot be compiled to a plan"
            raise SqlNotSupported(message, hint="execute the statement instead")
        catalogs = self._catalogs
        functions: list[tuple[tuple[str, ...], Any]] = [
            ((name,), function) for name, function in catalogs.system_functions.items()
        ]
        functions += [(path, function) for path, function in catalogs.temporary_functions.items()]
        for catalog in catalogs.all.values():
            for database, database_functions in catalog.databases.items():
                functions += [
                    ((catalog.name, database, name), function)
                    for name, function in database_functions.functions.items()
                ]
        functions += [((name,), catalogs.function((name,))) for name in (user.name,)]
        for path, function in functions:
            if isinstance(function, UserFunction) and function.function is user.function:
                return path
        message = f"function '{user.name}' is not registered, so a plan cannot refer to it"
        raise SqlNotSupported(message, hint="register it with create_temporary_system_function, and call it by name")

    def find(self, path: tuple[str, ...]) -> UserFunction:
        """Return the function of that name, which must be registered when the plan runs."""
        user = self._catalogs.function(path)
        if not isinstance(user, UserFunction):
            message = f"the plan calls function '{'.'.join(path)}', which is not registered"
            raise CatalogError(message, hint="register it before the plan runs")
        return user


# --------------------------------------------------------------------------------------------------------- tables


def write_tables(operations: Sequence[Operation], writer: Writer, options: Options) -> list[dict[str, Any]]:
    """Encode the tables that plans read, write and look up, each once, with the parts that the options select."""
    stored_parts = _read_choice(options, PLAN_COMPILE_OBJECTS)
    tables: dict[tuple[str, ...], TableDefinition] = {}
    for operation in order_inputs_first(operations):
        if isinstance(operation.origin, Origin):
            tables.setdefault(operation.origin.name, operation.origin.table)
    if stored_parts == "IDENTIFIER":
        return [{"name": list(name)} for name in tables]
    return [_write_table(name, table, writer, stored_parts) for name, table in tables.items()]


def _write_table(name: tuple[str, ...], table: TableDefinition, writer: Writer, stored_parts: str) -> dict[str, Any]:
    options, secrets = split_secrets(table.options) if stored_parts == "ALL" else ({}, [])
    entry = {"name": list(name), "definition": writer.plain(replace(table, options=options)), "holds": stored_parts}
    return {**entry, "secrets": secrets} if secrets else entry


class Tables:
    """Definitions of tables by name, from a plan and from a catalog."""

    def __init__(self, stored: Sequence[Any], reader: Reader, catalogs: Catalogs, options: Options) -> None:
        self._how = _read_choice(options, PLAN_RESTORE_OBJECTS)
        self._catalogs = catalogs
        self._stored = {tuple(entry["name"]): entry for entry in stored}
        self._reader, self._options = reader, options

    def hints(self, name: tuple[str, ...], hints: Sequence[Any]) -> tuple[tuple[str, str], ...]:
        """Return the OPTIONS hints of a table."""
        return resolve_hints(name, hints, self._options)

    def definition(self, name: tuple[str, ...]) -> TableDefinition:
        """Return the definition of a table."""
        entry = self._stored.get(name, {})
        planned = self._reader.value(entry["definition"]) if "definition" in entry else None
        entry_in_catalog = self._catalogs.find(name) if len(name) == 3 else None
        current = (
            entry_in_catalog[1]
            if entry_in_catalog is not None and isinstance(entry_in_catalog[1], TableDefinition)
            else None
        )
        if current is not None and self._how != "ALL_ENFORCED":
            if planned is not None and self._how == "ALL":
                _check_same_columns(name, planned, current)
            return current
        if self._how != "IDENTIFIER" and isinstance(planned, TableDefinition) and entry.get("holds") == "ALL":
            catalog = {} if current is None else current.options
            secrets = resolve_options(name, entry.get("secrets", ()), catalog, self._options)
            return replace(planned, options={**planned.options, **secrets})
        message = f"the plan uses table '{'.'.join(name)}', which is not in a catalog"
        hint = (
            "create it first"
            if self._how != "ALL_ENFORCED"
            else f"compile the plan with '{PLAN_COMPILE_OBJECTS.key}' = 'ALL'"
        )
        raise CatalogError(message, hint=hint)


def _check_same_columns(name: tuple[str, ...], planned: TableDefinition, current: TableDefinition) -> None:
    planned_columns, current_columns = (
        replace(planned, options={}, comment=None),
        replace(current, options={}, comment=None),
    )
    if planned_columns == current_columns:
        return
    before, after = {c.name: c for c in planned.columns}, {c.name: c for c in current.columns}
    changed = [column for column in dict.fromkeys((*before, *after)) if before.get(column) != after.get(column)]
    change = f"column '{changed[0]}' has changed" if changed else "its keys or its watermark have changed"
    message = f"table '{'.'.join(name)}' has changed since the plan was compiled: {change}"
    raise SqlValidationError(message, hint=f"compile again, or set '{PLAN_RESTORE_OBJECTS.key}' = 'ALL_ENFORCED'")
