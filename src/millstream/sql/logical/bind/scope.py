"""Name resolution: which columns the names of a query refer to.

Promises: a name is found by alias, by any suffix of its table's path, and by fields of rows; an ambiguous or unknown
name is refused with the most similar known name.
Does not know: expressions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from millstream.sql.errors import SqlValidationError, nearest
from millstream.sql.expressions.nodes import Expression, FieldRef, Ref
from millstream.sql.types import data_types as t


@dataclass(frozen=True)
class Outer(Expression):
    """A column of the enclosing query; decorrelation removes it."""

    index: int
    depth: int = 1


@dataclass(frozen=True)
class Relation:
    """The columns of one source in FROM: (name, type, column index)."""

    names: tuple[tuple[str, ...], ...]
    columns: tuple[tuple[str, t.DataType, int], ...]

    def is_named(self, path: tuple[str, ...]) -> bool:
        """Return whether a path names this source."""
        return any(path == full[len(full) - len(path) :] for full in self.names if len(path) <= len(full))


@dataclass
class Scope:
    """The sources of one query, and the scope of the enclosing query."""

    relations: list[Relation] = field(default_factory=list)
    parent: Scope | None = None
    merged: dict[str, Expression] = field(default_factory=dict)

    def columns(self) -> Iterator[tuple[str, t.DataType, int]]:
        """Iterate over all columns in order."""
        for relation in self.relations:
            yield from relation.columns

    def star(self, qualifier: tuple[str, ...], at: int) -> list[tuple[str, Expression]]:
        """Return the columns that * or `qualifier`.* selects."""
        selected: list[tuple[str, Expression]] = []
        has_match = False
        hidden: set[str] = set()
        if not qualifier:
            for name, expression in self.merged.items():
                selected.append((name, expression))
                hidden.add(name)
        for relation in self.relations:
            if qualifier and not relation.is_named(qualifier):
                continue
            has_match = True
            selected.extend((name, Ref(data_type, i)) for name, data_type, i in relation.columns if name not in hidden)
        if not has_match:
            if qualifier:
                row_column = self._find_here(qualifier, at)
                if row_column is not None and isinstance(row_column.type, t.RowType):
                    return [(name, bind_field(row_column, name, at)) for name in row_column.type.names]
                table_names = [full[-1] for relation in self.relations for full in relation.names]
                message = f"there is no table '{'.'.join(qualifier)}' in FROM"
                raise SqlValidationError(message, at=at, hint=nearest(qualifier[-1], table_names))
            message = "* needs a FROM"
            raise SqlValidationError(message, at=at)
        return selected

    def resolve(self, parts: tuple[str, ...], at: int) -> Expression:
        """Return the column, or the field of a column, that a name refers to."""
        local = self._find_here(parts, at)
        scope, depth = self.parent, 1
        while local is None and scope is not None:
            outer = scope._find_here(parts, at)
            if outer is not None:
                return _wrap_outer(outer, depth)
            scope, depth = scope.parent, depth + 1
        if local is None:
            raise self._create_unknown_column_error(parts, at)
        return local

    def _find_here(self, parts: tuple[str, ...], at: int) -> Expression | None:
        if parts[0] in self.merged:
            return _list_fields(self.merged[parts[0]], parts[1:], at)
        candidates: list[Expression] = []
        for length in range(len(parts) - 1, -1, -1):
            qualifier, name, rest = parts[:length], parts[length], parts[length + 1 :]
            for relation in self.relations:
                if qualifier and not relation.is_named(qualifier):
                    continue
                for column, data_type, i in relation.columns:
                    if column == name and (not rest or isinstance(data_type, t.RowType)):
                        candidates.append(_list_fields(Ref(data_type, i), rest, at))
            if candidates:
                break
        if len(candidates) > 1 and not all(candidate == candidates[0] for candidate in candidates):
            message = f"column '{'.'.join(parts)}' is ambiguous"
            raise SqlValidationError(message, at=at, hint="qualify it with the name of its table")
        return candidates[0] if candidates else None

    def _create_unknown_column_error(self, parts: tuple[str, ...], at: int) -> SqlValidationError:
        tables = [full[-1] for relation in self.relations for full in relation.names]
        columns = [name for name, _, _ in self.columns()]
        unknown_table = len(parts) > 1 and not any(r.is_named(parts[:-1]) for r in self.relations)
        if unknown_table and parts[0] not in columns:
            message = f"there is no table or column '{parts[0]}' here"
            return SqlValidationError(message, at=at, hint=nearest(parts[0], [*tables, *columns]))
        message = f"there is no column '{'.'.join(parts)}'"
        return SqlValidationError(message, at=at, hint=nearest(parts[-1], columns))


def _list_fields(expression: Expression, rest: tuple[str, ...], at: int) -> Expression:
    for name in rest:
        expression = bind_field(expression, name, at)
    return expression


def bind_field(expression: Expression, name: str, at: int) -> Expression:
    """Access a field of a row by name."""
    row_type = expression.type
    if not isinstance(row_type, t.RowType):
        message = f"{row_type} has no field '{name}'"
        raise SqlValidationError(message, at=at)
    if name not in row_type.names:
        message = f"the row has no field '{name}'"
        raise SqlValidationError(message, at=at, hint=nearest(name, row_type.names))
    index = row_type.names.index(name)
    inner = row_type.types[index]
    return FieldRef(inner.with_null(inner.null or row_type.null), expression, index)


def _wrap_outer(expression: Expression, depth: int) -> Expression:
    if isinstance(expression, Ref):
        return Outer(expression.type, expression.index, depth)
    children = tuple(_wrap_outer(child, depth) for child in expression.children())
    return expression.with_children(children)
