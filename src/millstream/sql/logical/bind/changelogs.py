"""TO_CHANGELOG and FROM_CHANGELOG: the table functions that turn changes into rows and back.

Promises: Flink's parameters and defaults; every kind of change has one meaning in op_mapping.
Does not know: how rows are turned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.sql.errors import SqlValidationError, nearest
from millstream.sql.logical import nodes as l
from millstream.sql.logical.bind.table_arguments import BindSource, arguments_of, table_of
from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t

if TYPE_CHECKING:
    from millstream.sql.logical.bind.queries import QueryBinder

CHANGELOG_FUNCTIONS = ("TO_CHANGELOG", "FROM_CHANGELOG")
_PARAMETERS = ("input", "op", "op_mapping")
_UPDATE_BEFORE, _UPDATE_AFTER = 1, 2


def changelog_table(queries: QueryBinder, call: s.Call, bind: BindSource) -> l.Plan:
    """TO_CHANGELOG(input => TABLE t, op => DESCRIPTOR(op), op_mapping => MAP[...]) and its inverse."""
    given = arguments_of(call, _PARAMETERS)
    plan, partition = table_of(queries, call, given.get("INPUT"), bind, "input => TABLE t")
    op = _column(call, given.get("OP"))
    pairs = _pairs(call, given.get("OP_MAPPING"))
    if call.name == "TO_CHANGELOG":
        return to_changelog(plan, op, pairs, partition, call.at)
    return from_changelog(plan, op, pairs, partition, call.at)


def to_changelog(
    plan: l.Plan, op: str, pairs: tuple[tuple[str, str], ...] | None, partition: tuple[int, ...], at: int
) -> l.Plan:
    """Each change of a plan as a row; columns of PARTITION BY come before the code."""
    codes: dict[int, str] = {}
    for kinds, code in pairs if pairs is not None else [(name, name) for name in l.CHANGES]:
        for kind in kinds.split(","):
            _add(codes, _kind(kind.strip(), at), code, at)
    if op in plan.schema.names:
        message = f"TO_CHANGELOG adds a column '{op}', but the table has one already"
        raise SqlValidationError(message, at=at, hint="give it another name: op => DESCRIPTOR(name)")
    schema = t.row_of([op, *plan.schema.names], [t.STRING, *plan.schema.types], null=False)
    made = l.ToChangelog(schema, plan, tuple(sorted(codes.items())), partition)
    front = [i + 1 for i in partition]
    return _ordered(made, [*front, 0, *(i for i in range(1, len(schema)) if i not in front)])


def from_changelog(
    plan: l.Plan, op: str, pairs: tuple[tuple[str, str], ...] | None, partition: tuple[int, ...], at: int
) -> l.Plan:
    """Each row of a plan as the change that one of its columns tells; columns of PARTITION BY come first."""
    if op not in plan.schema.names:
        message = f"FROM_CHANGELOG reads the change from column '{op}', which the table does not have"
        hint = nearest(op, plan.schema.names)
        raise SqlValidationError(message, at=at, hint=hint or "name it: op => DESCRIPTOR(column)")
    place = plan.schema.names.index(op)
    if not isinstance(plan.schema.types[place], t.CharType | t.VarCharType):
        message = f"FROM_CHANGELOG reads the change from a STRING, '{op}' is {plan.schema.types[place]}"
        raise SqlValidationError(message, at=at)
    codes: dict[str, int] = {}
    seen: dict[int, str] = {}
    for words, name in pairs if pairs is not None else [(name, name) for name in l.CHANGES]:
        kind = _kind(name.strip(), at)
        _add(seen, kind, words, at)
        codes.update({word.strip(): kind for word in words.split(",")})
    if _UPDATE_AFTER in seen and _UPDATE_BEFORE not in seen:
        message = "op_mapping has UPDATE_AFTER and no UPDATE_BEFORE: what a row was before an update must be told too"
        raise SqlValidationError(message, at=at)
    kept = [i for i in range(len(plan.schema)) if i != place]
    schema = t.row_of([plan.schema.names[i] for i in kept], [plan.schema.types[i] for i in kept], null=False)
    made = l.FromChangelog(schema, plan, place, tuple(codes.items()), partition)
    front = [kept.index(i) for i in partition if i != place]
    return _ordered(made, [*front, *(i for i in range(len(kept)) if i not in front)])


def _ordered(plan: l.Plan, places: list[int]) -> l.Plan:
    refs = plan.refs()
    return l.project(plan, [refs[i] for i in places], [plan.schema.names[i] for i in places])


def _add(known: dict[int, str], kind: int, code: str, at: int) -> None:
    if kind in known:
        message = f"op_mapping has {l.CHANGES[kind]} twice"
        hint = "several codes for one change stand in one entry: MAP['c, r', 'INSERT']"
        raise SqlValidationError(message, at=at, hint=hint)
    known[kind] = code


def _kind(name: str, at: int) -> int:
    if name not in l.CHANGES:
        message = f"op_mapping has '{name}', which is no change"
        raise SqlValidationError(message, at=at, hint=nearest(name, l.CHANGES))
    return l.CHANGES.index(name)


def _column(call: s.Call, given: s.Expr | None) -> str:
    if given is None:
        return "op"
    if not isinstance(given, s.Descriptor) or len(given.columns) != 1:
        message = f"the argument op of {call.name} must name one column"
        raise SqlValidationError(message, at=given.at, hint="write op => DESCRIPTOR(column)")
    return given.columns[0]


def _pairs(call: s.Call, given: s.Expr | None) -> tuple[tuple[str, str], ...] | None:
    if given is None:
        return None
    values = given.args if isinstance(given, s.Call) and given.name == "MAP VALUE" else ()
    texts = [each.value for each in values if isinstance(each, s.Literal) and isinstance(each.value, str)]
    if not texts or len(texts) != len(values) or len(texts) % 2:
        message = f"the argument op_mapping of {call.name} must be a map of texts"
        raise SqlValidationError(message, at=given.at, hint="write op_mapping => MAP['INSERT', 'I', 'DELETE', 'D']")
    return tuple(zip(texts[::2], texts[1::2], strict=True))
