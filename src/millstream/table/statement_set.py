"""StatementSet: several inserts as one job.

Promises: PyFlink's methods. Subplans that the inserts have in common are computed once.
Does not know: how inserts are planned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.sql.errors import SqlValidationError
from millstream.sql.logical import nodes as l
from millstream.sql.syntax import parse_statement
from millstream.sql.syntax import tree as s
from millstream.table.explain_detail import ExplainDetail
from millstream.table.table import Table
from millstream.table.table_pipeline import TablePipeline
from millstream.table.table_result import TableResult

if TYPE_CHECKING:
    from millstream.table.compiled_plan import CompiledPlan
    from millstream.table.table_environment import TableEnvironment


class StatementSet:
    """Collect inserts and run them as one job, which shares common subplans.

    Example:
        >>> from millstream.table import EnvironmentSettings, TableEnvironment
        >>> t_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
        >>> for name in ("a", "b"):
        ...     _ = t_env.execute_sql(f"CREATE TABLE {name} (n INT) WITH ('connector' = 'blackhole')")
        >>> statements = t_env.create_statement_set()
        >>> _ = statements.add_insert_sql("INSERT INTO a VALUES (1)").add_insert_sql("INSERT INTO b VALUES (2)")
        >>> statements.execute().wait()

    """

    def __init__(self, t_env: TableEnvironment) -> None:
        self._t_env = t_env
        self._plans: list[l.Plan] = []
        self._texts: list[str] = []

    def add_insert_sql(self, stmt: str) -> StatementSet:
        """Add an INSERT statement.

        Args:
            stmt: The statement.

        Returns:
            This statement set.

        Raises:
            SqlError: If the statement is not an INSERT, or is not valid.

        """
        node = parse_statement(stmt)
        if not isinstance(node, s.Insert):
            msg = "a statement set accepts only INSERT statements"
            raise SqlValidationError(msg, at=node.at, text=stmt)
        self._plans.append(self._t_env._locate_errors(stmt, lambda: self._t_env._bind_insert(node)))
        self._texts.append(stmt)
        return self

    def attach_as_datastream(self) -> None:
        """Add the inserts to the stream environment, whose next `execute` runs them, and clear this set."""
        self._t_env._attach_inserts(self._plans)
        self._plans, self._texts = [], []

    def add_insert(self, target_path_or_descriptor: Any, table: Table, overwrite: bool = False) -> StatementSet:
        """Add an insert of a table into another.

        Args:
            target_path_or_descriptor: The path of a registered table, or a description of the sink table.
            table: The rows to insert.
            overwrite: Whether the rows replace the content of the table, like INSERT OVERWRITE.

        Returns:
            This statement set.

        """
        return self.add(table.insert_into(target_path_or_descriptor, overwrite))

    def add(self, table_pipeline: TablePipeline) -> StatementSet:
        """Add an insert that `Table.insert_into` has returned.

        Args:
            table_pipeline: The insert.

        Returns:
            This statement set.

        """
        self._plans.append(table_pipeline._plan)
        return self

    def explain(self, *extra_details: ExplainDetail) -> str:
        """Return the logical, optimized and physical plans of the inserts as text.

        Args:
            *extra_details: Further details to include.

        """
        return self._t_env._explain(self._plans, extra_details)

    def print_explain(self, *extra_details: ExplainDetail) -> None:
        """Print what `explain` returns.

        Args:
            *extra_details: Further details to include.

        """
        print(self.explain(*extra_details))

    def execute(self) -> TableResult:
        """Submit all inserts as one job, and clear this set.

        Returns:
            The result; `wait` blocks until the job has ended.

        Raises:
            SqlValidationError: If there are no inserts.

        """
        if not self._plans:
            msg = "the statement set has no INSERT statement"
            raise SqlValidationError(msg)
        plans, self._plans, self._texts = self._plans, [], []
        return self._t_env._execute_inserts(plans)

    def compile_plan(self) -> CompiledPlan:
        """Compile the inserts to a plan that can be stored and executed later."""
        return self._t_env._compile(self._plans, self._texts)
