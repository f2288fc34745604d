"""Several inserts as one job.

Promises: PyFlink's methods; what the queries share is computed once.
Does not know: plans."""

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
    """Inserts that run together."""

    def __init__(self, t_env: TableEnvironment) -> None:
        self._t_env = t_env
        self._plans: list[l.Plan] = []
        self._texts: list[str] = []

    def add_insert_sql(self, stmt: str) -> StatementSet:
        """Add an INSERT statement."""
        node = parse_statement(stmt)
        if not isinstance(node, s.Insert):
            msg = "a statement set is made of INSERT statements"
            raise SqlValidationError(msg, at=node.at, text=stmt)
        self._plans.append(self._t_env._placed(stmt, lambda: self._t_env._insert_plan(node)))
        self._texts.append(stmt)
        return self

    def attach_as_datastream(self) -> None:
        """Let the inserts run with the next execute() of the stream environment."""
        self._t_env._attach(self._plans)
        self._plans, self._texts = [], []

    def add_insert(self, target_path_or_descriptor: Any, table: Table, overwrite: bool = False) -> StatementSet:
        """Add a table that goes into another."""
        return self.add(table.insert_into(target_path_or_descriptor, overwrite))

    def add(self, table_pipeline: TablePipeline) -> StatementSet:
        """Add what insert_into made."""
        self._plans.append(table_pipeline._plan)
        return self

    def explain(self, *extra_details: ExplainDetail) -> str:
        """The plans as text."""
        return self._t_env._explain(self._plans, extra_details)

    def print_explain(self, *extra_details: ExplainDetail) -> None:
        """Print the plans."""
        print(self.explain(*extra_details))

    def execute(self) -> TableResult:
        """Run all inserts as one job."""
        if not self._plans:
            msg = "a statement set needs at least one INSERT"
            raise SqlValidationError(msg)
        plans, self._plans, self._texts = self._plans, [], []
        return self._t_env._insert(plans)

    def compile_plan(self) -> CompiledPlan:
        """The plan in a form that outlives this program."""
        return self._t_env._compiled(self._plans, self._texts)
