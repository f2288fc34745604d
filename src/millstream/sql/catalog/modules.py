"""Modules: sets of functions that are visible in every catalog.

Promises: functions are found in the order in which modules are used. Built-in functions are the module `core`; as in
Flink they are part of the language: if `core` is not used, they are resolved after all used modules. A refused change
has no effect.
Does not know: how functions are called."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import entry_points
from typing import Any

from millstream.sql.errors import CatalogError, nearest
from millstream.sql.functions.savepoint_metadata import create_savepoint_metadata

CORE, STATE = "core", "state"
GROUP = "millstream.table_modules"


class Modules:
    """The modules of a session: which are loaded, and which are used in which order."""

    def __init__(self) -> None:
        self._loaded: dict[str, Mapping[str, Any]] = {CORE: {}}
        self._used: list[str] = [CORE]

    def load(self, name: str, functions: Mapping[str, Any], at: int | None = None) -> None:
        """Load a module, and use it after the others."""
        self.check_new(name, at)
        self._loaded[name] = {key.lower(): function for key, function in functions.items()}
        self._used.append(name)

    def check_new(self, name: str, at: int | None = None) -> None:
        """Refuse the name of a module that is loaded."""
        if name in self._loaded:
            message = f"there is a module '{name}' already"
            raise CatalogError(message, at=at)

    def unload(self, name: str, at: int | None = None) -> None:
        """Unload a module."""
        self._check_loaded(name, at)
        del self._loaded[name]
        if name in self._used:
            self._used.remove(name)

    def use(self, names: Sequence[str], at: int | None = None) -> None:
        """Use these modules in this order, and no others."""
        for name in names:
            self._check_loaded(name, at)
            if names.count(name) > 1:
                message = f"the module '{name}' is listed twice"
                raise CatalogError(message, at=at)
        self._used = list(names)

    def _check_loaded(self, name: str, at: int | None) -> None:
        if name not in self._loaded:
            message = f"there is no module '{name}'"
            raise CatalogError(message, at=at, hint=nearest(name, self._loaded))

    def find(self, name: str, is_core: Callable[[str], bool]) -> Any:
        """Return the function of a lower-case name; None if there is none, or if the first one is in `core`."""
        for module in self._used:
            if module == CORE and is_core(name):
                return None
            if name in self._loaded[module]:
                return self._loaded[module][name]
        return None

    @property
    def uses_core(self) -> bool:
        """Whether the built-in functions are in use."""
        return CORE in self._used

    def function_names(self) -> Iterable[str]:
        """Iterate over the functions of all used modules, except for `core`."""
        for module in self._used:
            yield from self._loaded[module]

    def list_modules(self) -> list[tuple[str, bool]]:
        """Return all modules and whether they are used; used ones first, in order."""
        rest = [name for name in self._loaded if name not in self._used]
        return [*((name, True) for name in self._used), *((name, False) for name in rest)]


def load_installed_module(name: str, options: Mapping[str, str], at: int | None) -> Mapping[str, Any]:
    """Return the functions of a built-in or installed module.

    The entry point of an installed module is a function from options to functions by name."""
    if name == CORE:
        return {}
    if name == STATE:
        return {"savepoint_metadata": create_savepoint_metadata()}
    modules = {entry_point.name: entry_point for entry_point in entry_points(group=GROUP)}
    if name not in modules:
        message = f"no module '{name}' is installed"
        hint = nearest(name, [*modules, STATE]) or f"a package offers one by an entry point of the group {GROUP}"
        raise CatalogError(message, at=at, hint=hint)
    functions: Mapping[str, Any] = modules[name].load()(dict(options))
    return functions
