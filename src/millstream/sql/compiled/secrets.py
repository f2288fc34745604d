"""Secrets of tables that a compiled plan refers to instead of holding them.

Promises: a plan holds no value of an option that is a secret, and no URL with a secret in it. It holds a reference
instead, which is resolved when the plan is loaded, by the catalog's table or by an option of the session. A reference
that cannot be resolved is refused and named.
Does not know: files, nodes; which options are secrets is decided in `config.secrets`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from millstream.config.secrets import mask_secret
from millstream.errors import UserError
from millstream.sql_options import PLAN_SECRETS_PREFIX

_REFERENCE = "secret"

Options = Callable[[str], str | None]


class PlanSecretMissing(UserError):
    """A compiled plan refers to a secret that has no value."""

    def __init__(self, table: tuple[str, ...], option: str) -> None:
        self.table, self.option = table, option
        super().__init__(
            f"option '{option}' of table '{'.'.join(table)}' is a secret, so the plan does not hold its value",
            hint=f"create the table before the plan is loaded, or set '{get_secret_key(table, option)}' to the value",
        )


def get_secret_key(table: tuple[str, ...], option: str) -> str:
    """Return the session option for the value of a table's secret option."""
    return f"{PLAN_SECRETS_PREFIX}{'.'.join(table)}.{option}"


def split_secrets(options: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Separate the options that a plan may hold from the names of those that it may not."""
    open_options = {key: value for key, value in options.items() if mask_secret(key, value) == value}
    return open_options, [key for key in options if key not in open_options]


def write_hints(hints: Iterable[tuple[str, str]]) -> list[list[Any]]:
    """Return the OPTIONS hints of a table as a plan stores them: a secret value is a reference."""
    return [[key, value if mask_secret(key, value) == value else {_REFERENCE: key}] for key, value in hints]


def resolve_hints(table: tuple[str, ...], hints: Iterable[Any], session: Options) -> tuple[tuple[str, str], ...]:
    """Return the OPTIONS hints of a table with the values of secrets; options of the table are not used for hints."""
    return tuple((key, value if isinstance(value, str) else _resolve(table, key, {}, session)) for key, value in hints)


def resolve_options(
    table: tuple[str, ...], missing: Iterable[str], catalog: Mapping[str, str], session: Options
) -> dict[str, str]:
    """Return the values of secret options, from the session or from the catalog's table of that name."""
    return {option: _resolve(table, option, catalog, session) for option in missing}


def _resolve(table: tuple[str, ...], option: str, catalog: Mapping[str, str], session: Options) -> str:
    value = session(get_secret_key(table, option)) or catalog.get(option)
    if value is None:
        raise PlanSecretMissing(table, option)
    return value
