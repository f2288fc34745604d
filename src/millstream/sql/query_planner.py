"""Planning of queries: rewrites logical plans, creates physical plans, and translates these to a program.

Promises: nothing is added to a program unless all of it could be planned.
Does not know: environments, results."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from millstream.datastream.program import Program
from millstream.graph.transformations import Input
from millstream.sql.catalyst.fragments import BatchLowering
from millstream.sql.logical import nodes as l
from millstream.sql.logical.bind.expressions import Session
from millstream.sql.logical.rules import apply_rules
from millstream.sql.physical.nodes import Operation
from millstream.sql.physical.planner import PhysicalPlanner
from millstream.sql.physical.planning.contract import Settings
from millstream.sql.physical.planning.tables import Tables, materialize
from millstream.sql.physical.translate import Translation


class QueryPlanner:
    """Plans the queries of one session. `clock` returns the time of a query, for functions such as
    CURRENT_TIMESTAMP."""

    def __init__(self, session: Session, settings: Settings, clock: Callable[[], int]) -> None:
        self.settings = settings
        self.tables = Tables(session.options, settings)
        self._clock = clock

    def optimize(self, plan: l.Plan) -> l.Plan:
        """Apply all rewrite rules to a plan."""
        return apply_rules(plan)

    def plan(self, plans: Sequence[l.Plan]) -> list[Operation]:
        """Create the physical plans of several queries, which share common subplans."""
        return self._plan(plans, single=False)

    def plan_collect(self, plan: l.Plan) -> Operation:
        """Create the physical plan of a query whose rows are collected by the client."""
        (operation,) = self._plan([plan], single=True)
        return materialize(operation, self.settings)

    def _plan(self, plans: Sequence[l.Plan], *, single: bool) -> list[Operation]:
        optimized = [apply_rules(plan) for plan in plans]
        lower = BatchLowering(self.tables.scan, self.settings, optimized, single=single)
        planner = PhysicalPlanner(self.settings, self.tables.scan, self.tables.sink, self.tables.lookup, lower)
        return [planner.plan(plan) for plan in optimized]

    def add(self, operation: Operation, program: Program) -> tuple[Input, ...]:
        """Add a physical plan to a program."""
        (inputs,) = self.add_all((operation,), program)
        return inputs

    def add_all(self, operations: Sequence[Operation], program: Program) -> list[tuple[Input, ...]]:
        """Add several physical plans, which may share parts, to a program."""
        return Translation(program, zone=self.settings.zone, now=self._clock()).add_all(operations)
