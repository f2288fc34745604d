"""Binding of TO_CHANGELOG and FROM_CHANGELOG, which convert changes to rows and back.

Promises: Flink's parameters and defaults; op_mapping maps each row kind once.
Does not know: how rows are converted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.sql.errors import SqlValidationError, nearest
from millstream.sql.logical import nodes as l
from millstream.sql.logical.bind.table_arguments import BindSource, bind_table_argument, read_arguments
from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t

if TYPE_CHECKING:
    from millstream.sql.logical.bind.queries import QueryBinder

CHANGELOG_FUNCTIONS = ("TO_CHANGELOG", "FROM_CHANGELOG")
_PARAMETERS = ("input", "op", "op_mapping")
_UPDATE_BEFORE, _UPDATE_AFTER = 1, 2


def bind_changelog_table(queries: QueryBinder, call: s.Call, bind: BindSource) -> l.Plan:
    """Bind TO_CHANGELOG(input => TABLE t, op => DESCRIPTOR(op), op_mapping => MAP[...]) or FROM_CHANGELOG."""
    arguments = read_arguments(call, _PARAMETERS)
    plan, partition = bind_table_argument(queries, call, arguments.get("INPUT"), bind, "input => TABLE t")
    op = _read_column(call, arguments.get("OP"))
    pairs = _read_pairs(call, arguments.get("OP_MAPPING"))
    if call.name == "TO_CHANGELOG":
        return to_changelog(plan, op, pairs, partition, call.at)
    return from_changelog(plan, op, pairs, partition, call.at)


def to_changelog(
    plan: l.Plan, op: str, pairs: tuple[tuple[str, str], ...] | None, partition: tuple[int, ...], at: int
) -> l.Plan:
    """Convert each change of a plan to a row; columns of PARTITION BY come before the code."""
    codes: dict[int, str] = {}
    for kind_names, code in pairs if pairs is not None else [(name, name) for name in l.ROW_KINDS]:
        for kind_name in kind_names.split(","):
            _add_code(codes, _read_row_kind(kind_name.strip(), at), code, at)
    if op in plan.schema.names:
        message = f"TO_CHANGELOG adds a column '{op}', but the table has one already"
        raise SqlValidationError(message, at=at, hint="choose another name: op => DESCRIPTOR(name)")
    schema = t.row_of([op, *plan.schema.names], [t.STRING, *plan.schema.types], null=False)
    converted = l.ToChangelog(schema, plan, tuple(sorted(codes.items())), partition)
    front = [i + 1 for i in partition]
    return _reorder(converted, [*front, 0, *(i for i in range(1, len(schema)) if i not in front)])


def from_changelog(
    plan: l.Plan, op: str, pairs: tuple[tuple[str, str], ...] | None, partition: tuple[int, ...], at: int
) -> l.Plan:
    """Convert each row of a plan to a change, by the code in one of its columns; columns of PARTITION BY come first."""
    if op not in plan.schema.names:
        message = f"FROM_CHANGELOG reads the change from column '{op}', which the table does not have"
        hint = nearest(op, plan.schema.names)
        raise SqlValidationError(message, at=at, hint=hint or "name it: op => DESCRIPTOR(column)")
    op_index = plan.schema.names.index(op)
    if not isinstance(plan.schema.types[op_index], t.CharType | t.VarCharType):
        message = f"FROM_CHANGELOG reads the change from a STRING, '{op}' is {plan.schema.types[op_index]}"
        raise SqlValidationError(message, at=at)
    codes: dict[str, int] = {}
    seen: dict[int, str] = {}
    for code_list, name in pairs if pairs is not None else [(name, name) for name in l.ROW_KINDS]:
        row_kind = _read_row_kind(name.strip(), at)
        _add_code(seen, row_kind, code_list, at)
        codes.update({code.strip(): row_kind for code in code_list.split(",")})
    if _UPDATE_AFTER in seen and _UPDATE_BEFORE not in seen:
        message = "op_mapping has UPDATE_AFTER and no UPDATE_BEFORE: updates need both"
        raise SqlValidationError(message, at=at)
    kept = [i for i in range(len(plan.schema)) if i != op_index]
    schema = t.row_of([plan.schema.names[i] for i in kept], [plan.schema.types[i] for i in kept], null=False)
    converted = l.FromChangelog(schema, plan, op_index, tuple(codes.items()), partition)
    front = [kept.index(i) for i in partition if i != op_index]
    return _reorder(converted, [*front, *(i for i in range(len(kept)) if i not in front)])


def _reorder(plan: l.Plan, indexes: list[int]) -> l.Plan:
    refs = plan.refs()
    return l.project(plan, [refs[i] for i in indexes], [plan.schema.names[i] for i in indexes])


def _add_code(codes: dict[int, str], row_kind: int, code: str, at: int) -> None:
    if row_kind in codes:
        message = f"op_mapping has {l.ROW_KINDS[row_kind]} twice"
        hint = "write several codes for one change in one entry: MAP['c, r', 'INSERT']"
        raise SqlValidationError(message, at=at, hint=hint)
    codes[row_kind] = code


def _read_row_kind(name: str, at: int) -> int:
    if name not in l.ROW_KINDS:
        message = f"op_mapping has '{name}', which is not a row kind"
        raise SqlValidationError(message, at=at, hint=nearest(name, l.ROW_KINDS))
    return l.ROW_KINDS.index(name)


def _read_column(call: s.Call, argument: s.Expr | None) -> str:
    if argument is None:
        return "op"
    if not isinstance(argument, s.Descriptor) or len(argument.columns) != 1:
        message = f"the argument op of {call.name} must name one column"
        raise SqlValidationError(message, at=argument.at, hint="write op => DESCRIPTOR(column)")
    return argument.columns[0]


def _read_pairs(call: s.Call, argument: s.Expr | None) -> tuple[tuple[str, str], ...] | None:
    if argument is None:
        return None
    values = argument.args if isinstance(argument, s.Call) and argument.name == "MAP VALUE" else ()
    texts = [value.value for value in values if isinstance(value, s.Literal) and isinstance(value.value, str)]
    if not texts or len(texts) != len(values) or len(texts) % 2:
        message = f"the argument op_mapping of {call.name} must be a map of string literals"
        raise SqlValidationError(message, at=argument.at, hint="write op_mapping => MAP['INSERT', 'I', 'DELETE', 'D']")
    return tuple(zip(texts[::2], texts[1::2], strict=True))
