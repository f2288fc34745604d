"""Random queries as Catalyst computes them, many in little time.

A query is bound, rewritten and lowered as that of a batch job is, and its DataFrame collected without a job around it.
The session interprets what it would otherwise compile: Java code for each query takes longer than all the rest."""

from __future__ import annotations

from collections import Counter
from typing import Any

from fuzz_queries import Case
from fuzz_runs import Answer, environment, settled, shown

from millstream.engine.relational import LocalTable, Step
from millstream.engine.spark.catalyst import QuerySession
from millstream.engine.spark.compatibility import collect_batches
from millstream.sql.catalyst.lowering import lower_plan

_SETTINGS = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",  # a job for each query, not for each of its stages
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.autoBroadcastJoinThreshold": "-1",  # nor one for each side of a join
}


class _OneStage(QuerySession):
    """Tables of a few rows in one partition, which need no exchange."""

    def _create_frame(self, step: Step, now: int) -> Any:
        frame = super()._create_frame(step, now)
        return frame.coalesce(1) if isinstance(step, LocalTable) else frame


class Catalyst:
    """A session of its own, so that no other test has its settings."""

    def __init__(self, context: Any) -> None:
        self._session = _OneStage(context)
        for name, value in _SETTINGS.items():
            self._session.spark.conf.set(name, value)

    def answer(self, case: Case) -> Answer:
        """The rows of a query over what is left of its tables."""
        env = environment(settled(case), batch=True)
        planner = env._planner()
        plan = planner.optimize(env.sql_query(case.sql)._plan)
        source = lower_plan(plan, planner.tables.scan, planner.settings.zone)
        assert source is not None, f"not for Catalyst: {case.sql}"
        answer: Answer = Counter()
        for batch in collect_batches(self._session.frame_of(source, 0)):
            columns = [column.to_pylist() for column in batch.columns]
            answer.update(tuple(map(shown, row)) for row in zip(*columns, strict=True))
        return answer
