"""What stands between a changelog and the ends of a query: sources that tell upserts, sinks that take some changes.

Promises: Flink's rules. A source without -U is completed by its primary key; a sink with a primary key is told the
changes of that key, by a materializer where the query's own keys are others; constraints are enforced before.
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
from millstream.sql.operators.changelog.constraints import ConstraintSpec
from millstream.sql.operators.changelog.upsert_materializer import UpsertMaterializeSpec, UpsertsSpec
from millstream.sql.physical.nodes import FORWARD, Operation, by_hash
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
    """Read an option of the session that is one of some words, in upper case."""
    words = option.choices or ("TRUE", "FALSE")
    word = (options(option.key) or str(option.default)).upper()
    if word not in words:
        message = f"option '{option.key}' must be {' or '.join(words)}, not '{word}'"
        raise context.fail(message)
    return word


def completed(scan: Operation, context: TableContext, options: Options, ttl: int | None) -> Operation:
    """The rows of a table with the keys it promises, and with all changes told where its source tells upserts only."""
    names = context.definition.primary_key
    key = tuple(scan.schema.names.index(name) for name in names)
    duplicates = scan.mode is ChangelogMode.RETRACT and read_choice(options, SOURCE_CDC_DUPLICATES, context) == "TRUE"
    if scan.mode is ChangelogMode.UPSERT or duplicates:
        if not key:
            what = "may tell a change twice" if duplicates else "does not tell what a row was before an update"
            message = f"its source {what}, so it needs a primary key"
            raise context.fail(message, "declare PRIMARY KEY (...) NOT ENFORCED")
        spec = ChangelogNormalizeSpec(scan.schema, key, ttl)
        detail = f"key=[{', '.join(names)}]"
        return Operation(
            "ChangelogNormalize", detail, scan.schema, (scan,), (by_hash(key),), spec, mode=ChangelogMode.RETRACT,
            upsert_keys=frozenset((key,)),
        )  # fmt: skip
    return replace(scan, upsert_keys=frozenset((key,))) if key else scan


def narrowed(child: Operation, used: set[int]) -> tuple[Operation, dict[int, int]]:
    """The rows with the columns that are used, if they are remembered to be completed, and where each column is now.

    A change of other columns is then no change, as in Flink, which reads the columns it needs."""
    everything = {place: place for place in range(len(child.schema))}
    if not isinstance(child.spec, ChangelogNormalizeSpec) or used >= everything.keys():
        return child, everything
    kept = sorted(used | set(child.spec.keys))
    places = {old: new for new, old in enumerate(kept)}
    (scan,) = child.inputs
    names = [child.schema.names[i] for i in kept]
    schema = t.row_of(names, [child.schema.types[i] for i in kept], null=False)
    refs = tuple(Ref(child.schema.types[i], i) for i in kept)
    shown = f"select=[{', '.join(names)}]"
    columns = Operation(
        "Calc", shown, schema, (scan,), (FORWARD,), CalcSpec(scan.schema, schema, None, refs), mode=scan.mode
    )
    key = tuple(places[i] for i in child.spec.keys)
    spec = replace(child.spec, schema=schema, keys=key)
    made = replace(
        child, schema=schema, inputs=(columns,), distributions=(by_hash(key),), spec=spec, upsert_keys=frozenset((key,))
    )
    return made, places


def consumed(
    plan: Callable[[bool], Operation],
    accepts: ChangelogMode,
    context: TableContext,
    options: Options,
    ttl: int | None,
    conflict: str | None = None,
) -> Operation:
    """What a sink is told of a query. `plan` makes the query's rows, with -U rows or without; `conflict` is what the
    statement says about rows that claim one primary key."""
    if conflict not in (None, "DEDUPLICATE"):
        message = f"ON CONFLICT DO {conflict} is not supported"
        raise context.fail(message, "ON CONFLICT DO DEDUPLICATE keeps the last row of each primary key")
    child = _constrained(plan(True), context, options)
    if accepts.insert_only:
        _refuse_updates(child, context)
        return child
    key = tuple(child.schema.names.index(name) for name in context.definition.primary_key)
    how = read_choice(options, SINK_UPSERT_MATERIALIZE, context)
    if not child.mode.insert_only and accepts is ChangelogMode.UPSERT and not key:
        message = "it takes updates by key, but the table has no primary key"
        raise context.fail(message, "declare PRIMARY KEY (...) NOT ENFORCED")
    others = not child.mode.insert_only and not any(set(each) <= set(key) for each in child.upsert_keys)
    if key and (how == "FORCE" or (how == "AUTO" and others)):
        if how == "AUTO" and conflict is None and read_choice(options, SINK_REQUIRE_ON_CONFLICT, context) == "TRUE":
            raise _ambiguous(child, context)
        return _materialized(child, key, ttl)
    if accepts is not ChangelogMode.UPSERT or child.mode.insert_only:
        return child
    if any(set(each) == set(key) for each in child.upsert_keys):
        child = _constrained(plan(False), context, options)
    if child.mode is ChangelogMode.UPSERT:
        return child
    return Operation(
        "Upserts", f"key=[{', '.join(context.definition.primary_key)}]", child.schema, (child,), (FORWARD,),
        UpsertsSpec(child.schema, key), mode=ChangelogMode.UPSERT, upsert_keys=child.upsert_keys,
    )  # fmt: skip


def _ambiguous(child: Operation, context: TableContext) -> SqlValidationError:
    keys = [" and ".join(child.schema.names[i] for i in each) for each in sorted(child.upsert_keys)]
    own = f"the query's rows are told apart by {' or by '.join(keys)}" if keys else "the query's rows have no key"
    message = f"its primary key is {' and '.join(context.definition.primary_key)}, but {own}"
    option = SINK_REQUIRE_ON_CONFLICT.key
    hint = f"several may claim one primary key: add ON CONFLICT DO DEDUPLICATE, or set '{option}' = 'false'"
    return context.fail(message, hint)


def _materialized(child: Operation, key: tuple[int, ...], ttl: int | None) -> Operation:
    own = min(child.upsert_keys, key=lambda each: (len(each), each), default=None)
    spec = UpsertMaterializeSpec(child.schema, key, own or None, ttl)
    detail = f"pk=[{', '.join(child.schema.names[i] for i in key)}]"
    return Operation(
        "SinkMaterializer", detail, child.schema, (child,), (by_hash(key),), spec, mode=ChangelogMode.UPSERT,
        upsert_keys=frozenset((key,)),
    )  # fmt: skip


def _refuse_updates(child: Operation, context: TableContext) -> None:
    if child.mode.insert_only:
        return
    cause = child
    while found := [each for each in cause.inputs if not each.mode.insert_only]:
        cause = found[0]
    shown = f"{cause.name}({cause.detail})" if cause.detail else cause.name
    message = f"it takes inserts only, but the query corrects rows it has told ({child.mode.value}): {shown}"
    hint = "use a sink with a primary key that takes updates, or a query that only appends"
    raise context.fail(message, hint)


def _constrained(child: Operation, context: TableContext, options: Options) -> Operation:
    """The rows, checked where the query can break what the table promises."""
    columns = {each.name: each for each in context.definition.columns}
    keys = context.definition.primary_key
    kinds: list[t.DataType] = [
        columns[name].type.not_null() if name in keys else columns[name].type for name in child.schema.names
    ]
    required = tuple(
        i for i, (want, have) in enumerate(zip(kinds, child.schema.types, strict=True)) if have.null and not want.null
    )
    lengths = read_choice(options, SINK_LENGTH_ENFORCER, context)
    if not required and lengths == "IGNORE":
        return child
    drop = read_choice(options, SINK_NOT_NULL_ENFORCER, context) == "DROP"
    target = t.row_of(child.schema.names, kinds, null=False)
    spec = ConstraintSpec(child.schema, target, ".".join(context.name), required, drop, lengths)
    detail = f"NotNullEnforcer(fields=[{', '.join(child.schema.names[i] for i in required)}])"
    return Operation(
        "ConstraintEnforcer", detail, child.schema, (child,), (FORWARD,), spec, mode=child.mode,
        upsert_keys=child.upsert_keys,
    )  # fmt: skip
