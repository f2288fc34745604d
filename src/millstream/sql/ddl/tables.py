"""Builds the definition of a table from CREATE TABLE.

Promises: computed columns and the watermark are bound, and the columns of keys, partitions and buckets exist.
Does not know: catalogs, except for the table in LIKE."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from millstream.sql.catalog.catalog import ColumnDefinition, TableDefinition, TableDistribution
from millstream.sql.ddl import like
from millstream.sql.ddl.formatting import format_expression
from millstream.sql.errors import SqlValidationError, nearest
from millstream.sql.logical.bind.expressions import ExpressionBinder, Session
from millstream.sql.logical.bind.tables import create_scope
from millstream.sql.logical.nodes import Scan
from millstream.sql.syntax import parse_expression
from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t


class TableBuilder:
    """Builds definitions of tables in one session; `text` is the statement as written."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._catalogs = session.catalogs

    def build(
        self, node: s.CreateTable, text: str, query_columns: tuple[ColumnDefinition, ...] = ()
    ) -> TableDefinition:
        """Build the table that CREATE TABLE defines; `query_columns` are the columns of its query, if it has one."""
        base = None if node.like is None else like.inherit_definition(self._catalogs, node.like)
        columns = list(self._merge_query_columns(node, text, query_columns)) if query_columns else []
        if not query_columns:
            columns = list(() if base is None else base.columns)
            for column in node.columns:
                names = [*(other.name for other in columns), *(other.name for other in node.columns)]
                like.add_column(columns, self.build_column(column, text, names), column.at, node.like)
        if node.like is not None and base is not None:
            like.check_conflicts(node, base)
        options = {**({} if base is None else dict(base.options)), **dict(node.options)}
        table = TableDefinition(
            tuple(columns), options, None if base is None else base.watermark,
            node.primary_key or (() if base is None else base.primary_key),
            node.constraint or (None if base is None else base.constraint),
            node.partitions or (() if base is None else base.partitions),
            node.comment,
            build_distribution(node.distribution) or (None if base is None else base.distribution),
        )  # fmt: skip
        table = self.bind_computed_columns(table, [column for column in node.columns if column.expr is not None])
        if node.watermark is not None:
            table = self.set_watermark(table, node.watermark, text)
        return validate_table(table, node.at)

    def _merge_query_columns(
        self, node: s.CreateTable, text: str, query_columns: tuple[ColumnDefinition, ...]
    ) -> Iterator[ColumnDefinition]:
        """Return the columns of CREATE TABLE ... AS: declared ones, then those of the query, with declared types."""
        queried = {column.name: column for column in query_columns}
        untyped = [column for column in node.columns if column.type is None and column.expr is None]
        if untyped:
            if len(node.columns) != len(query_columns):
                message = f"{len(node.columns)} columns are listed, but the query has {len(query_columns)}"
                raise SqlValidationError(message, at=untyped[0].at)
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
                message = f"column '{column.name}' is defined twice"
                raise SqlValidationError(message, at=column.at)
            declared[column.name] = self.build_column(column, text, names)
        yield from (column_definition for name, column_definition in declared.items() if name not in queried)
        yield from (declared.get(name, column_definition) for name, column_definition in queried.items())

    @staticmethod
    def build_column(column: s.ColumnDef, text: str, names: Collection[str]) -> ColumnDefinition:
        """Build a column; the type of a computed column is set by `bind_computed_columns`."""
        if column.expr is not None:
            return ColumnDefinition(
                column.name, t.NULL, format_expression(column.expr, text, names), comment=column.comment
            )
        if column.type is None:
            message = f"column '{column.name}' has no type"
            raise SqlValidationError(message, at=column.at)
        key = (column.metadata_key or column.name) if column.metadata else None
        return ColumnDefinition(column.name, column.type, None, key, column.virtual, column.comment)

    def bind_computed_columns(self, table: TableDefinition, pending: list[s.ColumnDef]) -> TableDefinition:
        """Return the table with the types of its computed columns."""
        if not pending:
            return table
        stored = [column for column in table.columns if column.expr is None]
        scope = create_scope(Scan(t.row_of([c.name for c in stored], [c.type for c in stored], null=False), None))
        binder = ExpressionBinder(self._session, scope, clause="in a computed column")
        types = {column.name: binder.bind(column.expr).type for column in pending if column.expr is not None}
        columns = tuple(replace(c, type=types[c.name]) if c.name in types else c for c in table.columns)
        return replace(table, columns=columns)

    def rebind(self, table: TableDefinition, at: int | None) -> TableDefinition:
        """Bind computed columns and the watermark again, after columns were changed."""
        texts = {column.name: column.expr for column in table.columns if column.expr is not None}
        computed = [s.ColumnDef(at or 0, name, expr=parse_expression(text)) for name, text in texts.items()]
        table = self.bind_computed_columns(table, computed)
        if table.watermark is None:
            return table
        column, text = table.watermark
        return self.set_watermark(table, s.WatermarkDef(at or 0, (column,), parse_expression(text)), text)

    def set_watermark(self, table: TableDefinition, node: s.WatermarkDef, text: str) -> TableDefinition:
        """Return the table with another watermark."""
        name = ".".join(node.column)
        names = [column.name for column in table.columns]
        if name not in names:
            message = f"the watermark is for '{name}', which is not a column"
            raise SqlValidationError(message, at=node.at, hint=nearest(name, names))
        data_type = table.columns[names.index(name)].type
        if not t.is_timestamp(data_type) or data_type.precision > 3:  # type: ignore[attr-defined]
            message = f"a watermark needs TIMESTAMP(3) or TIMESTAMP_LTZ(3), but '{name}' is {data_type}"
            raise SqlValidationError(message, at=node.at)
        scope = create_scope(Scan(t.row_of(names, [column.type for column in table.columns], null=False), None))
        watermark = ExpressionBinder(self._session, scope, clause="in a watermark").bind(node.expr)
        if not t.is_timestamp(watermark.type):
            message = f"the watermark of '{name}' must be a timestamp, but it is {watermark.type}"
            raise SqlValidationError(message, at=node.expr.at)
        return replace(table, watermark=(name, format_expression(node.expr, text, names)))


def build_distribution(node: s.DistributionDef | None) -> TableDistribution | None:
    """Return the distribution that a statement defines."""
    if node is None:
        return None
    if node.buckets is not None and node.buckets < 1:
        message = f"a table needs at least one bucket, not {node.buckets}"
        raise SqlValidationError(message, at=node.at)
    return TableDistribution(node.kind, node.columns, node.buckets)


def validate_table(table: TableDefinition, at: int | None) -> TableDefinition:
    """Return the table; raise if a column of its key, partitions or buckets is not a physical column."""
    key = table.primary_key
    if len(set(key)) != len(key):
        message = f"the primary key contains a column twice: {', '.join(key)}"
        raise SqlValidationError(message, at=at)
    buckets = table.distribution.columns if table.distribution is not None else ()
    names = [column.name for column in table.columns]
    physical = [column.name for column in table.columns if column.is_physical]
    for clause, columns in (
        ("the primary key", key),
        ("PARTITIONED BY", table.partitions),
        ("DISTRIBUTED BY", buckets),
    ):
        for name in columns:
            if name not in names:
                message = f"{clause} names '{name}', which is not a column"
                raise SqlValidationError(message, at=at, hint=nearest(name, names))
            if name not in physical:
                message = f"{clause} names '{name}', which is not a physical column"
                raise SqlValidationError(message, at=at, hint=nearest(name, physical))
    return table
