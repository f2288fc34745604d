"""Grammar of ALTER.

Promises: every ALTER statement of Flink SQL is parsed; objects that are not supported are refused by name.
Does not know: catalogs."""

from __future__ import annotations

from millstream.sql.syntax import tree as s
from millstream.sql.syntax.cursor import Cursor
from millstream.sql.syntax.definitions import UNSUPPORTED_OBJECTS, DefinitionParser, parse_unsupported


class AlterationParser:
    """Parses ALTER."""

    __slots__ = ("_cursor", "_definitions")

    def __init__(self, cursor: Cursor, definitions: DefinitionParser) -> None:
        self._cursor = cursor
        self._definitions = definitions

    def parse_alter(self) -> s.Statement:
        """ALTER [TEMPORARY [SYSTEM]] type [IF EXISTS] name action."""
        cursor = self._cursor
        at = cursor.advance().start
        temporary = cursor.accept("TEMPORARY")
        if temporary:
            cursor.accept("SYSTEM")
        object_type = cursor.token.key
        if object_type in UNSUPPORTED_OBJECTS:
            return parse_unsupported(cursor, at, f"ALTER {object_type}", UNSUPPORTED_OBJECTS[object_type])
        object_type = self._definitions.parse_object_type()
        if_exists = cursor.accept("IF", "EXISTS")
        name = cursor.parse_path()
        action = self._parse_action(object_type)
        return s.Alter(at, object_type, name, action, if_exists, temporary and object_type == "FUNCTION")

    def _parse_action(self, object_type: str) -> s.AlterAction:
        cursor = self._cursor
        if object_type == "FUNCTION":
            return s.SetFunctionTarget(*self._definitions.parse_function_target())
        if cursor.accept("RENAME", "TO"):
            return s.Rename(cursor.parse_path())
        if cursor.accept("SET"):
            return s.SetOptions(self._definitions.parse_option_list())
        if cursor.accept("RESET"):
            return s.ResetOptions(cursor.parse_parenthesized(cursor.parse_string))
        if object_type == "CATALOG" and cursor.accept("COMMENT"):
            return s.SetComment(cursor.parse_string())
        if object_type == "MATERIALIZED TABLE" and cursor.is_any("SUSPEND", "RESUME", "REFRESH"):
            return self._parse_refresh_action()
        if object_type in ("VIEW", "MATERIALIZED TABLE") and cursor.accept("AS"):
            return s.SetViewQuery(*self._definitions.parse_view_query())
        if object_type in ("TABLE", "MATERIALIZED TABLE"):
            return self._parse_table_action()
        cursor.reject("RENAME TO, SET, RESET or AS")

    def _parse_refresh_action(self) -> s.AlterAction:
        """SUSPEND, RESUME [WITH (...)] or REFRESH [PARTITION (...)]."""
        match self._cursor.advance().key:
            case "SUSPEND":
                return s.Suspend()
            case "RESUME":
                return s.Resume(self._definitions.parse_options())
        return s.Refresh(self._definitions.parse_partition() if self._cursor.is_next("PARTITION") else ())

    def _parse_table_action(self) -> s.AlterAction:
        cursor = self._cursor
        if cursor.accept("RENAME"):
            column = cursor.parse_name()
            cursor.expect("TO")
            return s.RenameColumn(column, cursor.parse_name())
        match cursor.accept_any("ADD", "MODIFY", "DROP"):
            case "ADD":
                return self._parse_add()
            case "MODIFY":
                return self._parse_modify()
            case "DROP":
                return self._parse_drop()
        cursor.reject("ADD, MODIFY, DROP, RENAME, SET or RESET")

    def _parse_add(self) -> s.AlterAction:
        if self._is_partition_next():
            return self._parse_add_partitions()
        if self._is_distribution_next():
            return s.AddDistribution(self._definitions.parse_distribution())
        return s.AddSchemaParts(self._parse_schema_parts())

    def _parse_modify(self) -> s.AlterAction:
        if self._is_distribution_next():
            return s.ModifyDistribution(self._definitions.parse_distribution())
        return s.ModifySchemaParts(self._parse_schema_parts())

    def _parse_drop(self) -> s.AlterAction:
        cursor = self._cursor
        if self._is_partition_next():
            return self._parse_drop_partitions()
        if cursor.is_next("DISTRIBUTION") and (cursor.peek().type == "end" or cursor.peek().key == ";"):
            cursor.advance()
            return s.DropDistribution()
        if cursor.accept("WATERMARK"):
            return s.DropWatermark()
        if cursor.accept("PRIMARY", "KEY"):
            return s.DropPrimaryKey()
        if cursor.accept("CONSTRAINT"):
            return s.DropPrimaryKey(cursor.parse_name())
        cursor.accept("COLUMN")
        if cursor.is_next("("):
            return s.DropColumns(cursor.parse_parenthesized(cursor.parse_name))
        return s.DropColumns((cursor.parse_name(),))

    def _is_partition_next(self) -> bool:
        cursor = self._cursor
        return cursor.is_next("PARTITION") or cursor.is_next("IF", "NOT") or cursor.is_next("IF", "EXISTS")

    def _is_distribution_next(self) -> bool:
        return self._cursor.is_next("DISTRIBUTION", "BY") or self._cursor.is_next("DISTRIBUTION", "INTO")

    def _parse_add_partitions(self) -> s.AddPartitions:
        """[IF NOT EXISTS] PARTITION (...) [WITH (...)] ..."""
        cursor = self._cursor
        if_not_exists = self._definitions.parse_if_not_exists()
        partitions: list[s.PartitionDef] = []
        while cursor.is_next("PARTITION") or not partitions:
            at = cursor.at
            values = self._definitions.parse_partition()
            partitions.append(s.PartitionDef(at, values, self._definitions.parse_options()))
        return s.AddPartitions(tuple(partitions), if_not_exists)

    def _parse_drop_partitions(self) -> s.DropPartitions:
        """[IF EXISTS] PARTITION (...), ..."""
        if_exists = self._cursor.accept("IF", "EXISTS")
        return s.DropPartitions(self._cursor.parse_list(self._parse_partition), if_exists)

    def _parse_partition(self) -> s.PartitionDef:
        return s.PartitionDef(self._cursor.at, self._definitions.parse_partition())

    def _parse_schema_parts(self) -> tuple[s.SchemaPart, ...]:
        cursor = self._cursor
        cursor.accept("COLUMN")
        if cursor.is_next("("):
            return cursor.parse_parenthesized(self._parse_schema_part)
        return (self._parse_schema_part(),)

    def _parse_schema_part(self) -> s.SchemaPart:
        """Parse a watermark, a primary key, or a column with its position."""
        cursor = self._cursor
        if cursor.is_next("WATERMARK", "FOR"):
            return self._definitions.parse_watermark()
        if cursor.is_next("PRIMARY", "KEY") or cursor.is_next("CONSTRAINT"):
            return self._definitions.parse_primary_key()
        column = self._definitions.parse_column()
        if cursor.accept("FIRST"):
            return s.PositionedColumn(column, first=True)
        if cursor.accept("AFTER"):
            return s.PositionedColumn(column, after=cursor.parse_name())
        return s.PositionedColumn(column)
