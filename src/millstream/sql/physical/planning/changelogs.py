"""Changes as rows, and rows as changes: TO_CHANGELOG and FROM_CHANGELOG.

Promises: TO_CHANGELOG is told every change, what a row was before it too; FROM_CHANGELOG takes rows that stay.
Does not know: where codes come from."""

from __future__ import annotations

from millstream.sql.errors import SqlNotSupported
from millstream.sql.logical import nodes as l
from millstream.sql.operators.changelog.changelog_rows import FromChangelogSpec, ToChangelogSpec
from millstream.sql.physical.nodes import FORWARD, Operation, by_hash
from millstream.sql.physical.planning.contract import Planning
from millstream.sql.types.changelog_mode import ChangelogMode


def plan_to_changelog(planner: Planning, node: l.ToChangelog) -> Operation:
    """Each change is a row."""
    _for_streams(planner, "TO_CHANGELOG")
    child = planner.plan(node.input)
    spec = ToChangelogSpec(child.schema, node.schema, node.codes)
    codes = ", ".join(f"{l.CHANGES[kind]}={code}" for kind, code in node.codes)
    where = by_hash(node.partition) if node.partition else FORWARD
    return Operation("ToChangelog", f"op_mapping=[{codes}]", node.schema, (child,), (where,), spec)


def plan_from_changelog(planner: Planning, node: l.FromChangelog) -> Operation:
    """Each row is a change."""
    _for_streams(planner, "FROM_CHANGELOG")
    child = planner.plan(node.input)
    if not child.mode.insert_only:
        message = f"FROM_CHANGELOG takes rows that are never corrected, these are ({child.mode.value})"
        raise SqlNotSupported(message, hint="TO_CHANGELOG turns changes into rows", about="FROM_CHANGELOG")
    spec = FromChangelogSpec(child.schema, node.schema, node.op, node.codes)
    codes = ", ".join(f"{code}={l.CHANGES[kind]}" for code, kind in node.codes)
    where = by_hash(node.partition) if node.partition else FORWARD
    return Operation(
        "FromChangelog", f"op_mapping=[{codes}]", node.schema, (child,), (where,), spec, mode=ChangelogMode.RETRACT
    )


def _for_streams(planner: Planning, name: str) -> None:
    if planner.settings.batch:
        message = f"{name} is for streaming mode: a batch has no changes, only its final rows"
        raise SqlNotSupported(message, hint="SET 'execution.runtime-mode' = 'streaming'", about=name)
