"""Module: a set of functions that extends the built-in functions.

Promises: PyFlink's names. A module maps names to functions.
Does not know: how functions are called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Module:
    """A set of user-defined functions that are resolved like built-in functions while the module is loaded.

    Args:
        functions: The functions by name, as `udf`, `udtf`, `udaf` and `udtaf` return them.

    Example:
        >>> from millstream.table import DataTypes
        >>> from millstream.table.udf import udf
        >>> double = udf(lambda number: 2 * number, result_type=DataTypes.BIGINT())
        >>> list(Module({"double": double}).functions())
        ['double']

    """

    def __init__(self, functions: Mapping[str, Any] | None = None) -> None:
        self._functions = dict(functions or {})

    def functions(self) -> Mapping[str, Any]:
        """Return the functions by name."""
        return self._functions


class ModuleEntry:
    """The name of a loaded module, and whether it is in use.

    Example:
        >>> ModuleEntry("core", True).used()
        True

    """

    def __init__(self, name: str, used: bool) -> None:
        self._name, self._used = name, used

    def name(self) -> str:
        """Return the name of the module."""
        return self._name

    def used(self) -> bool:
        """Return whether the functions of the module are resolved."""
        return self._used

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ModuleEntry) and (self._name, self._used) == (other._name, other._used)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: ModuleEntry) -> bool:
        return self._name < other._name

    def __hash__(self) -> int:
        return hash((self._name, self._used))

    def __str__(self) -> str:
        return f"ModuleEntry{{name='{self._name}', used={str(self._used).lower()}}}"

    def __repr__(self) -> str:
        return f"ModuleEntry{{name='{self._name}', used={str(self._used).lower()}}}"
