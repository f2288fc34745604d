"""Planning of Top-N, deduplication, sorting and set operations.

Promises: what is possible on a stream is planned; other queries are refused.
Does not know: how rows are kept."""

from __future__ import annotations

from dataclasses import replace

from millstream.sql.errors import SqlNotSupported
from millstream.sql.logical import nodes as l
from millstream.sql.logical.window_columns import find_window_edges
from millstream.sql.operators import calc
from millstream.sql.operators.changelog import sets
from millstream.sql.operators.join import window_tables
from millstream.sql.operators.rank import sort
from millstream.sql.operators.rank import top_n as rank
from millstream.sql.physical.nodes import FORWARD, SINGLE, Operation, distribute_by_hash
from millstream.sql.physical.planning.contract import Planning
from millstream.sql.physical.planning.placement import Placements
from millstream.sql.types import data_types as t
from millstream.sql.types.changelog_mode import ChangelogMode


def plan_set_operation(planner: Planning, node: l.SetOperation) -> Operation:
    """Plan UNION ALL, INTERSECT or EXCEPT."""
    parts = tuple(planner.plan(part) for part in node.parts)
    if node.operator == "UNION":
        is_insert_only = all(part.mode.insert_only for part in parts)
        mode = ChangelogMode.INSERT_ONLY if is_insert_only else ChangelogMode.RETRACT
        spec = calc.CalcSpec(node.schema, node.schema, None, None)
        return Operation("Union", "all=[true]", node.schema, parts, (FORWARD,) * len(parts), spec, mode=mode)
    distribution = distribute_by_hash(tuple(range(len(node.schema))))
    set_spec = sets.SetSpec(node.schema, node.operator, node.all, planner.settings.ttl)
    return Operation(
        "SetOperation",
        f"{node.operator}{' ALL' if node.all else ''}",
        node.schema,
        parts,
        (distribution, distribution),
        set_spec,
        mode=ChangelogMode.RETRACT,
    )


def plan_rank(planner: Planning, node: l.Rank, before: bool) -> Operation:
    """Plan a Top-N: in windows, as a deduplication, or as a rank."""
    child = planner.plan(node.input)
    retracts = not child.mode.insert_only
    partition = ", ".join(child.schema.names[i] for i in node.partition)
    order = ", ".join(f"{child.schema.names[i]} {'ASC' if a else 'DESC'}" for i, a, _ in node.order)
    edges = find_window_edges(node.input)
    ends = [i for i in node.partition if i in edges and edges[i][0] == "end"]
    starts = [i for i in node.partition if i in edges and edges[i][0] == "start"]
    if starts and ends and not retracts and node.function == "ROW_NUMBER":
        window, zoned = edges[ends[0]][1], edges[ends[0]][2]
        window_spec = window_tables.WindowRankSpec(
            child.schema, node.schema, node.partition, ends[0], node.order, node.first, node.last, node.with_rank,
            zoned, window.processing, planner.settings.zone,
        )  # fmt: skip
        detail = f"rankRange=[{node.first}..{node.last}], partitionBy=[{partition}], orderBy=[{order}]"
        return Operation(
            "WindowRank", detail, node.schema, (child,), (distribute_by_hash(node.partition),), window_spec
        )
    is_single = (
        node.function == "ROW_NUMBER"
        and (node.first, node.last) == (1, 1)
        and len(node.order) == 1
        and not node.with_rank
    )
    if is_single and not retracts:
        time_index, ascending, _ = node.order[0]
        attribute = t.get_time_attribute(child.schema.types[time_index])
        if attribute is not None:
            last = not ascending
            processing = attribute == t.PROCTIME
            spec: object = rank.DeduplicateSpec(
                child.schema, node.partition, time_index, last, processing, before, planner.settings.ttl,
                planner.settings.mini_batch and not planner.versions, planner.settings.mini_batch_size,
            )  # fmt: skip
            mode = ChangelogMode.RETRACT if last else ChangelogMode.INSERT_ONLY
            detail = f"keep=[{'LastRow' if last else 'FirstRow'}], key=[{partition}], order=[{attribute}]"
            deduplicate = Operation(
                "Deduplicate",
                detail,
                node.schema,
                (child,),
                (distribute_by_hash(node.partition),),
                spec,
                mode=mode,
                upsert_keys=frozenset((node.partition,)),
            )
            return _plan_two_phases(planner, deduplicate)
    last_rank = None if node.last >= 2**62 else node.last
    spec = rank.RankSpec(
        child.schema,
        node.schema,
        node.function,
        node.partition,
        node.order,
        node.first,
        last_rank,
        node.with_rank,
        retracts,
        before,
        planner.settings.ttl,
        planner.settings.mini_batch and not planner.versions,
        planner.settings.mini_batch_size,
    )
    detail = f"rankFunction=[{node.function}], rankRange=[{node.first}..{node.last}], "
    detail += f"partitionBy=[{partition}], orderBy=[{order}]"
    keys = frozenset(((*node.partition, len(child.schema)),)) if node.with_rank else child.upsert_keys
    if (node.first, node.last, node.function) == (1, 1, "ROW_NUMBER"):
        keys = frozenset((node.partition,))  # the row of a partition may be replaced by a row with another upsert key
    operation = Operation(
        "Rank",
        detail,
        node.schema,
        (child,),
        (distribute_by_hash(node.partition),),
        spec,
        mode=ChangelogMode.RETRACT,
        upsert_keys=keys,
    )
    return _plan_two_phases(planner, operation)


def _plan_two_phases(planner: Planning, operation: Operation) -> Operation:
    """Add a local phase before the exchange, unless it is not possible or there is no exchange."""
    local_spec = rank.create_local_phase(operation.spec) if planner.settings.two_phase else None
    if local_spec is None or Placements().in_place(operation, 0):
        return operation
    (child,) = operation.inputs
    name = f"Local{operation.name}"
    local = Operation(
        name, operation.detail, child.schema, (child,), (FORWARD,), local_spec, upsert_keys=child.upsert_keys
    )
    return replace(operation, inputs=(local,))


def plan_sort(planner: Planning, node: l.Sort, before: bool) -> Operation:
    """Plan ORDER BY: all rows in batch mode; by time, or with LIMIT, on a stream."""
    child = planner.plan(node.input)
    order = ", ".join(f"{child.schema.names[i]} {'ASC' if a else 'DESC'}" for i, a, _ in node.order)
    has_limit = node.limit is not None or node.offset
    if planner.settings.batch:
        last = None if node.limit is None else node.offset + node.limit
        spec: object = sort.SortSpec(child.schema, node.order, None, node.offset + 1, last, planner.settings.zone)
        return Operation("Sort", f"orderBy=[{order}]", node.schema, (child,), (SINGLE,), spec, parallelism=1)
    if has_limit:
        last = None if node.limit is None else node.offset + node.limit
        retracts = not child.mode.insert_only
        spec = rank.RankSpec(
            child.schema, node.schema, "ROW_NUMBER", (), node.order, node.offset + 1, last, False, retracts, before,
            planner.settings.ttl,
        )  # fmt: skip
        is_append_only = not retracts and not node.order
        name = "SortLimit" if node.order else "Limit"
        mode = ChangelogMode.INSERT_ONLY if is_append_only else ChangelogMode.RETRACT
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
    attribute = t.get_time_attribute(child.schema.types[first[0]])
    if attribute is None or not first[1] or not child.mode.insert_only:
        message = "a stream can be sorted only by a time attribute, ascending"
        raise SqlNotSupported(message, hint="add LIMIT for a Top-N, or use batch mode", about="ORDER")
    spec = sort.SortSpec(child.schema, node.order, first[0], 1, None, planner.settings.zone)
    return Operation("TemporalSort", f"orderBy=[{order}]", node.schema, (child,), (SINGLE,), spec, parallelism=1)
