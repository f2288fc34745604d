"""What names mean at one place of a query.

Promises: a name is found by alias, by any tail of its table's path, and by fields of rows; an ambiguous or unknown one
is refused with what was meant perhaps.
Does not know: expressions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from millstream.sql.errors import SqlValidationError, nearest
from millstream.sql.expressions.fields import FieldRef
from millstream.sql.expressions.nodes import Expression, Ref
from millstream.sql.types import data_types as t


@dataclass(frozen=True)
class Outer(Expression):
    """A column of the query around this one; it is gone when the subquery is decorrelated."""

    index: int
    depth: int = 1


@dataclass(frozen=True)
class Relation:
    """The columns of one source in FROM: (name, type, position in the row)."""

    names: tuple[tuple[str, ...], ...]
    columns: tuple[tuple[str, t.DataType, int], ...]

    def answers_to(self, path: tuple[str, ...]) -> bool:
        """Whether the path names this source."""
        return any(path == full[len(full) - len(path) :] for full in self.names if len(path) <= len(full))


@dataclass
class Scope:
    """The sources of one query, and the query around it."""

    relations: list[Relation] = field(default_factory=list)
    parent: Scope | None = None
    merged: dict[str, Expression] = field(default_factory=dict)

    def columns(self) -> Iterator[tuple[str, t.DataType, int]]:
        """All columns in order."""
        for relation in self.relations:
            yield from relation.columns

    def star(self, qualifier: tuple[str, ...], at: int) -> list[tuple[str, Expression]]:
        """What * stands for."""
        found: list[tuple[str, Expression]] = []
        matched = False
        hidden: set[str] = set()
        if not qualifier:
            for name, expression in self.merged.items():
                found.append((name, expression))
                hidden.add(name)
        for relation in self.relations:
            if qualifier and not relation.answers_to(qualifier):
                continue
            matched = True
            found.extend((name, Ref(kind, i)) for name, kind, i in relation.columns if name not in hidden)
        if not matched:
            if qualifier:
                whole = self._here(qualifier, at)
                if whole is not None and isinstance(whole.type, t.RowType):
                    return [(name, field_of(whole, name, at)) for name in whole.type.names]
                known = [full[-1] for relation in self.relations for full in relation.names]
                message = f"there is no table '{'.'.join(qualifier)}' in FROM"
                raise SqlValidationError(message, at=at, hint=nearest(qualifier[-1], known))
            message = "* needs a FROM"
            raise SqlValidationError(message, at=at)
        return found

    def resolve(self, parts: tuple[str, ...], at: int) -> Expression:
        """The column, or field of one, that a name stands for."""
        found = self._here(parts, at)
        scope, depth = self.parent, 1
        while found is None and scope is not None:
            outer = scope._here(parts, at)
            if outer is not None:
                return _outer(outer, depth)
            scope, depth = scope.parent, depth + 1
        if found is None:
            raise self._unknown(parts, at)
        return found

    def _here(self, parts: tuple[str, ...], at: int) -> Expression | None:
        if parts[0] in self.merged:
            return _fields(self.merged[parts[0]], parts[1:], at)
        candidates: list[Expression] = []
        for length in range(len(parts) - 1, -1, -1):
            qualifier, name, rest = parts[:length], parts[length], parts[length + 1 :]
            for relation in self.relations:
                if qualifier and not relation.answers_to(qualifier):
                    continue
                for column, kind, i in relation.columns:
                    if column == name and (not rest or isinstance(kind, t.RowType)):
                        candidates.append(_fields(Ref(kind, i), rest, at))
            if candidates:
                break
        if len(candidates) > 1 and not all(each == candidates[0] for each in candidates):
            message = f"column '{'.'.join(parts)}' is ambiguous"
            raise SqlValidationError(message, at=at, hint="say which table it is of")
        return candidates[0] if candidates else None

    def _unknown(self, parts: tuple[str, ...], at: int) -> SqlValidationError:
        tables = [full[-1] for relation in self.relations for full in relation.names]
        columns = [name for name, _, _ in self.columns()]
        strange = len(parts) > 1 and not any(r.answers_to(parts[:-1]) for r in self.relations)
        if strange and parts[0] not in columns:
            message = f"there is no table or column '{parts[0]}' here"
            return SqlValidationError(message, at=at, hint=nearest(parts[0], [*tables, *columns]))
        message = f"there is no column '{'.'.join(parts)}'"
        return SqlValidationError(message, at=at, hint=nearest(parts[-1], columns))


def _fields(expression: Expression, rest: tuple[str, ...], at: int) -> Expression:
    for name in rest:
        expression = field_of(expression, name, at)
    return expression


def field_of(expression: Expression, name: str, at: int) -> Expression:
    """A field of a row."""
    kind = expression.type
    if not isinstance(kind, t.RowType):
        message = f"{kind} has no field '{name}'"
        raise SqlValidationError(message, at=at)
    if name not in kind.names:
        message = f"the row has no field '{name}'"
        raise SqlValidationError(message, at=at, hint=nearest(name, kind.names))
    index = kind.names.index(name)
    inner = kind.types[index]
    return FieldRef(inner.with_null(inner.null or kind.null), expression, index)


def _outer(expression: Expression, depth: int) -> Expression:
    if isinstance(expression, Ref):
        return Outer(expression.type, expression.index, depth)
    children = tuple(_outer(child, depth) for child in expression.children())
    return expression.with_children(children)
