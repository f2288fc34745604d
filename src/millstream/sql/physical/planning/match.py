"""Planning of MATCH_RECOGNIZE: a bound pattern becomes a CEP operator.

Promises: steps are strictly contiguous, as in Flink's MATCH_RECOGNIZE; rows get their event time as timestamps first.
Does not know: how patterns are matched."""

from __future__ import annotations

from millstream.runtime.keys import KeySelection
from millstream.runtime.nfa.conditions import ALWAYS, Predicate
from millstream.runtime.nfa.pattern import Contiguity, PatternPlan, Step, Times
from millstream.runtime.operators.cep import CepSpec
from millstream.sql.columns import create_row_type_info
from millstream.sql.errors import SqlNotSupported
from millstream.sql.functions.user_functions import find_user_functions
from millstream.sql.logical import nodes as l
from millstream.sql.logical.patterns import MatchDescription
from millstream.sql.operators.base import select_key_columns
from millstream.sql.operators.pattern.pattern_values import (
    DefineCondition,
    MatchOutput,
    PatternExpression,
    PatternFunctions,
)
from millstream.sql.operators.pattern.stamp import StampSpec
from millstream.sql.physical.nodes import FORWARD, Operation, PatternOrigin, distribute_by_hash
from millstream.sql.physical.planning.contract import Planning
from millstream.sql.types import data_types as t
from millstream.types.factory import Types


def plan_match(planner: Planning, node: l.Match) -> Operation:
    """Plan MATCH_RECOGNIZE over an insert-only input."""
    child = planner.plan(node.input)
    if not child.mode.insert_only:
        message = "the input of MATCH_RECOGNIZE must be insert-only, but it emits updates"
        raise SqlNotSupported(message, about="MATCH_RECOGNIZE")
    match: MatchDescription = node.description
    zone = planner.settings.zone
    with_timestamps = child
    if not match.processing:
        with_timestamps = Operation("Timestamps", "", child.schema, (child,), (FORWARD,), StampSpec(match.time))
    detail = f"pattern=[{' '.join(name for name, *_ in match.steps)}]"
    spec, origin = match_spec(match, child.schema, zone), PatternOrigin(match, zone)
    return Operation(
        "Match", detail, node.schema, (with_timestamps,), (distribute_by_hash(match.partition),), spec, origin=origin
    )


def match_spec(match: MatchDescription, schema: t.RowType, zone: str) -> CepSpec:
    """Create the description of the operator that matches the pattern in rows of `schema`."""
    names = [name for name, *_ in match.steps]
    conditions = {}
    expressions: list[PatternExpression] = []
    for variable, expr, refs in match.define:
        expression = PatternExpression(expr, refs, schema, zone)
        expressions.append(expression)
        conditions[variable] = Predicate(DefineCondition(variable, expression, names), iterative=True)
    steps = []
    for i, (name, least, most, greedy) in enumerate(match.steps):
        is_loop = most is None or most > 1
        steps.append(
            Step(
                name,
                Contiguity.STRICT,
                conditions.get(name, ALWAYS),
                times=Times(max(least, 1), most) if is_loop or least > 1 else None,
                inner=Contiguity.STRICT,
                optional=least == 0,
                greedy=greedy and is_loop,
                within=match.within if i == len(match.steps) - 1 else None,
            )
        )
    measures = [PatternExpression(expr, refs, schema, zone) for expr, refs in match.measures]
    function = MatchOutput(match.partition, measures, names, dict(match.subsets))
    keys = select_key_columns(match.partition, schema) if match.partition else _create_single_key()
    computed = (*expressions, *measures)
    functions = PatternFunctions(find_user_functions([expression.functions() for expression in computed]), computed)
    plan = PatternPlan(tuple(steps), match.skip)
    return CepSpec(keys, create_row_type_info(schema), plan, function, (functions,), processing_time=match.processing)


def _create_single_key() -> KeySelection:
    """Without PARTITION BY, all rows have the same key."""
    return KeySelection(Types.PICKLED_BYTE_ARRAY(), selector=_return_none)


def _return_none(_record: object) -> None:
    return None
