"""A query that goes into a table, not yet run.

Promises: PyFlink's methods.
Does not know: jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.sql.logical import nodes as l
from millstream.table.catalog import ObjectIdentifier
from millstream.table.explain_detail import ExplainDetail
from millstream.table.table_result import TableResult

if TYPE_CHECKING:
    from millstream.table.compiled_plan import CompiledPlan
    from millstream.table.table_environment import TableEnvironment


class TablePipeline:
    """What Table.insert_into makes."""

    def __init__(self, plan: l.Plan, identifier: tuple[str, ...], t_env: TableEnvironment) -> None:
        self._plan, self._identifier, self._t_env = plan, identifier, t_env

    def execute(self) -> TableResult:
        """Run it."""
        return self._t_env._insert([self._plan])

    def explain(self, *extra_details: ExplainDetail) -> str:
        """The plan as text."""
        return self._t_env._explain([self._plan], extra_details)

    def print_explain(self, *extra_details: ExplainDetail) -> None:
        """Print the plan."""
        print(self.explain(*extra_details))

    def compile_plan(self) -> CompiledPlan:
        """The plan in a form that outlives this program."""
        return self._t_env._compiled([self._plan], [])

    def get_sink_identifier(self) -> ObjectIdentifier | None:
        """The table it goes into."""
        return ObjectIdentifier(*self._identifier) if len(self._identifier) == 3 else None


Details = tuple[Any, ...]
