"""Planning of TO_CHANGELOG and FROM_CHANGELOG.

Promises: the input of TO_CHANGELOG has all changes, with UPDATE_BEFORE rows; the input of FROM_CHANGELOG is
insert-only.
Does not know: how codes are assigned."""

from __future__ import annotations

from millstream.sql.errors import SqlNotSupported
from millstream.sql.logical import nodes as l
from millstream.sql.operators.changelog.changelog_rows import FromChangelogSpec, ToChangelogSpec
from millstream.sql.physical.nodes import FORWARD, Operation, distribute_by_hash
from millstream.sql.physical.planning.contract import Planning
from millstream.sql.types.changelog_mode import ChangelogMode


def plan_to_changelog(planner: Planning, node: l.ToChangelog) -> Operation:
    """Plan the conversion of changes to rows."""
    _check_streaming(planner, "TO_CHANGELOG")
    child = planner.plan(node.input)
    spec = ToChangelogSpec(child.schema, node.schema, node.codes)
    codes = ", ".join(f"{l.ROW_KINDS[row_kind]}={code}" for row_kind, code in node.codes)
    distribution = distribute_by_hash(node.partition) if node.partition else FORWARD
    return Operation("ToChangelog", f"op_mapping=[{codes}]", node.schema, (child,), (distribution,), spec)


def plan_from_changelog(planner: Planning, node: l.FromChangelog) -> Operation:
    """Plan the conversion of rows to changes."""
    _check_streaming(planner, "FROM_CHANGELOG")
    child = planner.plan(node.input)
    if not child.mode.insert_only:
        message = f"the input of FROM_CHANGELOG must be insert-only, but it emits updates ({child.mode.value})"
        raise SqlNotSupported(message, hint="convert changes to rows with TO_CHANGELOG", about="FROM_CHANGELOG")
    spec = FromChangelogSpec(child.schema, node.schema, node.op, node.codes)
    codes = ", ".join(f"{code}={l.ROW_KINDS[row_kind]}" for code, row_kind in node.codes)
    distribution = distribute_by_hash(node.partition) if node.partition else FORWARD
    return Operation(
        "FromChangelog",
        f"op_mapping=[{codes}]",
        node.schema,
        (child,),
        (distribution,),
        spec,
        mode=ChangelogMode.RETRACT,
    )


def _check_streaming(planner: Planning, name: str) -> None:
    if planner.settings.batch:
        message = f"{name} needs streaming mode: batch jobs have no changes, only final rows"
        raise SqlNotSupported(message, hint="SET 'execution.runtime-mode' = 'streaming'", about=name)
