"""The tables that CREATE TABLE describes.

Promises: computed columns and the watermark are bound, keys and partitions are columns, before a table is there.
Does not know: catalogs beyond what LIKE names."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from millstream.sql.catalog.catalog import ColumnDefinition, TableDefinition, TableDistribution
from millstream.sql.ddl import like
from millstream.sql.ddl.texts import expression_text
from millstream.sql.errors import SqlValidationError, nearest
from millstream.sql.logical.bind.expressions import ExpressionBinder, Session
from millstream.sql.logical.bind.tables import scope_of
from millstream.sql.logical.nodes import Scan
from millstream.sql.syntax import parse_expression
from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t


class DescribedTables:
    """Makes definitions of tables in one session; `text` is the statement as written."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._catalogs = session.catalogs

    def definition(self, node: s.CreateTable, text: str, extra: tuple[ColumnDefinition, ...] = ()) -> TableDefinition:
        """The table that CREATE TABLE describes; `extra` are the columns of its query. Computed columns and the
        watermark are checked."""
        base = None if node.like is None else like.followed(self._catalogs, node.like)
        columns = list(self._queried(node, text, extra)) if extra else []
        if not extra:
            columns = list(() if base is None else base.columns)
            for column in node.columns:
                names = [*(each.name for each in columns), *(each.name for each in node.columns)]
                like.add_column(columns, self.column(column, text, names), column.at, node.like)
        if node.like is not None and base is not None:
            like.check(node, base)
        options = {**({} if base is None else dict(base.options)), **dict(node.options)}
        made = TableDefinition(
            tuple(columns), options, None if base is None else base.watermark,
            node.primary_key or (() if base is None else base.primary_key),
            node.constraint or (None if base is None else base.constraint),
            node.partitions or (() if base is None else base.partitions),
            node.comment,
            distributed(node.distribution) or (None if base is None else base.distribution),
        )  # fmt: skip
        made = self.with_computed(made, [column for column in node.columns if column.expr is not None])
        if node.watermark is not None:
            made = self.with_watermark(made, node.watermark, text)
        return checked(made, node.at)

    def _queried(
        self, node: s.CreateTable, text: str, extra: tuple[ColumnDefinition, ...]
    ) -> Iterator[ColumnDefinition]:
        """The columns of CREATE TABLE ... AS: those of its own, then those of the query, with the types it says."""
        queried = {each.name: each for each in extra}
        bare = [column for column in node.columns if column.type is None and column.expr is None]
        if bare:
            if len(node.columns) != len(extra):
                message = f"{len(node.columns)} columns are listed, but the query has {len(extra)}"
                raise SqlValidationError(message, at=bare[0].at)
            for column in node.columns:
                if column.name not in queried:
                    message = f"the query has no column '{column.name}'"
                    raise SqlValidationError(message, at=column.at, hint=nearest(column.name, queried))
                yield queried[column.name]
            return
        names = [*queried, *(column.name for column in node.columns)]
        declared: dict[str, ColumnDefinition] = {}
        for column in node.columns:
            if column.name in declared or (column.expr is not None and column.name in queried):
                message = f"column '{column.name}' is there twice"
                raise SqlValidationError(message, at=column.at)
            declared[column.name] = self.column(column, text, names)
        yield from (each for name, each in declared.items() if name not in queried)
        yield from (declared.get(name, each) for name, each in queried.items())

    @staticmethod
    def column(column: s.ColumnDef, text: str, names: Collection[str]) -> ColumnDefinition:
        """A column; the type of a computed one is found later."""
        if column.expr is not None:
            return ColumnDefinition(
                column.name, t.NULL, expression_text(column.expr, text, names), comment=column.comment
            )
        if column.type is None:
            message = f"column '{column.name}' has no type"
            raise SqlValidationError(message, at=column.at)
        key = (column.metadata_key or column.name) if column.metadata else None
        return ColumnDefinition(column.name, column.type, None, key, column.virtual, column.comment)

    def with_computed(self, table: TableDefinition, pending: list[s.ColumnDef]) -> TableDefinition:
        """A table whose computed columns have types."""
        if not pending:
            return table
        read = [each for each in table.columns if each.expr is None]
        scope = scope_of(Scan(t.row_of([c.name for c in read], [c.type for c in read], null=False), None))
        binder = ExpressionBinder(self._session, scope, clause="in a computed column")
        kinds = {column.name: binder.bind(column.expr).type for column in pending if column.expr is not None}
        columns = tuple(replace(each, type=kinds[each.name]) if each.name in kinds else each for each in table.columns)
        return replace(table, columns=columns)

    def bound_again(self, table: TableDefinition, at: int | None) -> TableDefinition:
        """A table some of whose columns are others now: what is made of them, and the watermark, must still hold."""
        texts = {each.name: each.expr for each in table.columns if each.expr is not None}
        computed = [s.ColumnDef(at or 0, name, expr=parse_expression(text)) for name, text in texts.items()]
        table = self.with_computed(table, computed)
        if table.watermark is None:
            return table
        column, text = table.watermark
        return self.with_watermark(table, s.WatermarkDef(at or 0, (column,), parse_expression(text)), text)

    def with_watermark(self, table: TableDefinition, node: s.WatermarkDef, text: str) -> TableDefinition:
        """A table with a watermark."""
        name = ".".join(node.column)
        names = [each.name for each in table.columns]
        if name not in names:
            message = f"the watermark is for '{name}', which is no column"
            raise SqlValidationError(message, at=node.at, hint=nearest(name, names))
        kind = table.columns[names.index(name)].type
        if not t.is_timestamp(kind) or kind.precision > 3:  # type: ignore[attr-defined]
            message = f"a watermark needs TIMESTAMP(3) or TIMESTAMP_LTZ(3), '{name}' is {kind}"
            raise SqlValidationError(message, at=node.at)
        scope = scope_of(Scan(t.row_of(names, [each.type for each in table.columns], null=False), None))
        found = ExpressionBinder(self._session, scope, clause="in a watermark").bind(node.expr)
        if not t.is_timestamp(found.type):
            message = f"the watermark of '{name}' must be a timestamp, this is {found.type}"
            raise SqlValidationError(message, at=node.expr.at)
        return replace(table, watermark=(name, expression_text(node.expr, text, names)))


def distributed(node: s.DistributionDef | None) -> TableDistribution | None:
    """The buckets that a statement describes."""
    if node is None:
        return None
    if node.buckets is not None and node.buckets < 1:
        message = f"a table has at least one bucket, not {node.buckets}"
        raise SqlValidationError(message, at=node.at)
    return TableDistribution(node.kind, node.columns, node.buckets)


def checked(table: TableDefinition, at: int | None) -> TableDefinition:
    """The table, whose keys, partitions and buckets must be columns that records hold."""
    key = table.primary_key
    if len(set(key)) != len(key):
        message = f"the primary key has a column twice: {', '.join(key)}"
        raise SqlValidationError(message, at=at)
    buckets = table.distribution.columns if table.distribution is not None else ()
    names = [each.name for each in table.columns]
    physical = [each.name for each in table.columns if each.is_physical]
    for what, given in (("the primary key", key), ("PARTITIONED BY", table.partitions), ("DISTRIBUTED BY", buckets)):
        for name in given:
            if name not in names:
                message = f"{what} names '{name}', which is no column"
                raise SqlValidationError(message, at=at, hint=nearest(name, names))
            if name not in physical:
                message = f"{what} names '{name}', which is no physical column"
                raise SqlValidationError(message, at=at, hint=nearest(name, physical))
    return table
