"""Secrets of tables that a compiled plan refers to instead of holding them.

Promises: a plan holds no value of an option that is a secret, and no URL with a secret in it; in their place stands a
reference that is resolved when the plan is loaded, by the catalog's table or by an option of the session. A reference
that cannot be resolved is refused and named.
Does not know: files, nodes; which options are secrets is decided in `model.secrets`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from millstream.config.secrets import shown
from millstream.errors import UserError
from millstream.sql_options import PLAN_SECRETS_PREFIX

_REFERENCE = "secret"

Options = Callable[[str], str | None]


class PlanSecretMissing(UserError):
    """A compiled plan refers to a secret, and nothing says its value."""

    def __init__(self, table: tuple[str, ...], option: str) -> None:
        self.table, self.option = table, option
        super().__init__(
            f"option '{option}' of table '{'.'.join(table)}' is a secret, so the plan does not hold its value",
            hint=f"create the table before the plan is loaded, or set '{secret_key(table, option)}' to the value",
        )


def secret_key(table: tuple[str, ...], option: str) -> str:
    """The session option that gives the value of a table's secret option."""
    return f"{PLAN_SECRETS_PREFIX}{'.'.join(table)}.{option}"


def split_secrets(options: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Separate the options that a plan may hold from the names of those that it may not."""
    open_options = {key: value for key, value in options.items() if shown(key, value) == value}
    return open_options, [key for key in options if key not in open_options]


def hint_references(hints: Iterable[tuple[str, str]]) -> list[list[Any]]:
    """The OPTIONS hints of a table as a plan holds them: a secret value is a reference."""
    return [[key, value if shown(key, value) == value else {_REFERENCE: key}] for key, value in hints]


def resolve_hints(table: tuple[str, ...], hints: Iterable[Any], session: Options) -> tuple[tuple[str, str], ...]:
    """The OPTIONS hints of a table with the values of its secrets; the table's own options do not stand for a hint."""
    return tuple((key, value if isinstance(value, str) else _resolve(table, key, {}, session)) for key, value in hints)


def resolve_options(
    table: tuple[str, ...], missing: Iterable[str], catalog: Mapping[str, str], session: Options
) -> dict[str, str]:
    """The values of secret options, from the session or from the catalog's table of that name."""
    return {option: _resolve(table, option, catalog, session) for option in missing}


def _resolve(table: tuple[str, ...], option: str, catalog: Mapping[str, str], session: Options) -> str:
    value = session(secret_key(table, option)) or catalog.get(option)
    if value is None:
        raise PlanSecretMissing(table, option)
    return value
