"""TablePipeline: an insert that is not yet executed.

Promises: PyFlink's methods.
Does not know: jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.sql.logical import nodes as l
from millstream.table.catalog import ObjectIdentifier
from millstream.table.explain_detail import ExplainDetail
from millstream.table.table_result import TableResult

if TYPE_CHECKING:
    from millstream.table.compiled_plan import CompiledPlan
    from millstream.table.table_environment import TableEnvironment


class TablePipeline:
    """A query and the table that it is inserted into: the result of `Table.insert_into`.

    Example:
        >>> from millstream.table import EnvironmentSettings, TableEnvironment
        >>> t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        >>> result = t_env.execute_sql("CREATE TABLE ignored (n BIGINT) WITH ('connector' = 'blackhole')")
        >>> pipeline = t_env.from_elements([(1,)], ["n"]).insert_into("ignored")
        >>> "ignored" in pipeline.explain()
        True

    """

    def __init__(self, plan: l.Plan, identifier: tuple[str, ...], t_env: TableEnvironment) -> None:
        self._plan, self._identifier, self._t_env = plan, identifier, t_env

    def execute(self) -> TableResult:
        """Submit the insert as a job.

        Returns:
            The result; `wait` blocks until the job has ended.

        """
        return self._t_env._execute_inserts([self._plan])

    def explain(self, *extra_details: ExplainDetail) -> str:
        """Return the logical, optimized and physical plan of the insert as text.

        Args:
            *extra_details: Further details to include.

        """
        return self._t_env._explain([self._plan], extra_details)

    def print_explain(self, *extra_details: ExplainDetail) -> None:
        """Print what `explain` returns.

        Args:
            *extra_details: Further details to include.

        """
        print(self.explain(*extra_details))

    def compile_plan(self) -> CompiledPlan:
        """Compile the insert to a plan that can be stored and executed later."""
        return self._t_env._compile([self._plan], [])

    def get_sink_identifier(self) -> ObjectIdentifier | None:
        """Return the identifier of the table that is written to; None if it is not registered."""
        return ObjectIdentifier(*self._identifier) if len(self._identifier) == 3 else None
