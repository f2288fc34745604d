"""Logical plans become physical ones.

Promises: each operator is told whether its input can take rows back, and makes -U only where someone needs it; what a
stream cannot do is refused with a reason.
Does not know: programs; translation adds operators to them."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass, replace

from millstream.sql import logical as l
from millstream.sql import types as t
from millstream.sql.bind.sources import as_columns, equi_keys
from millstream.sql.changelogs import narrowed
from millstream.sql.errors import SqlNotSupported, SqlValidationError
from millstream.sql.expressions import (
    AggregateCall,
    Apply,
    Convert,
    Expression,
    Lit,
    Ref,
    conjunction,
    conjuncts,
    references,
    shifted,
    substituted,
)
from millstream.sql.function_context import ASYNC_DEFAULTS, AsyncOptions
from millstream.sql.operators import (
    calc,
    changing_over,
    expand,
    group_aggregate,
    join,
    local_aggregate,
    over,
    partials,
    rank,
    session_aggregate,
    sets,
    sort,
    time_joins,
    watermark,
    window_tables,
    windows,
)
from millstream.sql.physical import FORWARD, SINGLE, ChangelogMode, Operation, by_hash
from millstream.sql.rules.split_distinct import split_distinct
from millstream.sql.window_columns import window_edges

_MS = datetime.timedelta(milliseconds=1)


@dataclass
class Settings:
    """What the session says about running queries."""

    zone: str = "UTC"
    mini_batch: bool = False
    ttl: int | None = None
    batch: bool = False
    asynchronous: AsyncOptions = ASYNC_DEFAULTS
    mini_batch_size: int | None = None
    two_phase: bool = True
    distinct_buckets: int | None = None
    catalyst: bool = False


class PhysicalPlanner:
    """Plans one or more queries together; what they share is planned once."""

    def __init__(
        self,
        settings: Settings,
        scan: Callable[[l.Scan], Operation],
        sink: Callable[[l.Sink, Callable[[bool], Operation]], Operation],
        lookup: Callable[[l.TemporalJoin, Operation], Operation | None],
        lower: Callable[[l.Plan], Operation | None] = lambda _plan: None,
    ) -> None:
        self._settings = settings
        self._lower = lower
        self._scan_table, self._sink_table, self._lookup_table = scan, sink, lookup
        self._done: dict[tuple[int, bool, bool], tuple[l.Plan, Operation]] = {}
        self._versions = False  # whether someone reads every version of a row, not only the last

    def plan(self, node: l.Plan, *, before: bool = True) -> Operation:
        """The physical plan of a logical one. `before` says whether -U rows are needed."""
        place = (id(node), before, self._versions)
        known = self._done.get(place)
        if known is None:
            known = self._done[place] = (node, self._lower(node) or self._plan(node, before))
        return known[1]

    def _plan(self, node: l.Plan, before: bool) -> Operation:
        match node:
            case l.Scan():
                return self._scan_table(node)
            case l.Values():
                return self._values(node)
            case l.Project() | l.Filter():
                return self._calc(node, before)
            case l.WatermarkAssigner():
                return self._watermark(node)
            case l.Aggregate():
                return self._aggregate(node, before)
            case l.Expand():
                return self._expand(node)
            case l.Correlate():
                return self._correlate(node)
            case l.WindowTable():
                return self._window_table(node)
            case l.Over():
                return self._over(node)
            case l.Join():
                return self._join(node)
            case l.TemporalJoin():
                return self._temporal_join(node)
            case l.SetOperation():
                return self._set_operation(node)
            case l.Rank():
                return self._rank(node, before)
            case l.Sort():
                return self._sort(node, before)
            case l.Match():
                return self._match(node)
            case l.Sink():
                return self._sink(node)
        raise AssertionError(node)

    def _sink(self, node: l.Sink) -> Operation:
        return self._sink_table(node, lambda before: self.plan(node.input, before=before))

    def _values(self, node: l.Values) -> Operation:
        rows = f"{len(node.rows)} rows"
        return Operation("Values", f"tuples=[{rows}]", node.schema, source=node, mode=ChangelogMode.INSERT_ONLY)

    # -------------------------------------------------------------------------------------------------- stateless

    def _calc(self, node: l.Plan, before: bool) -> Operation:
        exprs: tuple[Expression, ...] | None = None
        condition: Expression | None = None
        current = node
        while isinstance(current, l.Project | l.Filter):
            if isinstance(current, l.Filter):
                parts = [*conjuncts(current.condition), *conjuncts(condition)]
                condition = conjunction(parts)
            else:
                if exprs is not None and not _mergeable(current.exprs, [*exprs, *conjuncts(condition)]):
                    break
                if exprs is None and condition is not None and not _mergeable(current.exprs, conjuncts(condition)):
                    break
                made = current.exprs
                exprs = made if exprs is None else tuple(substituted(each, made) for each in exprs)
                condition = None if condition is None else substituted(condition, made)
            current = current.input
        keeps_key = condition is None
        child = self.plan(current, before=before or not keeps_key)
        if exprs is not None:
            used = set().union(*(references(each) for each in (*exprs, *conjuncts(condition))))
            slim, places = narrowed(child, used)
            if slim is not child:
                child, exprs = slim, tuple(shifted(each, places) for each in exprs)
                condition = None if condition is None else shifted(condition, places)
        spec = calc.CalcSpec(
            child.schema, node.schema, condition, exprs, self._settings.zone, self._settings.asynchronous
        )
        detail = []
        if exprs is not None:
            detail.append(f"select=[{_selected(exprs, node.schema, child.schema)}]")
        if condition is not None:
            detail.append(f"where=[{described(condition, child.schema)}]")
        keys = child.upsert_keys if exprs is None else _projected_keys(child.upsert_keys, exprs)
        return Operation(
            "Calc", ", ".join(detail), node.schema, (child,), (FORWARD,), spec, mode=child.mode, upsert_keys=keys
        )

    def _watermark(self, node: l.WatermarkAssigner) -> Operation:
        child = self.plan(node.input)
        spec = watermark.WatermarkSpec(child.schema, node.expr, node.idle_timeout, self._settings.zone)
        name = node.schema.names[node.column]
        detail = f"rowtime=[{name}], watermark=[{described(node.expr, child.schema)}]"
        return Operation(
            "WatermarkAssigner",
            detail,
            node.schema,
            (child,),
            (FORWARD,),
            spec,
            mode=child.mode,
            upsert_keys=child.upsert_keys,
        )

    def _expand(self, node: l.Expand) -> Operation:
        child = self.plan(node.input)
        spec = expand.ExpandSpec(child.schema, node.schema, node.keys, node.sets)
        return Operation("Expand", f"sets={node.sets}", node.schema, (child,), (FORWARD,), spec, mode=child.mode)

    def _correlate(self, node: l.Correlate) -> Operation:
        child = self.plan(node.input)
        spec = expand.CorrelateSpec(
            child.schema, node.schema, node.function, node.args, node.outer, self._settings.zone
        )
        kind = "LEFT" if node.outer else "INNER"
        args = ", ".join(described(each, child.schema) for each in node.args)
        detail = f"invocation=[{node.function.name}({args})], joinType=[{kind}]"
        return Operation("Correlate", detail, node.schema, (child,), (FORWARD,), spec, mode=child.mode)

    def _window_table(self, node: l.WindowTable) -> Operation:
        child = self.plan(node.input)
        window = node.window
        spec = windows.WindowTableSpec(child.schema, node.schema, window, self._settings.zone)
        where = by_hash(window.partition) if window.kind == "SESSION" else FORWARD
        if window.kind == "SESSION" and not child.mode.insert_only:
            message = "a SESSION window cannot be made of rows that are corrected later"
            raise SqlNotSupported(message)
        return Operation(
            "WindowTableFunction",
            f"window=[{window_text(window, child.schema)}]",
            node.schema,
            (child,),
            (where,),
            spec,
            mode=child.mode,
        )

    # --------------------------------------------------------------------------------------------------- grouping

    def _aggregate(self, node: l.Aggregate, before: bool) -> Operation:
        buckets = self._settings.distinct_buckets
        split = None if buckets is None or self._settings.batch else split_distinct(node, buckets)
        if split is not None:
            return self.plan(split, before=before)
        child = self.plan(node.input)
        retracts = not child.mode.insert_only
        edges = window_edges(node.input)
        starts = {i for i, part in edges.items() if part[0] == "start"}
        ends = {i for i, part in edges.items() if part[0] == "end"}
        grouped = set(node.keys)
        names = ", ".join(child.schema.names[i] for i in node.keys)
        calls = ", ".join(
            f"{call_text(c, child.schema)} AS {n}"
            for c, n in zip(node.calls, node.schema.names[len(node.keys) :], strict=True)
        )
        detail = (f"groupBy=[{names}], " if names else "") + f"select=[{', '.join(filter(None, (names, calls)))}]"
        if grouped & starts and grouped & ends:
            end = min(grouped & ends)
            window = edges[end][1]
            sessions = self._session_aggregate(node, detail) if window.kind == "SESSION" else None
            if sessions is not None:
                return sessions
            others = tuple(i for i in node.keys if i not in edges)
            spec = windows.WindowAggregateSpec(
                child.schema,
                node.schema,
                node.keys,
                others,
                end,
                node.calls,
                retracts,
                window.processing,
                edges[end][2],
                self._settings.zone,
                window,
            )
            keys = frozenset((tuple(range(len(node.keys))),))
            return Operation(
                "WindowAggregate", detail, node.schema, (child,), (by_hash(others),), spec, upsert_keys=keys
            )
        made = group_aggregate.GroupAggregateSpec(
            child.schema,
            node.schema,
            node.keys,
            node.calls,
            retracts,
            before,
            self._settings.mini_batch,
            node.ttl if node.ttl is not None else self._settings.ttl,
            self._settings.mini_batch_size,
        )
        mode = ChangelogMode.RETRACT if before else ChangelogMode.UPSERT
        if not node.calls and not retracts:
            mode = ChangelogMode.INSERT_ONLY
        keys = frozenset((tuple(range(len(node.keys))),))
        if made.columnar and self._settings.two_phase:
            return self._two_phases(made, detail, child, mode)
        return Operation(
            "GroupAggregate", detail, node.schema, (child,), (by_hash(node.keys),), made, mode=mode, upsert_keys=keys
        )

    def _session_aggregate(self, node: l.Aggregate, detail: str) -> Operation | None:
        """Sessions that are added up while they are open; None where their rows must be kept."""
        inner, places = node.input, list(range(len(node.input.schema)))
        while isinstance(inner, l.Project) and all(isinstance(each, Ref) for each in inner.exprs):
            places = [inner.exprs[i].index for i in places]  # type: ignore[attr-defined]
            inner = inner.input
        if not isinstance(inner, l.WindowTable) or inner.window.processing:
            return None
        window, schema = inner.window, inner.input.schema
        if isinstance(schema.types[window.time], t.LocalZonedTimestampType) and self._settings.zone != "UTC":
            return None
        keys = tuple(places[i] for i in node.keys)
        calls = tuple(
            replace(
                call,
                args=tuple(places[i] for i in call.args),
                filter=None if call.filter is None else places[call.filter],
            )
            for call in node.calls
        )
        read = [i for call in calls for i in (*call.args, *(() if call.filter is None else (call.filter,)))]
        kinds = [schema.types[i] for i in window.partition]
        if {i for i in keys if i < len(schema)} != set(window.partition) or any(i >= len(schema) for i in read):
            return None
        child = self.plan(inner.input)
        if not child.mode.insert_only or not partials.can_aggregate(calls, kinds):
            return None
        spec = session_aggregate.SessionAggregateSpec(
            child.schema, node.schema, keys, window.partition, window.time, window.size, calls
        )
        where = (by_hash(window.partition),)
        found = frozenset((tuple(range(len(node.keys))),))
        return Operation("WindowAggregate", detail, node.schema, (child,), where, spec, upsert_keys=found)

    @staticmethod
    def _two_phases(
        spec: group_aggregate.GroupAggregateSpec, detail: str, child: Operation, mode: ChangelogMode
    ) -> Operation:
        """Rows are aggregated where they are, then the parts by key."""
        schema = local_aggregate.partial_schema(spec.input, spec.keys, spec.calls)
        first = local_aggregate.LocalAggregateSpec(spec.input, schema, spec.keys, spec.calls)
        local = Operation("LocalGroupAggregate", detail, schema, (child,), (FORWARD,), first)
        keys = tuple(range(len(spec.keys)))
        return Operation(
            "GlobalGroupAggregate",
            detail,
            spec.output,
            (local,),
            (by_hash(keys),),
            replace(spec, partial=True),
            mode=mode,
            upsert_keys=frozenset((keys,)),
        )

    def _over(self, node: l.Over) -> Operation:
        child = self.plan(node.input)
        if not child.mode.insert_only and not all(map(_over_changes, node.calls)):
            message = "only aggregates of ROWS, or of RANGE from the first row, can be computed over corrected rows"
            raise SqlNotSupported(message, hint="number them in a Top-N, or compute OVER before what corrects them")
        current, width = child, len(node.input.schema)
        groups: dict[tuple[object, ...], list[int]] = {}
        for i, each in enumerate(node.calls):
            groups.setdefault((each.partition, each.order, each.rows, each.lower), []).append(i)
        order: list[int] = []
        for indexes in groups.values():
            calls = tuple(node.calls[i] for i in indexes)
            current = self._over_group(current, calls, node.input.schema)
            order += indexes
        if order != sorted(order):
            refs = [Ref(current.schema.types[i], i) for i in range(width)]
            refs += [
                Ref(current.schema.types[width + order.index(i)], width + order.index(i)) for i in range(len(order))
            ]
            spec = calc.CalcSpec(current.schema, node.schema, None, tuple(refs), self._settings.zone)
            current = Operation("Calc", "select=[...]", node.schema, (current,), (FORWARD,), spec, mode=current.mode)
        return current

    def _over_group(self, child: Operation, calls: tuple[l.OverCall, ...], base: t.RowType) -> Operation:
        first = calls[0]
        if not child.mode.insert_only:
            return self._changing_over(child, calls)
        if len(first.order) != 1 or t.attribute_of(base.types[first.order[0][0]]) is None or not first.order[0][1]:
            message = "OVER on a stream must be ordered by one time attribute, ascending"
            hint = "ORDER BY a watermarked column or PROCTIME(); for a Top-N, filter on the row number"
            raise SqlNotSupported(message, hint=hint)
        place = first.order[0][0]
        processing = t.attribute_of(base.types[place]) == t.PROCTIME
        schema = _with_results(child.schema, calls)
        spec = over.OverSpec(child.schema, schema, calls, None if processing else place, self._settings.ttl)
        partition = ", ".join(child.schema.names[i] for i in first.partition)
        detail = f"partitionBy=[{partition}], orderBy=[{child.schema.names[place]}]"
        return Operation("OverAggregate", detail, schema, (child,), (by_hash(first.partition),), spec)

    @staticmethod
    def _changing_over(child: Operation, calls: tuple[l.OverCall, ...]) -> Operation:
        """OVER over rows that are corrected later, in any order."""
        first, names = calls[0], child.schema.names
        schema = _with_results(child.schema, calls)
        spec = changing_over.ChangingOverSpec(child.schema, schema, calls)
        order = ", ".join(f"{names[i]} {'ASC' if a else 'DESC'}" for i, a, _ in first.order)
        detail = f"partitionBy=[{', '.join(names[i] for i in first.partition)}], orderBy=[{order}]"
        where = (by_hash(first.partition),)
        return Operation("OverAggregate", detail, schema, (child,), where, spec, mode=ChangelogMode.RETRACT)

    # ------------------------------------------------------------------------------------------------------ joins

    def _join(self, node: l.Join) -> Operation:
        width = len(node.left.schema)
        lefts, rights, rest = equi_keys(node.condition, width)
        left_plan, left_keys = as_columns(node.left, lefts)
        right_plan, right_keys = as_columns(node.right, rights)
        left_plan, right_plan, left_keys, right_keys, rest = _realigned(
            node, left_plan, right_plan, left_keys, right_keys, rest
        )
        left, right = self.plan(left_plan), self.plan(right_plan)
        condition = conjunction(rest)
        semi = node.kind in ("semi", "anti")
        schema = left.schema if semi else l.joined_schema(left.schema, right.schema, node.kind)
        bounds = None
        if node.kind not in ("semi", "anti") and left.mode.insert_only and right.mode.insert_only:
            bounds = interval_bounds(rest, left_plan.schema, right_plan.schema)
        keys = (left_keys, right_keys)
        where = (by_hash(left_keys), by_hash(right_keys))
        text = [f"joinType=[{_JOIN_NAMES[node.kind]}]"]
        equalities = [
            f"{left.schema.names[a]} = {right.schema.names[b]}" for a, b in zip(left_keys, right_keys, strict=True)
        ]
        text.append(f"where=[{' AND '.join(equalities) or 'true'}]")
        window = self._window_of(left_plan, right_plan, left_keys, right_keys)
        if window is not None and left.mode.insert_only and right.mode.insert_only:
            place, found = window
            spec: object = window_tables.WindowJoinSpec(
                left.schema, right.schema, schema, node.kind, keys, (left_keys[place], right_keys[place]), condition,
                found[2], found[1].processing, self._settings.zone,
            )  # fmt: skip
            made = Operation("WindowJoin", ", ".join(text), schema, (left, right), where, spec)
        elif bounds is not None:
            (left_time, right_time), lower, upper, others = bounds
            processing = t.attribute_of(left_plan.schema.types[left_time]) == t.PROCTIME
            spec = time_joins.IntervalJoinSpec(
                left.schema, right.schema, schema, node.kind, keys, (left_time, right_time), lower, upper,
                conjunction(others), processing, self._settings.zone,
            )  # fmt: skip
            made = Operation("IntervalJoin", ", ".join(text), schema, (left, right), where, spec)
        else:
            if node.kind == "inner" and not left_keys and not self._settings.batch:
                text.append("single=[true]")
            one, other = node.ttl
            ttl = (self._settings.ttl if one is None else one, self._settings.ttl if other is None else other)
            spec = join.JoinSpec(
                left.schema, right.schema, schema, node.kind, keys, condition, ttl, self._settings.zone
            )
            plain = left.mode.insert_only and right.mode.insert_only and node.kind in ("inner", "semi")
            mode = ChangelogMode.INSERT_ONLY if plain else ChangelogMode.RETRACT
            upsert = _join_keys(left, right, node.kind, left_keys, right_keys)
            made = Operation("Join", ", ".join(text), schema, (left, right), where, spec, mode=mode, upsert_keys=upsert)
        return self._back(made, node, len(left_plan.schema))

    @staticmethod
    def _window_of(
        left: l.Plan, right: l.Plan, left_keys: tuple[int, ...], right_keys: tuple[int, ...]
    ) -> tuple[int, tuple[str, l.WindowSpec, bool]] | None:
        """Where windows' ends are among the keys of a join, if it is by starts and ends of equal windows."""
        one, other = window_edges(left), window_edges(right)
        parts = [
            (one.get(a, ("",))[0], place)
            for place, (a, b) in enumerate(zip(left_keys, right_keys, strict=True))
            if a in one and b in other and one[a][0] == other[b][0]
        ]
        ends = [place for part, place in parts if part == "end"]
        if not ends or not any(part == "start" for part, _ in parts):
            return None
        return ends[0], one[left_keys[ends[0]]]

    def _back(self, made: Operation, node: l.Join, left_width: int) -> Operation:
        """Only the columns the logical join has, where key columns were added."""
        if len(made.schema) == len(node.schema):
            return made if made.schema.names == node.schema.names else _renamed(made, node.schema)
        width = len(node.left.schema)
        places = list(range(width))
        if node.kind not in ("semi", "anti"):
            places += [left_width + i for i in range(len(node.right.schema))]
        refs = tuple(Ref(made.schema.types[i], i) for i in places)
        spec = calc.CalcSpec(made.schema, node.schema, None, refs, self._settings.zone)
        keys = _projected_keys(made.upsert_keys, refs)
        return Operation(
            "Calc",
            f"select=[{', '.join(node.schema.names)}]",
            node.schema,
            (made,),
            (FORWARD,),
            spec,
            mode=made.mode,
            upsert_keys=keys,
        )

    def _temporal_join(self, node: l.TemporalJoin) -> Operation:
        left = self.plan(node.left)
        kind = t.attribute_of(node.left.schema.types[node.time])
        found = self._lookup_table(node, left) if kind == t.PROCTIME else None
        if found is not None:
            return found
        outside, self._versions = self._versions, True
        right = self.plan(node.right)
        self._versions = outside
        times = [i for i, k in enumerate(node.right.schema.types) if t.attribute_of(k) == t.ROWTIME]
        processing = kind == t.PROCTIME
        if not processing and not times:
            message = "an event-time temporal join needs a versioned table: a primary key and a watermark"
            raise SqlValidationError(message, hint="declare both in CREATE TABLE, or deduplicate in a view")
        keys = (node.left_keys, node.right_keys)
        spec = time_joins.TemporalJoinSpec(
            left.schema, right.schema, node.schema, node.kind, keys, (node.time, times[0] if times else None),
            node.condition, processing, self._settings.zone, self._settings.ttl,
        )  # fmt: skip
        pairs = " AND ".join(f"{left.schema.names[a]} = {right.schema.names[b]}" for a, b in zip(*keys, strict=True))
        detail = f"joinType=[{_JOIN_NAMES[node.kind]}], where=[{pairs}]"
        where = (by_hash(node.left_keys), by_hash(node.right_keys))
        return Operation(
            "TemporalJoin",
            detail,
            node.schema,
            (left, right),
            where,
            spec,
            mode=left.mode,
            upsert_keys=left.upsert_keys,
        )

    def _set_operation(self, node: l.SetOperation) -> Operation:
        parts = tuple(self.plan(each) for each in node.parts)
        if node.operator == "UNION":
            plain = all(each.mode.insert_only for each in parts)
            mode = ChangelogMode.INSERT_ONLY if plain else ChangelogMode.RETRACT
            spec = calc.CalcSpec(node.schema, node.schema, None, None)
            return Operation("Union", "all=[true]", node.schema, parts, (FORWARD,) * len(parts), spec, mode=mode)
        where = by_hash(tuple(range(len(node.schema))))
        made = sets.SetSpec(node.schema, node.operator, node.all, self._settings.ttl)
        return Operation(
            "SetOperation",
            f"{node.operator}{' ALL' if node.all else ''}",
            node.schema,
            parts,
            (where, where),
            made,
            mode=ChangelogMode.RETRACT,
        )

    # ------------------------------------------------------------------------------------------------------ order

    def _rank(self, node: l.Rank, before: bool) -> Operation:
        child = self.plan(node.input)
        retracts = not child.mode.insert_only
        partition = ", ".join(child.schema.names[i] for i in node.partition)
        order = ", ".join(f"{child.schema.names[i]} {'ASC' if a else 'DESC'}" for i, a, _ in node.order)
        edges = window_edges(node.input)
        ends = [i for i in node.partition if i in edges and edges[i][0] == "end"]
        starts = [i for i in node.partition if i in edges and edges[i][0] == "start"]
        if starts and ends and not retracts and node.function == "ROW_NUMBER":
            window, zoned = edges[ends[0]][1], edges[ends[0]][2]
            made = window_tables.WindowRankSpec(
                child.schema, node.schema, node.partition, ends[0], node.order, node.first, node.last, node.with_rank,
                zoned, window.processing, self._settings.zone,
            )  # fmt: skip
            detail = f"rankRange=[{node.first}..{node.last}], partitionBy=[{partition}], orderBy=[{order}]"
            return Operation("WindowRank", detail, node.schema, (child,), (by_hash(node.partition),), made)
        single = (
            node.function == "ROW_NUMBER"
            and (node.first, node.last) == (1, 1)
            and len(node.order) == 1
            and not node.with_rank
        )
        if single and not retracts:
            place, ascending, _ = node.order[0]
            attribute = t.attribute_of(child.schema.types[place])
            if attribute is not None:
                last = not ascending
                processing = attribute == t.PROCTIME
                spec: object = rank.DeduplicateSpec(
                    child.schema, node.partition, place, last, processing, before, self._settings.ttl,
                    self._settings.mini_batch and not self._versions,
                )  # fmt: skip
                mode = ChangelogMode.RETRACT if last else ChangelogMode.INSERT_ONLY
                detail = f"keep=[{'LastRow' if last else 'FirstRow'}], key=[{partition}], order=[{attribute}]"
                return Operation(
                    "Deduplicate",
                    detail,
                    node.schema,
                    (child,),
                    (by_hash(node.partition),),
                    spec,
                    mode=mode,
                    upsert_keys=frozenset((node.partition,)),
                )
        last_place = None if node.last >= 2**62 else node.last
        spec = rank.RankSpec(
            child.schema,
            node.schema,
            node.function,
            node.partition,
            node.order,
            node.first,
            last_place,
            node.with_rank,
            retracts,
            before,
            self._settings.ttl,
            self._settings.mini_batch and not self._versions,
        )
        detail = f"rankFunction=[{node.function}], rankRange=[{node.first}..{node.last}], "
        detail += f"partitionBy=[{partition}], orderBy=[{order}]"
        keys = frozenset(((*node.partition, len(child.schema)),)) if node.with_rank else child.upsert_keys
        if (node.first, node.last, node.function) == (1, 1, "ROW_NUMBER"):
            keys = frozenset((node.partition,))  # the row of a partition may be replaced by one of another key
        return Operation(
            "Rank",
            detail,
            node.schema,
            (child,),
            (by_hash(node.partition),),
            spec,
            mode=ChangelogMode.RETRACT,
            upsert_keys=keys,
        )

    def _sort(self, node: l.Sort, before: bool) -> Operation:
        child = self.plan(node.input)
        order = ", ".join(f"{child.schema.names[i]} {'ASC' if a else 'DESC'}" for i, a, _ in node.order)
        limited = node.limit is not None or node.offset
        if self._settings.batch:
            last = None if node.limit is None else node.offset + node.limit
            spec: object = sort.SortSpec(child.schema, node.order, None, node.offset + 1, last, self._settings.zone)
            return Operation("Sort", f"orderBy=[{order}]", node.schema, (child,), (SINGLE,), spec, parallelism=1)
        if limited:
            last = None if node.limit is None else node.offset + node.limit
            retracts = not child.mode.insert_only
            spec = rank.RankSpec(
                child.schema, node.schema, "ROW_NUMBER", (), node.order, node.offset + 1, last, False, retracts, before,
                self._settings.ttl,
            )  # fmt: skip
            plain = not retracts and not node.order
            name = "SortLimit" if node.order else "Limit"
            mode = ChangelogMode.INSERT_ONLY if plain else ChangelogMode.RETRACT
            detail = f"orderBy=[{order}], offset=[{node.offset}], fetch=[{node.limit}]"
            return Operation(
                name,
                detail,
                node.schema,
                (child,),
                (SINGLE,),
                spec,
                mode=mode,
                parallelism=1,
                upsert_keys=child.upsert_keys if last != 1 else frozenset(((),)),
            )
        first = node.order[0]
        attribute = t.attribute_of(child.schema.types[first[0]])
        if attribute is None or not first[1] or not child.mode.insert_only:
            message = "rows of a stream can be ordered by a time attribute, ascending, only"
            raise SqlNotSupported(message, hint="add LIMIT for a Top-N, or use batch mode")
        spec = sort.SortSpec(child.schema, node.order, first[0], 1, None, self._settings.zone)
        return Operation("TemporalSort", f"orderBy=[{order}]", node.schema, (child,), (SINGLE,), spec, parallelism=1)

    def _match(self, node: l.Match) -> Operation:
        child = self.plan(node.input)
        if not child.mode.insert_only:
            message = "MATCH_RECOGNIZE cannot look at rows that are corrected later"
            raise SqlNotSupported(message)
        found: Operation = node.description.operation(node, child, self._settings.zone)
        return found


_JOIN_NAMES = {
    "inner": "InnerJoin",
    "left": "LeftOuterJoin",
    "right": "RightOuterJoin",
    "full": "FullOuterJoin",
    "semi": "LeftSemiJoin",
    "anti": "LeftAntiJoin",
}


def _renamed(made: Operation, schema: t.RowType) -> Operation:
    refs = tuple(Ref(kind, i) for i, kind in enumerate(made.schema.types))
    spec = calc.CalcSpec(made.schema, schema, None, refs)
    return Operation(
        "Calc",
        f"select=[{', '.join(schema.names)}]",
        schema,
        (made,),
        (FORWARD,),
        spec,
        mode=made.mode,
        upsert_keys=made.upsert_keys,
    )


def _realigned(
    node: l.Join,
    left: l.Plan,
    right: l.Plan,
    left_keys: tuple[int, ...],
    right_keys: tuple[int, ...],
    rest: list[Expression],
) -> tuple[l.Plan, l.Plan, tuple[int, ...], tuple[int, ...], list[Expression]]:
    """The rest of the condition over the sides as they are with their key columns."""
    added = len(left.schema) - len(node.left.schema)
    if added:
        width = len(node.left.schema)
        rest = [shifted(part, lambda i: i if i < width else i + added) for part in rest]
    return left, right, left_keys, right_keys, rest


def _with_results(schema: t.RowType, calls: tuple[l.OverCall, ...]) -> t.RowType:
    names = [*schema.names, *(f"w{len(schema) + i}$o" for i in range(len(calls)))]
    return t.row_of(l.unique(names), [*schema.types, *(c.call.type for c in calls)], null=False)


def _over_changes(over: l.OverCall) -> bool:
    """Whether a call can be computed over rows that are corrected later."""
    numbering = over.call.function in ("ROW_NUMBER", "RANK", "DENSE_RANK", "LAG", "LEAD", "NTILE")
    return not numbering and (over.rows or over.lower is None)


def _mergeable(inner: tuple[Expression, ...], outer: list[Expression]) -> bool:
    """Whether computing `inner` inside `outer` repeats no work."""
    uses: dict[int, int] = {}
    for each in outer:
        for index in _occurrences(each):
            uses[index] = uses.get(index, 0) + 1
    return all(isinstance(each, Ref | Lit) or uses.get(i, 0) <= 1 for i, each in enumerate(inner))


def _occurrences(expression: Expression) -> list[int]:
    if isinstance(expression, Ref):
        return [expression.index]
    return [index for child in expression.children() for index in _occurrences(child)]


def _projected_keys(keys: frozenset[tuple[int, ...]], exprs: tuple[Expression, ...]) -> frozenset[tuple[int, ...]]:
    where: dict[int, int] = {}
    for i, each in enumerate(exprs):
        if isinstance(each, Ref):
            where.setdefault(each.index, i)
    return frozenset(tuple(where[i] for i in key) for key in keys if all(i in where for i in key))


def _join_keys(
    left: Operation, right: Operation, kind: str, _left_keys: tuple[int, ...], right_keys: tuple[int, ...]
) -> frozenset[tuple[int, ...]]:
    if kind in ("semi", "anti"):
        return left.upsert_keys
    width = len(left.schema)
    found: set[tuple[int, ...]] = set()
    for one in left.upsert_keys:
        for other in right.upsert_keys:
            found.add((*one, *(i + width for i in other)))
        if any(set(other) <= set(right_keys) for other in right.upsert_keys) and kind in ("inner", "left"):
            found.add(one)
    return frozenset(found)


def interval_bounds(
    parts: list[Expression], left: t.RowType, right: t.RowType
) -> tuple[tuple[int, int], int, int, list[Expression]] | None:
    """The bounds right + lower <= left <= right + upper in conditions on two time attributes, and what is left."""
    width = len(left)
    kinds = [*left.types, *right.types]
    lower: int | None = None
    upper: int | None = None
    times: tuple[int, int] | None = None
    others: list[Expression] = []
    for part in parts:
        found = _time_bound(part, kinds, width)
        if found is None or (times is not None and found[0] != times):
            others.append(part)
            continue
        times, sign, offset = found
        if sign in ("<=", "<", "="):
            bound = offset - 1 if sign == "<" else offset
            upper = bound if upper is None else min(upper, bound)
        if sign in (">=", ">", "="):
            bound = offset + 1 if sign == ">" else offset
            lower = bound if lower is None else max(lower, bound)
    if times is None or lower is None or upper is None:
        return None
    return times, lower, upper, others


_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


def _time_bound(part: Expression, kinds: list[t.DataType], width: int) -> tuple[tuple[int, int], str, int] | None:
    """left (sign) right + offset."""
    if not isinstance(part, Apply) or part.function not in _TURNED:
        return None
    sides = [_moved(arg, kinds) for arg in part.args]
    if None in sides:
        return None
    (one, first), (other, second) = sides  # type: ignore[misc]
    sign = part.function
    if one >= width > other:
        one, first, other, second, sign = other, second, one, first, _TURNED[sign]
    if not one < width <= other:
        return None
    return (one, other - width), sign, second - first


def _moved(expression: Expression, kinds: list[t.DataType]) -> tuple[int, int] | None:
    """A time attribute plus so many milliseconds."""
    if isinstance(expression, Convert) and t.is_timestamp(expression.type):
        return _moved(expression.operand, kinds)
    if isinstance(expression, Ref):
        return (expression.index, 0) if t.attribute_of(kinds[expression.index]) is not None else None
    if isinstance(expression, Apply) and expression.function in ("TEMPORAL +", "TEMPORAL -"):
        base, span = _moved(expression.args[0], kinds), expression.args[1]
        if base is not None and isinstance(span, Lit) and isinstance(span.value, datetime.timedelta):
            millis = int(span.value // _MS)
            return base[0], base[1] + (millis if expression.function.endswith("+") else -millis)
    return None


# --------------------------------------------------------------------------------------------------------- as text


def described(expression: Expression, schema: t.RowType) -> str:
    """An expression with names in place of positions."""
    match expression:
        case Ref(index=index):
            return schema.names[index]
        case Apply(function=function, args=args):
            inside = [described(each, schema) for each in args]
            if not function.replace(" ", "").isalnum() and len(inside) == 2:
                return f"({inside[0]} {function.removeprefix('TEMPORAL ')} {inside[1]})"
            return f"{function}({', '.join(inside)})"
        case Convert(operand=operand, type=kind):
            return f"CAST({described(operand, schema)} AS {kind})"
        case Lit():
            return str(expression)
    names = [described(each, schema) for each in expression.children()]
    return f"{type(expression).__name__.upper()}({', '.join(names)})"


def _selected(exprs: tuple[Expression, ...], output: t.RowType, schema: t.RowType) -> str:
    shown = []
    for each, name in zip(exprs, output.names, strict=True):
        text = described(each, schema)
        shown.append(text if text == name else f"{text} AS {name}")
    return ", ".join(shown)


def call_text(call: AggregateCall, schema: t.RowType) -> str:
    """An aggregate call with names."""
    inside = ", ".join(schema.names[i] for i in call.args) or "*"
    tail = "" if call.filter is None else f" FILTER {schema.names[call.filter]}"
    return f"{call.function}({'DISTINCT ' if call.distinct else ''}{inside}){tail}"


def window_text(window: l.WindowSpec, schema: t.RowType) -> str:
    """A window as EXPLAIN shows it."""
    sizes = f"size=[{window.size} ms]" if window.kind != "SESSION" else f"gap=[{window.size} ms]"
    slide = (
        f", slide=[{window.slide} ms]"
        if window.kind == "HOP"
        else f", step=[{window.slide} ms]"
        if window.kind == "CUMULATE"
        else ""
    )
    return f"{window.kind}(time_col=[{schema.names[window.time]}], {sizes}{slide})"
