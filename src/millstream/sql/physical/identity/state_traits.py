"""What the state of an operation depends on, as text.

Promises: two operations of one type with equal `fixed` traits have the same state under the same keys; the spec of an
operator declares its traits, sources, sinks and patterns are described here.
Does not know: how state is stored."""

from __future__ import annotations

from collections.abc import Sequence

from millstream.errors import InternalError
from millstream.sql.expressions.stable_text import compute_digest, format_columns, format_expression, shorten_table_name
from millstream.sql.logical.nodes import Values
from millstream.sql.logical.patterns import MatchDescription, PatternRef
from millstream.sql.operators.spec import ColumnTexts, PlanContext, SqlOperatorSpec, StateTraits
from millstream.sql.physical.nodes import Operation, Origin, PatternOrigin


class UnknownOperator(InternalError):
    """An operation whose spec does not declare what its state depends on."""

    def __init__(self, operation: Operation) -> None:
        spec = type(operation.spec).__name__
        super().__init__(f"the operator {operation.name} ({spec}) does not declare what its state depends on")


def state_traits(operation: Operation, plan: PlanContext) -> StateTraits:
    """Return the traits of an operation; traits without text are left out."""
    if not operation.inputs or operation.sink is not None:
        traits = StateTraits(_describe_table(operation))
    elif isinstance(operation.origin, PatternOrigin):
        traits = _describe_pattern(operation.origin.description, plan)
    elif isinstance(operation.spec, SqlOperatorSpec):
        traits = operation.spec.state_traits(plan)
    else:
        raise UnknownOperator(operation)
    fixed = {name: text for name, text in traits.fixed.items() if text}
    return StateTraits(fixed, {name: text for name, text in traits.free.items() if text})


def _describe_table(operation: Operation) -> dict[str, str]:
    origin = operation.origin
    if isinstance(origin, Origin):
        options = {**origin.table.options, **dict(origin.hints)}
        return {"table": shorten_table_name(origin.name), "connector": options.get("connector", "")}
    if isinstance(operation.source, Values):
        rows = [[format_expression(expr, ()) for expr in row] for row in operation.source.rows]
        return {"rows": compute_digest(str(rows))}
    return {"rows": format_columns(range(len(operation.schema)), operation.schema.names, operation.schema)}


def _describe_pattern(match: MatchDescription, plan: PlanContext) -> StateTraits:
    (columns,) = plan.inputs
    steps = [f"{name}{{{least},{most or ''}}}{'' if greedy else '?'}" for name, least, most, greedy in match.steps]
    fixed = {
        "key": format_columns(match.partition, columns, plan.schemas[0]),
        "order": "PROCTIME" if match.processing else columns[match.time],
        "pattern": " ".join(steps),
        "after match": f"{match.skip.kind.value} {match.skip.name or ''}".strip(),
        "rows": plan.rows(),
    }
    define = [
        f"{name} AS {format_expression(expr, _list_ref_texts(refs, columns))}" for name, expr, refs in match.define
    ]
    measures = [format_expression(expr, _list_ref_texts(refs, columns)) for expr, refs in match.measures]
    within = "" if match.within is None else f"{match.within} ms"
    return StateTraits(fixed, {"define": ", ".join(define), "measures": ", ".join(measures), "within": within})


def _list_ref_texts(refs: Sequence[PatternRef], columns: ColumnTexts) -> list[str]:
    """Return the values of a match that an expression is computed from, as text."""
    texts = []
    for ref in refs:
        args = ref.args if ref.call is not None or ref.expr is None else (ref.expr,)
        name = ref.call.function if ref.call is not None else "FIRST" if ref.first else "LAST"
        arguments = ", ".join(format_expression(arg, columns) for arg in args)
        texts.append(f"{name}({ref.variable or '*'}: {arguments}{f', {ref.offset}' if ref.offset else ''})")
    return texts
