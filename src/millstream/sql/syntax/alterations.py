"""Grammar of ALTER.

Promises: every alteration that Flink SQL has is parsed, or refused with its name.
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
        """ALTER [TEMPORARY [SYSTEM]] kind [IF EXISTS] name action."""
        cursor = self._cursor
        at = cursor.advance().start
        temporary = cursor.accept("TEMPORARY")
        if temporary:
            cursor.accept("SYSTEM")
        kind = cursor.token.key
        if kind in UNSUPPORTED_OBJECTS:
            return parse_unsupported(cursor, at, f"ALTER {kind}", UNSUPPORTED_OBJECTS[kind])
        kind = cursor.expect_any("TABLE", "VIEW", "DATABASE", "CATALOG", "FUNCTION")
        if_exists = cursor.accept("IF", "EXISTS")
        name = cursor.parse_path()
        action, arguments = self._parse_action(kind)
        return s.Alter(at, kind, name, action, arguments, if_exists, temporary and kind == "FUNCTION")

    def _parse_action(self, kind: str) -> tuple[str, tuple[object, ...]]:
        cursor = self._cursor
        if kind == "FUNCTION":
            return "AS", self._definitions.parse_function_target()
        if cursor.accept("RENAME", "TO"):
            return "RENAME", (cursor.parse_path(),)
        if cursor.accept("SET"):
            return "SET", (self._definitions.parse_option_list(),)
        if cursor.accept("RESET"):
            return "RESET", (cursor.parse_parenthesized(cursor.parse_string),)
        if cursor.accept("COMMENT"):
            return "COMMENT", (cursor.parse_string(),)
        if kind == "VIEW" and cursor.accept("AS"):
            return "AS", self._definitions.parse_view_query()
        if kind == "TABLE":
            return self._parse_table_action()
        cursor.reject("RENAME TO, SET, RESET or AS")

    def _parse_table_action(self) -> tuple[str, tuple[object, ...]]:
        cursor = self._cursor
        if cursor.accept("RENAME"):
            old = cursor.parse_name()
            cursor.expect("TO")
            return "RENAME COLUMN", (old, cursor.parse_name())
        action = cursor.accept_any("ADD", "MODIFY", "DROP")
        if action is None:
            cursor.reject("ADD, MODIFY, DROP, RENAME, SET or RESET")
        if action != "MODIFY" and (
            cursor.is_next("PARTITION") or cursor.is_next("IF", "NOT") or cursor.is_next("IF", "EXISTS")
        ):
            return f"{action} PARTITIONS", self._parse_partitions(action)
        if action == "DROP":
            return self._parse_drop_from_table()
        if cursor.is_next("DISTRIBUTION", "BY") or cursor.is_next("DISTRIBUTION", "INTO"):
            return f"{action} DISTRIBUTION", (self._definitions.parse_distribution(),)
        cursor.accept("COLUMN")
        if cursor.is_next("("):
            return action, cursor.parse_parenthesized(self._parse_schema_change)
        return action, (self._parse_schema_change(),)

    def _parse_drop_from_table(self) -> tuple[str, tuple[object, ...]]:
        cursor = self._cursor
        if cursor.is_next("DISTRIBUTION") and (cursor.peek().kind == "end" or cursor.peek().key == ";"):
            cursor.advance()
            return "DROP DISTRIBUTION", ()
        if cursor.accept("WATERMARK"):
            return "DROP WATERMARK", ()
        if cursor.accept("PRIMARY", "KEY"):
            return "DROP KEY", ()
        if cursor.accept("CONSTRAINT"):
            return "DROP KEY", (cursor.parse_name(),)
        cursor.accept("COLUMN")
        if cursor.is_next("("):
            return "DROP COLUMNS", cursor.parse_parenthesized(cursor.parse_name)
        return "DROP COLUMNS", (cursor.parse_name(),)

    def _parse_partitions(self, action: str) -> tuple[bool, tuple[s.PartitionDef, ...]]:
        """[IF [NOT] EXISTS] PARTITION (...) [WITH (...)] ..."""
        cursor = self._cursor
        is_add = action == "ADD"
        tolerant = self._definitions.parse_if_not_exists() if is_add else cursor.accept("IF", "EXISTS")
        partitions: list[s.PartitionDef] = []
        while cursor.is_next("PARTITION") or not partitions:
            at = cursor.at
            values = self._definitions.parse_partition()
            partitions.append(s.PartitionDef(at, values, self._definitions.parse_options() if is_add else ()))
            if not is_add and not cursor.accept(","):
                break
        return tolerant, tuple(partitions)

    def _parse_schema_change(self) -> object:
        """Parse what ADD and MODIFY can name: a watermark, a primary key, or a column with its position."""
        cursor = self._cursor
        if cursor.is_next("WATERMARK", "FOR"):
            return self._definitions.parse_watermark()
        if cursor.is_next("PRIMARY", "KEY") or cursor.is_next("CONSTRAINT"):
            return self._definitions.parse_primary_key()
        column = self._definitions.parse_column()
        after: str | None = None
        if cursor.accept("FIRST"):
            after = ""
        elif cursor.accept("AFTER"):
            after = cursor.parse_name()
        return column, after
