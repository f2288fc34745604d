"""What the state of an operator depends on, in words.

Promises: two operators of one kind with equal `fixed` words keep the same things under the same keys; an operator that
has none keeps nothing. Conditions and bounds are `free`: they say which rows come, not what is kept of them.
Does not know: how state is stored."""

from __future__ import annotations

from collections.abc import Sequence

from millstream.runtime.operators.cep import CepSpec
from millstream.sql.logical.nodes import OverCall, Values
from millstream.sql.logical.patterns import MatchDescription, PatternRef
from millstream.sql.operators.aggregate.group_aggregate import GroupAggregateSpec
from millstream.sql.operators.calc import CalcSpec
from millstream.sql.operators.changelog.changelog_normalize import ChangelogNormalizeSpec
from millstream.sql.operators.changelog.changelog_rows import FromChangelogSpec, ToChangelogSpec
from millstream.sql.operators.changelog.sets import SetSpec
from millstream.sql.operators.changelog.upsert_materializer import UpsertMaterializeSpec
from millstream.sql.operators.expand import CorrelateSpec
from millstream.sql.operators.join.lookup_join import LookupJoinSpec
from millstream.sql.operators.join.regular_join import JoinSpec
from millstream.sql.operators.join.time_joins import IntervalJoinSpec, TemporalJoinSpec
from millstream.sql.operators.join.window_tables import WindowJoinSpec, WindowRankSpec
from millstream.sql.operators.over.changing_over import ChangingOverSpec
from millstream.sql.operators.over.over_aggregate import OverSpec
from millstream.sql.operators.rank.sort import MaterializeSpec, SortSpec
from millstream.sql.operators.rank.top_n import DeduplicateSpec, RankSpec
from millstream.sql.operators.watermark import WatermarkSpec
from millstream.sql.operators.window.session_aggregate import SessionAggregateSpec
from millstream.sql.operators.window.sliced_windows import SlicedWindowAggregateSpec
from millstream.sql.operators.window.window_aggregate import WindowAggregateSpec, WindowTableSpec
from millstream.sql.physical.identity.meanings import Columns, windowed
from millstream.sql.physical.identity.spelling import called, digest, ordered, short, spelled, typed
from millstream.sql.physical.nodes import Operation, Origin, PatternOrigin

Words = dict[str, str]


def state_traits(operation: Operation, inputs: Sequence[Columns]) -> tuple[Words, Words]:
    """The fixed and the free words of an operation, of whose inputs the meanings are given; empty ones are left out."""
    if not operation.inputs or operation.sink is not None:
        fixed, free = _end(operation), Words()
    elif isinstance(operation.origin, PatternOrigin) and isinstance(operation.spec, CepSpec):
        fixed, free = _pattern(operation, inputs[0])
    else:
        fixed, free = _stateful(operation, inputs)
    return _given(fixed), _given(free)


def _given(words: Words) -> Words:
    return {name: text for name, text in words.items() if text}


def _end(operation: Operation) -> Words:
    origin = operation.origin
    if isinstance(origin, Origin):
        options = {**origin.table.options, **dict(origin.hints)}
        return {"table": short(origin.name), "connector": options.get("connector", "")}
    if isinstance(operation.source, Values):
        rows = [[spelled(each, ()) for each in row] for row in operation.source.rows]
        return {"rows": digest(str(rows))}
    return {"rows": typed(range(len(operation.schema)), operation.schema.names, operation.schema)}


def _stateful(operation: Operation, inputs: Sequence[Columns]) -> tuple[Words, Words]:
    columns = inputs[0] if inputs else ()
    match operation.spec:
        case CalcSpec(condition=condition, exprs=exprs):
            where = "" if condition is None else spelled(condition, columns)
            select = "" if exprs is None else ", ".join(spelled(each, columns) for each in exprs)
            return {}, {"where": where, "select": select}
        case WatermarkSpec(expr=expr):
            return {}, {"watermark": spelled(expr, columns)}
        case CorrelateSpec(function=function, args=args):
            return {}, {"function": f"{function.name}({', '.join(spelled(each, columns) for each in args)})"}
        case ToChangelogSpec(codes=codes) | FromChangelogSpec(codes=codes):
            return {}, {"changes": ", ".join(f"{one} = {other}" for one, other in codes)}
        case LookupJoinSpec(keys=keys):
            return {}, {"key": ", ".join(columns[i] for i in keys)}
        case GroupAggregateSpec() as spec:
            return {
                "key": typed(spec.keys, columns, spec.input),
                "aggregates": ", ".join(called(each, columns) for each in spec.calls),
                "retracts": _yes(spec.retracts),
                "mini-batch": _yes(spec.mini_batch),
                "expires": _yes(spec.ttl is not None),
            }, {}
        case WindowAggregateSpec() as spec:
            return {
                "key": typed(spec.others, columns, spec.input),
                "window": columns[spec.end],
                "aggregates": ", ".join(called(each, columns) for each in spec.calls),
                "retracts": _yes(spec.retracts),
                "zone": spec.zone if spec.zoned or spec.processing else "",
            }, {}
        case SlicedWindowAggregateSpec() as spec:
            return {
                "key": typed(spec.partition, columns, spec.input),
                "window": windowed(spec.window, columns),
                "aggregates": ", ".join(called(each, columns) for each in spec.calls),
            }, {}
        case SessionAggregateSpec() as spec:
            return {
                "key": typed(spec.partition, columns, spec.input),
                "window": f"SESSION({columns[spec.time]}, {spec.gap})",
                "aggregates": ", ".join(called(each, columns) for each in spec.calls),
            }, {}
        case WindowTableSpec() as spec if spec.window.kind == "SESSION":
            return {"window": windowed(spec.window, columns), "rows": _rows(operation, 0, columns)}, {}
        case WindowTableSpec() as spec:
            return {}, {"window": windowed(spec.window, columns)}
        case OverSpec() as spec:
            return {**_over(spec.calls, columns), "expires": _yes(spec.ttl is not None)}, {}
        case ChangingOverSpec() as spec:
            return {**_over(spec.calls, columns), "rows": _rows(operation, 0, columns)}, {}
        case ChangelogNormalizeSpec() as spec:
            return {"key": typed(spec.keys, columns, spec.schema), "rows": _rows(operation, 0, columns)}, {}
        case SetSpec() as spec:
            rows = {f"rows of input {i + 1}": _rows(operation, i, each) for i, each in enumerate(inputs)}
            return {"operation": f"{spec.operator} {spec.all}", **rows, "expires": _yes(spec.ttl is not None)}, {}
        case UpsertMaterializeSpec() as spec:
            own = "" if spec.upsert_key is None else typed(spec.upsert_key, columns, spec.schema)
            key = typed(spec.keys, columns, spec.schema)
            return {"key": key, "upsert key": own, "rows": _rows(operation, 0, columns)}, {}
        case MaterializeSpec():
            return {"rows": _rows(operation, 0, columns)}, {}
    if len(inputs) == 2:
        return _joined(operation, inputs)
    return _ranked(operation, columns)


def _ranked(operation: Operation, columns: Columns) -> tuple[Words, Words]:
    rows = _rows(operation, 0, columns)
    match operation.spec:
        case RankSpec() as spec:
            return {
                "function": spec.function,
                "key": typed(spec.partition, columns, spec.input),
                "order": ordered(spec.order, columns),
                "range": f"{spec.first}..{spec.last}",
                "rows": rows,
                "retracts": _yes(spec.retracts),
                "mini-batch": _yes(spec.mini_batch),
                "expires": _yes(spec.ttl is not None),
            }, {}
        case DeduplicateSpec() as spec:
            return {
                "key": typed(spec.keys, columns, spec.schema),
                "order": "PROCTIME" if spec.processing else columns[spec.time],
                "keeps": "last" if spec.last else "first",
                "rows": rows,
                "mini-batch": _yes(spec.mini_batch),
                "expires": _yes(spec.ttl is not None),
            }, {}
        case WindowRankSpec() as spec:
            return {
                "key": typed(spec.partition, columns, spec.input),
                "window": columns[spec.end],
                "order": ordered(spec.order, columns),
                "range": f"{spec.first}..{spec.last}",
                "rows": rows,
            }, {}
        case SortSpec() as spec:
            return {"order": ordered(spec.order, columns), "range": f"{spec.first}..{spec.last}", "rows": rows}, {}
    return {}, {}


def _joined(operation: Operation, inputs: Sequence[Columns]) -> tuple[Words, Words]:
    left, right = inputs
    both = (*left, *right)
    rows = {"left rows": _rows(operation, 0, left), "right rows": _rows(operation, 1, right)}
    match operation.spec:
        case JoinSpec() as spec:
            expiring = " and ".join(s for s, ttl in zip(("left", "right"), spec.ttl, strict=True) if ttl is not None)
            condition = "" if spec.condition is None else spelled(spec.condition, both)
            fixed = {"join": spec.kind, **_join_keys(operation, spec.keys, inputs), **rows, "expires": expiring}
            return fixed, {"where": condition}
        case IntervalJoinSpec() as spec:
            condition = "" if spec.condition is None else spelled(spec.condition, both)
            times = f"{left[spec.times[0]]}, {right[spec.times[1]]}{' PROCTIME' if spec.processing else ''}"
            fixed = {"join": spec.kind, **_join_keys(operation, spec.keys, inputs), "times": times, **rows}
            return fixed, {"where": condition, "bounds": f"{spec.lower}..{spec.upper}"}
        case TemporalJoinSpec() as spec:
            condition = "" if spec.condition is None else spelled(spec.condition, both)
            version = "" if spec.times[1] is None else right[spec.times[1]]
            times = f"{left[spec.times[0]]}, {version}{' PROCTIME' if spec.processing else ''}"
            fixed = {"join": spec.kind, **_join_keys(operation, spec.keys, inputs), "times": times, **rows}
            return {**fixed, "expires": _yes(spec.ttl is not None)}, {"where": condition}
        case WindowJoinSpec() as spec:
            condition = "" if spec.condition is None else spelled(spec.condition, both)
            windows = f"{left[spec.ends[0]]}, {right[spec.ends[1]]}"
            fixed = {"join": spec.kind, **_join_keys(operation, spec.keys, inputs), "window": windows, **rows}
            return fixed, {"where": condition}
    return {}, {}


def _join_keys(operation: Operation, keys: Sequence[Sequence[int]], inputs: Sequence[Columns]) -> Words:
    sides = zip(("left key", "right key"), keys, inputs, operation.inputs, strict=True)
    return {name: typed(places, columns, each.schema) for name, places, columns, each in sides}


def _over(calls: Sequence[OverCall], columns: Columns) -> Words:
    frames = [
        f"{called(each.call, columns)} {'ROWS' if each.rows else 'RANGE'} {each.lower}..{each.upper}" for each in calls
    ]
    first = calls[0]
    return {
        "key": ", ".join(columns[i] for i in first.partition),
        "order": ordered(first.order, columns),
        "aggregates": ", ".join(frames),
    }


def _pattern(operation: Operation, columns: Columns) -> tuple[Words, Words]:
    origin = operation.origin
    assert isinstance(origin, PatternOrigin)
    match: MatchDescription = origin.description
    steps = [f"{name}{{{least},{most or ''}}}{'' if greedy else '?'}" for name, least, most, greedy in match.steps]
    fixed = {
        "key": typed(match.partition, columns, operation.inputs[0].schema),
        "order": "PROCTIME" if match.processing else columns[match.time],
        "pattern": " ".join(steps),
        "after match": f"{match.skip.kind.value} {match.skip.name or ''}".strip(),
        "rows": _rows(operation, 0, columns),
    }
    define = [f"{name} AS {spelled(expr, _refs(refs, columns))}" for name, expr, refs in match.define]
    measures = [spelled(expr, _refs(refs, columns)) for expr, refs in match.measures]
    within = "" if match.within is None else f"{match.within} ms"
    return fixed, {"define": ", ".join(define), "measures": ", ".join(measures), "within": within}


def _refs(refs: Sequence[PatternRef], columns: Columns) -> list[str]:
    """The values of a match that an expression is made of."""
    made = []
    for ref in refs:
        args = ref.args if ref.call is not None or ref.expr is None else (ref.expr,)
        name = ref.call.function if ref.call is not None else "FIRST" if ref.first else "LAST"
        inside = ", ".join(spelled(each, columns) for each in args)
        made.append(f"{name}({ref.variable or '*'}: {inside}{f', {ref.offset}' if ref.offset else ''})")
    return made


def _rows(operation: Operation, side: int, columns: Columns) -> str:
    schema = operation.inputs[side].schema
    return typed(range(len(schema)), columns, schema)


def _yes(holds: bool) -> str:
    return "yes" if holds else ""
