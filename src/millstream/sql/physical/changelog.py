"""Changelogs at the ends of a query: sources that emit upserts only, and sinks that accept some changes only.

Promises: Flink's rules. A source without -U is normalized by its primary key. A sink with a primary key gets the
changes of that key, through a materializer if the query has another upsert key. Constraints are checked before.
Does not know: connectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from millstream.config.option import Option
from millstream.sql.connector.table_connector import TableContext
from millstream.sql.errors import SqlValidationError
from millstream.sql.expressions.nodes import Ref
from millstream.sql.operators.calc import CalcSpec
from millstream.sql.operators.changelog.changelog_normalize import ChangelogNormalizeSpec
from millstream.sql.operators.changelog.conflicts import ConflictSpec
from millstream.sql.operators.changelog.constraints import ConstraintSpec
from millstream.sql.operators.changelog.upsert_materializer import UpsertMaterializeSpec, UpsertsSpec
from millstream.sql.operators.spec import SqlOperatorSpec
from millstream.sql.physical.nodes import FORWARD, Operation, ScanOrigin, distribute_by_hash
from millstream.sql.types import data_types as t
from millstream.sql.types.changelog_mode import ChangelogMode
from millstream.sql_options import (
    SINK_LENGTH_ENFORCER,
    SINK_NOT_NULL_ENFORCER,
    SINK_REQUIRE_ON_CONFLICT,
    SINK_UPSERT_MATERIALIZE,
    SOURCE_CDC_DUPLICATES,
)

Options = Callable[[str], str | None]


def read_choice(options: Options, option: Option[Any], context: TableContext) -> str:
    """Read an option of the session that has fixed choices, in upper case."""
    choices = option.choices or ("TRUE", "FALSE")
    choice = (options(option.key) or str(option.default)).upper()
    if choice not in choices:
        message = f"option '{option.key}' must be {' or '.join(choices)}, not '{choice}'"
        raise context.fail(message)
    return choice


def normalize_source(scan: Operation, context: TableContext, options: Options, ttl: int | None) -> Operation:
    """Return a scan with the upsert key of its table, normalized if its source emits upserts or duplicates."""
    names = context.definition.primary_key
    key = tuple(scan.schema.names.index(name) for name in names)
    has_duplicates = (
        scan.mode is ChangelogMode.RETRACT and read_choice(options, SOURCE_CDC_DUPLICATES, context) == "TRUE"
    )
    if scan.mode is ChangelogMode.UPSERT or has_duplicates:
        if not key:
            problem = "may emit a change twice" if has_duplicates else "emits updates without UPDATE_BEFORE rows"
            message = f"its source {problem}, so it needs a primary key"
            raise context.fail(message, "declare PRIMARY KEY (...) NOT ENFORCED")
        return normalize_upserts(scan, key, ttl)
    return replace(scan, upsert_keys=frozenset((key,))) if key else scan


def normalize_upserts(scan: Operation, key: tuple[int, ...], ttl: int | None) -> Operation:
    """Add an operator that converts upserts by key to a changelog with UPDATE_BEFORE rows."""
    spec = ChangelogNormalizeSpec(scan.schema, key, ttl)
    detail = f"key=[{', '.join(scan.schema.names[i] for i in key)}]"
    return Operation(
        "ChangelogNormalize", detail, scan.schema, (scan,), (distribute_by_hash(key),), spec,
        mode=ChangelogMode.RETRACT, upsert_keys=frozenset((key,)),
    )  # fmt: skip


def narrow_normalization(child: Operation, used: set[int]) -> tuple[Operation, dict[int, int]]:
    """Remove columns that are not used from a normalization, and return the new index of each column.

    A change of other columns is then no change, as in Flink, which reads the columns it needs."""
    identity = {index: index for index in range(len(child.schema))}
    if not isinstance(child.spec, ChangelogNormalizeSpec) or used >= identity.keys():
        return child, identity
    kept = sorted(used | set(child.spec.keys))
    mapping = {old: new for new, old in enumerate(kept)}
    (scan,) = child.inputs
    names = [child.schema.names[i] for i in kept]
    schema = t.row_of(names, [child.schema.types[i] for i in kept], null=False)
    refs = tuple(Ref(child.schema.types[i], i) for i in kept)
    detail = f"select=[{', '.join(names)}]"
    columns = Operation(
        "Calc", detail, schema, (scan,), (FORWARD,), CalcSpec(scan.schema, schema, None, refs), mode=scan.mode
    )
    key = tuple(mapping[i] for i in child.spec.keys)
    spec = replace(child.spec, schema=schema, keys=key)
    narrow = replace(
        child,
        schema=schema,
        inputs=(columns,),
        distributions=(distribute_by_hash(key),),
        spec=spec,
        upsert_keys=frozenset((key,)),
    )
    return narrow, mapping


def plan_sink_input(
    plan: Callable[[bool], Operation],
    accepts: ChangelogMode,
    context: TableContext,
    options: Options,
    ttl: int | None,
    conflict: str | None = None,
) -> Operation:
    """Plan the input of a sink.

    `plan` returns the rows of the query, with or without -U rows; `conflict` is the action of ON CONFLICT DO."""
    conflict = None if context.batch else conflict  # batch jobs have no changes, only final rows
    child = _check_constraints(plan(True), context, options)
    is_upsert_sink = accepts is ChangelogMode.UPSERT or not (accepts.insert_only or child.mode.insert_only)
    if conflict is not None and not is_upsert_sink:
        message = "ON CONFLICT is allowed for upsert sinks only, and the sink of this table gets inserts only"
        raise context.fail(message, "leave out ON CONFLICT")
    if accepts.insert_only:
        _refuse_updates(child, context)
        return child
    key = tuple(child.schema.names.index(name) for name in context.definition.primary_key)
    materialize = read_choice(options, SINK_UPSERT_MATERIALIZE, context)
    if not child.mode.insert_only and accepts is ChangelogMode.UPSERT and not key:
        message = "its connector writes updates by key, but the table has no primary key"
        raise context.fail(message, "declare PRIMARY KEY (...) NOT ENFORCED")
    detects_conflicts = conflict in ("ERROR", "NOTHING")
    if detects_conflicts:
        _check_watermarks(child, context, conflict)
    has_updates = detects_conflicts or not child.mode.insert_only
    differs = has_updates and not any(set(upsert_key) <= set(key) for upsert_key in child.upsert_keys)
    if key and (materialize == "FORCE" or (materialize == "AUTO" and differs)):
        if (
            materialize == "AUTO"
            and conflict is None
            and read_choice(options, SINK_REQUIRE_ON_CONFLICT, context) == "TRUE"
        ):
            raise _create_conflict_error(child, context)
        return _materialize_upserts(child, key, ttl, conflict)
    if accepts is not ChangelogMode.UPSERT or child.mode.insert_only:
        return child
    if any(set(upsert_key) == set(key) for upsert_key in child.upsert_keys):
        child = _check_constraints(plan(False), context, options)
    if child.mode is ChangelogMode.UPSERT:
        return child
    return convert_to_upserts(child, key)


def convert_to_upserts(child: Operation, key: tuple[int, ...]) -> Operation:
    """Add an operator that converts a changelog to upserts and deletes by key."""
    return Operation(
        "Upserts", f"key=[{', '.join(child.schema.names[i] for i in key)}]", child.schema, (child,), (FORWARD,),
        UpsertsSpec(child.schema, key), mode=ChangelogMode.UPSERT, upsert_keys=child.upsert_keys,
    )  # fmt: skip


def _create_conflict_error(child: Operation, context: TableContext) -> SqlValidationError:
    keys = [" and ".join(child.schema.names[i] for i in upsert_key) for upsert_key in sorted(child.upsert_keys)]
    problem = f"the query's rows are identified by {' or by '.join(keys)}" if keys else "the query's rows have no key"
    message = f"its primary key is {' and '.join(context.definition.primary_key)}, but {problem}"
    option = SINK_REQUIRE_ON_CONFLICT.key
    hint = (
        "several rows may have the same primary key: add ON CONFLICT DO DEDUPLICATE (the last row), DO NOTHING (the "
        f"first row) or DO ERROR, or set '{option}' = 'false'"
    )
    return context.fail(message, hint)


def _check_watermarks(child: Operation, context: TableContext, conflict: str | None) -> None:
    """Refuse sources without watermarks: rows wait for the watermark before conflicts are resolved."""
    tables = sorted(_find_tables_without_watermark(child))
    if tables:
        message = f"ON CONFLICT DO {conflict} needs watermarks, and these tables have none: {', '.join(tables)}"
        raise context.fail(message, "declare WATERMARK FOR column AS expression in these tables")


def _find_tables_without_watermark(operation: Operation) -> set[str]:
    if isinstance(operation.origin, ScanOrigin):
        has_watermark = operation.origin.table.watermark is not None
        return set() if has_watermark else {".".join(operation.origin.name)}
    return {name for child in operation.inputs for name in _find_tables_without_watermark(child)}


def _materialize_upserts(
    child: Operation, key: tuple[int, ...], ttl: int | None, conflict: str | None = None
) -> Operation:
    upsert_key = min(child.upsert_keys, key=lambda columns: (len(columns), columns), default=None)
    detail = f"pk=[{', '.join(child.schema.names[i] for i in key)}]"
    spec: SqlOperatorSpec = UpsertMaterializeSpec(child.schema, key, upsert_key or None, ttl)
    if conflict in ("ERROR", "NOTHING"):
        detail = f"{detail}, conflictStrategy=[{conflict}]"
        spec = ConflictSpec(child.schema, key, upsert_key or None, conflict == "NOTHING", ttl)
    return Operation(
        "SinkMaterializer", detail, child.schema, (child,), (distribute_by_hash(key),), spec, mode=ChangelogMode.UPSERT,
        upsert_keys=frozenset((key,)),
    )  # fmt: skip


def _refuse_updates(child: Operation, context: TableContext) -> None:
    if child.mode.insert_only:
        return
    cause = child
    while updating := [input_operation for input_operation in cause.inputs if not input_operation.mode.insert_only]:
        cause = updating[0]
    text = f"{cause.name}({cause.detail})" if cause.detail else cause.name
    message = f"it accepts inserts only, but the query emits updates ({child.mode.value}): {text}"
    hint = "use a sink that accepts updates and declare its primary key, or a query without updates"
    raise context.fail(message, hint)


def _check_constraints(child: Operation, context: TableContext, options: Options) -> Operation:
    """Add checks if the query can violate constraints of the table."""
    columns = {column.name: column for column in context.definition.columns}
    keys = context.definition.primary_key
    target_types: list[t.DataType] = [
        columns[name].type.not_null() if name in keys else columns[name].type for name in child.schema.names
    ]
    required = tuple(
        i
        for i, (target_type, source_type) in enumerate(zip(target_types, child.schema.types, strict=True))
        if source_type.null and not target_type.null
    )
    lengths = read_choice(options, SINK_LENGTH_ENFORCER, context)
    if not required and lengths == "IGNORE":
        return child
    drop = read_choice(options, SINK_NOT_NULL_ENFORCER, context) == "DROP"
    target = t.row_of(child.schema.names, target_types, null=False)
    spec = ConstraintSpec(child.schema, target, ".".join(context.name), required, drop, lengths)
    detail = f"NotNullEnforcer(fields=[{', '.join(child.schema.names[i] for i in required)}])"
    return Operation(
        "ConstraintEnforcer", detail, child.schema, (child,), (FORWARD,), spec, mode=child.mode,
        upsert_keys=child.upsert_keys,
    )  # fmt: skip
