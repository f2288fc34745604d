"""CREATE, ALTER and DROP FUNCTION, LOAD and UNLOAD MODULE.

Promises: a function is imported before it is registered; temporary functions, system functions and functions of a
database have separate names.
Does not know: calls of functions."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

from millstream.sql.catalog.catalog import Catalogs
from millstream.sql.catalog.modules import load_installed_module
from millstream.sql.ddl.results import OK, StatementResult
from millstream.sql.errors import CatalogError, SqlNotSupported, nearest
from millstream.sql.functions.user_functions import UserFunction
from millstream.sql.syntax import tree as s


class FunctionStatements:
    """Executes statements about functions and modules; `wrap` creates a function from a Python object."""

    def __init__(self, catalogs: Catalogs, wrap: Callable[[str, Any], UserFunction]) -> None:
        self._catalogs = catalogs
        self._wrap = wrap

    def create(self, node: s.CreateFunction) -> StatementResult:
        """CREATE FUNCTION."""
        if node.language != "PYTHON":
            message = f"functions in {node.language} are not supported"
            raise SqlNotSupported(message, at=node.at, hint="write it in Python: ... AS 'module.name' LANGUAGE PYTHON")
        function = self.load(node.target, node.name[-1], node.at)
        self.register(
            node.name,
            function,
            temporary=node.temporary,
            system=node.system,
            if_not_exists=node.if_not_exists,
            at=node.at,
        )
        return OK

    def load(self, target: str, name: str, at: int | None = None) -> UserFunction:
        """Import a Python object by its qualified name and return it as a function."""
        module, _, attribute = target.rpartition(".")
        try:
            target_object = getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError, ValueError) as error:
            message = f"function '{target}' cannot be imported: {error}"
            raise CatalogError(
                message, at=at, hint="write 'module.name', and check that the module is on the Python path"
            ) from None
        return self._wrap(name, target_object)

    def register(
        self,
        path: tuple[str, ...],
        function: UserFunction,
        *,
        temporary: bool,
        system: bool = False,
        if_not_exists: bool = False,
        at: int | None = None,
    ) -> None:
        """Register a user-defined function."""
        functions, key = self._find_registry(path, temporary, system, at)
        if key in functions and if_not_exists:
            return
        if key in functions and not (system or temporary):
            message = f"function '{'.'.join(path)}' already exists"
            raise CatalogError(message, at=at)
        functions[key] = function

    def drop(
        self, path: tuple[str, ...], *, temporary: bool, system: bool, if_exists: bool, at: int | None = None
    ) -> bool:
        """Drop a user-defined function; return False if it does not exist and `if_exists` is set."""
        functions, key = self._find_registry(path, temporary, system, at)
        if key not in functions:
            if if_exists:
                return False
            message = f"there is no function '{'.'.join(path)}'"
            raise CatalogError(message, at=at, hint=nearest(path[-1], self._catalogs.function_names()))
        del functions[key]
        return True

    def _find_registry(
        self, path: tuple[str, ...], temporary: bool, system: bool, at: int | None
    ) -> tuple[MutableMapping[Any, Any], Any]:
        """Return the functions among which a name is looked up, and its key there."""
        catalog, database, name = self._catalogs.full_name(path, at)
        if system:
            return self._catalogs.system_functions, path[-1].lower()
        if temporary:
            return self._catalogs.temporary_functions, (catalog, database, name.lower())
        return self._catalogs.database(catalog, database, at).functions, name.lower()

    def alter(self, node: s.Alter) -> StatementResult:
        """ALTER FUNCTION."""
        if node.temporary:
            message = "a temporary function cannot be altered"
            raise SqlNotSupported(message, at=node.at, hint="drop it and create it again")
        assert isinstance(node.action, s.SetFunctionTarget)
        catalog, database, name = self._catalogs.full_name(node.name, node.at)
        if node.if_exists and name.lower() not in self._catalogs.database(catalog, database, node.at).functions:
            return OK
        function = self.load(node.action.target, node.name[-1], node.at)
        self.drop(node.name, temporary=False, system=False, if_exists=node.if_exists, at=node.at)
        self.register(node.name, function, temporary=False, at=node.at)
        return OK

    def execute_module(self, node: s.Module) -> StatementResult:
        """LOAD and UNLOAD MODULE."""
        if node.action == "UNLOAD":
            self._catalogs.modules.unload(node.name, node.at)
            return OK
        self._catalogs.modules.check_new(node.name, node.at)
        self.load_module(node.name, load_installed_module(node.name, dict(node.options), node.at), node.at)
        return OK

    def load_module(self, name: str, functions: Mapping[str, Any], at: int | None = None) -> None:
        """Load a module with user-defined functions."""
        wrapped = {
            key: function if isinstance(function, UserFunction) else self._wrap(key, function)
            for key, function in functions.items()
        }
        self._catalogs.modules.load(name, wrapped, at)
