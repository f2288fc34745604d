"""Procedures of a catalog: Python functions that CALL executes.

Promises: PyFlink's names. A procedure that is created in a catalog can be called by SQL statements of the session.
Does not know: what procedures do."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from millstream.errors import InvalidArgument
from millstream.sql.catalog import catalog as c
from millstream.sql.catalog.procedures import ProcedureDefinition
from millstream.sql.errors import CatalogError, nearest
from millstream.table.catalog.paths import ObjectPath
from millstream.table.udf import to_data_type


@dataclass(frozen=True)
class ProcedureContext:
    """What a procedure gets as its first argument: the environments in which CALL was executed.

    Example:
        >>> def parallelism(context):
        ...     return context.get_execution_environment().get_parallelism()

    """

    _env: Any
    _t_env: Any

    def get_execution_environment(self) -> Any:
        """Return the stream environment, in which the procedure can run jobs."""
        return self._env

    def get_table_environment(self) -> Any:
        """Return the table environment."""
        return self._t_env


class Procedure:
    """A stored procedure: a Python function with a `ProcedureContext` and arguments, which returns rows.

    Args:
        function: The function. Its first parameter is the context. CALL matches arguments to the other parameters by
            position or by name; defaults apply.
        input_types: The types of the other parameters.
        result_type: The type of a row; any other type is that of the only column `result`.

    Example:
        >>> from millstream.table import EnvironmentSettings, TableEnvironment
        >>> from millstream.table.catalog import ObjectPath
        >>> t_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
        >>> procedure = Procedure(lambda context, n: range(n), ["INT"], "INT")
        >>> path = ObjectPath("default_database", "generate_n")
        >>> t_env.get_catalog("default_catalog").create_procedure(path, procedure, False)
        >>> with t_env.execute_sql("CALL generate_n(n => 2)").collect() as rows:
        ...     print([row[0] for row in rows])
        [0, 1]

    """

    def __init__(self, function: Callable[..., Any], input_types: Sequence[Any] = (), result_type: Any = "STRING"):
        self._definition = ProcedureDefinition(
            function, tuple(map(to_data_type, input_types)), to_data_type(result_type)
        )
        parameters = list(inspect.signature(function).parameters.values())
        kinds = {parameter.kind for parameter in parameters}
        if len(parameters) != len(input_types) + 1 or not kinds <= {inspect.Parameter.POSITIONAL_OR_KEYWORD}:
            names = ", ".join(parameter.name for parameter in parameters)
            msg = f"a procedure needs a context and {len(input_types)} named parameters, but its function has ({names})"
            raise InvalidArgument(msg, hint="give a type for each parameter after the context")


class CatalogProcedures(ABC):
    """The methods of a catalog about procedures."""

    @abstractmethod
    def _database(self, name: str) -> c.Database:
        """Return a database of the catalog; raises `CatalogError` if there is none."""

    def list_procedures(self, database_name: str) -> list[str]:
        """Return the names of all procedures of a database."""
        return sorted(self._database(database_name).procedures)

    def get_procedure(self, procedure_path: ObjectPath) -> Procedure:
        """Return a procedure.

        Raises:
            CatalogError: If there is no such procedure.

        """
        procedures = self._database(procedure_path.get_database_name()).procedures
        name = procedure_path.get_object_name()
        if name not in procedures:
            msg = f"there is no procedure '{procedure_path}'"
            raise CatalogError(msg, hint=nearest(name, procedures))
        definition = procedures[name]
        return Procedure(definition.function, definition.input_types, definition.result_type)

    def create_procedure(self, procedure_path: ObjectPath, procedure: Procedure, ignore_if_exists: bool) -> None:
        """Create a procedure, which CALL executes. PyFlink has no such method: its catalogs bring their procedures.

        Args:
            procedure_path: The database and the name.
            procedure: The procedure.
            ignore_if_exists: Whether an existing procedure is left as it is.

        Raises:
            CatalogError: If the procedure exists and `ignore_if_exists` is False.

        """
        procedures = self._database(procedure_path.get_database_name()).procedures
        if procedure_path.get_object_name() in procedures:
            if ignore_if_exists:
                return
            msg = f"the procedure '{procedure_path}' already exists"
            raise CatalogError(msg)
        procedures[procedure_path.get_object_name()] = procedure._definition

    def drop_procedure(self, procedure_path: ObjectPath, ignore_if_not_exists: bool) -> None:
        """Drop a procedure. PyFlink has no such method.

        Args:
            procedure_path: The database and the name.
            ignore_if_not_exists: Whether a missing procedure is not an error.

        Raises:
            CatalogError: If the procedure does not exist and `ignore_if_not_exists` is False.

        """
        procedures = self._database(procedure_path.get_database_name()).procedures
        if procedure_path.get_object_name() not in procedures and ignore_if_not_exists:
            return
        self.get_procedure(procedure_path)
        del procedures[procedure_path.get_object_name()]
