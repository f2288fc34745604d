"""Modules: where built-in functions come from.

Promises: PyFlink's names; a module is functions under names.
Does not know: how functions are called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Module:
    """A set of functions, made of what `udf` and its kin return."""

    def __init__(self, functions: Mapping[str, Any] | None = None) -> None:
        self._functions = dict(functions or {})

    def functions(self) -> Mapping[str, Any]:
        """The functions by name."""
        return self._functions


class ModuleEntry:
    """A module and whether it is used."""

    def __init__(self, name: str, used: bool) -> None:
        self._name, self._used = name, used

    def name(self) -> str:
        """Its name."""
        return self._name

    def used(self) -> bool:
        """Whether its functions are found."""
        return self._used

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ModuleEntry) and (self._name, self._used) == (other._name, other._used)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: ModuleEntry) -> bool:
        return self._name < other._name

    def __hash__(self) -> int:
        return hash((self._name, self._used))

    def __repr__(self) -> str:
        return f"ModuleEntry({self._name!r}, {self._used})"
