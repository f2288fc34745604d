"""Random queries computed by Catalyst, in a session that runs many small queries quickly.

A query is bound, rewritten and lowered as that of a batch job is, and its DataFrame collected without a job around it.
The session interprets expressions: compiling Java code takes longer than all other parts of such a query."""

from __future__ import annotations

from collections import Counter
from typing import Any

from fuzz_queries import Case
from fuzz_runs import Result, environment, format_value, remove_retractions

from millstream.engine.relational import LocalTable, Step
from millstream.engine.spark.catalyst import QuerySession
from millstream.engine.spark.compatibility import collect_batches
from millstream.sql.catalyst.lowering import lower_plan

_SETTINGS = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",  # with it, Spark runs a job for each stage
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.autoBroadcastJoinThreshold": "-1",  # with it, Spark runs a job for a side of a join
}


class _SinglePartitionSession(QuerySession):
    """Puts tables of a few rows into one partition, so that no exchange is needed."""

    def _create_frame(self, step: Step, now: int) -> Any:
        frame = super()._create_frame(step, now)
        return frame.coalesce(1) if isinstance(step, LocalTable) else frame


class Catalyst:
    """A separate session, because its settings must not affect other tests."""

    def __init__(self, context: Any) -> None:
        self._session = _SinglePartitionSession(context)
        for name, value in _SETTINGS.items():
            self._session.spark.conf.set(name, value)

    def run(self, case: Case) -> Result:
        """Return the rows of a query over the final rows of its tables."""
        env = environment(remove_retractions(case), batch=True)
        planner = env._planner()
        plan = planner.optimize(env.sql_query(case.sql)._plan)
        source = lower_plan(plan, planner.tables.scan, planner.settings.zone)
        assert source is not None, f"not for Catalyst: {case.sql}"
        result: Result = Counter()
        for batch in collect_batches(self._session.frame_of(source, 0)):
            columns = [column.to_pylist() for column in batch.columns]
            result.update(tuple(map(format_value, row)) for row in zip(*columns, strict=True))
        return result
