"""The users' functions and modules under their names.

Promises: a function that cannot be imported has no name; temporary and system names are apart from a database's.
Does not know: calls."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from millstream.sql.catalog.catalog import Catalogs
from millstream.sql.catalog.modules import installed
from millstream.sql.ddl.answers import OK, Answer
from millstream.sql.errors import CatalogError, SqlNotSupported, nearest
from millstream.sql.functions.user_functions import UserFunction
from millstream.sql.syntax import tree as s


class NamedFunctions:
    """Gives functions their names and takes them away; `wrap` makes a user's object a function."""

    def __init__(self, catalogs: Catalogs, wrap: Callable[[str, Any], UserFunction]) -> None:
        self._catalogs = catalogs
        self._wrap = wrap

    def create(self, node: s.CreateFunction) -> Answer:
        """CREATE FUNCTION."""
        if node.language != "PYTHON":
            message = f"functions in {node.language} are not supported"
            raise SqlNotSupported(message, at=node.at, hint="write it in Python: ... AS 'module.name' LANGUAGE PYTHON")
        function = self.loaded(node.target, node.name[-1], node.at)
        self.register(
            node.name,
            function,
            temporary=node.temporary,
            system=node.system,
            if_not_exists=node.if_not_exists,
            at=node.at,
        )
        return OK

    def loaded(self, target: str, name: str, at: int | None = None) -> UserFunction:
        """The function that a Python name stands for."""
        module, _, attribute = target.rpartition(".")
        try:
            found = getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError, ValueError) as problem:
            message = f"function '{target}' cannot be imported: {problem}"
            raise CatalogError(
                message, at=at, hint="give module.name, and see that the module can be imported"
            ) from None
        return self._wrap(name, found)

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
        """Give a user's function its name."""
        full = self._catalogs.full_name(path, at)
        key = (full[0], full[1], full[2].lower())
        table: dict[Any, Any]
        place: Any
        if system:
            table, place = self._catalogs.system_functions, path[-1].lower()
        elif temporary:
            table, place = self._catalogs.temporary_functions, key
        else:
            table, place = self._catalogs.database(full[0], full[1], at).functions, key[2]
        if place in table and if_not_exists:
            return
        if place in table and not (system or temporary):
            message = f"there is a function '{'.'.join(path)}' already"
            raise CatalogError(message, at=at)
        table[place] = function

    def drop(
        self, path: tuple[str, ...], *, temporary: bool, system: bool, if_exists: bool, at: int | None = None
    ) -> bool:
        """Forget a user's function; False when it was not there and need not be."""
        full = self._catalogs.full_name(path, at)
        key = (full[0], full[1], full[2].lower())
        if system:
            table: dict[Any, Any] = self._catalogs.system_functions
            place: Any = path[-1].lower()
        elif temporary:
            table, place = self._catalogs.temporary_functions, key
        else:
            table, place = self._catalogs.database(full[0], full[1], at).functions, key[2]
        if place not in table:
            if if_exists:
                return False
            message = f"there is no function '{'.'.join(path)}'"
            raise CatalogError(message, at=at, hint=nearest(path[-1], self._catalogs.function_names()))
        del table[place]
        return True

    def alter(self, node: s.Alter) -> Answer:
        """ALTER FUNCTION."""
        if node.temporary:
            message = "a temporary function cannot be altered"
            raise SqlNotSupported(message, at=node.at, hint="drop it and create another")
        full = self._catalogs.full_name(node.name, node.at)
        if node.if_exists and full[2].lower() not in self._catalogs.database(full[0], full[1], node.at).functions:
            return OK
        found = self.loaded(node.arguments[0], node.name[-1], node.at)
        self.drop(node.name, temporary=False, system=False, if_exists=node.if_exists, at=node.at)
        self.register(node.name, found, temporary=False, at=node.at)
        return OK

    def module(self, node: s.Module) -> Answer:
        """LOAD and UNLOAD MODULE."""
        if node.action == "UNLOAD":
            self._catalogs.modules.unload(node.name, node.at)
            return OK
        self._catalogs.modules.check_new(node.name, node.at)
        self.load_module(node.name, installed(node.name, dict(node.options), node.at), node.at)
        return OK

    def load_module(self, name: str, functions: Mapping[str, Any], at: int | None = None) -> None:
        """Add a module of users' functions."""
        self._catalogs.modules.load(name, {key: self._wrap(key, each) for key, each in functions.items()}, at)
