"""Redis tables: 'connector' = 'redis'.

Promises: the option keys and commands of the connector `flink-connector-redis` of jeff-zou. The first columns are the
key and, for hashes, the field; the next one is the value, or with 'value.data.structure' = 'row' all columns are.
Does not know: how commands are sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from millstream.connector.lookup_cache import Key
from millstream.connectors.redis.client import Command, RedisClient, RedisServer
from millstream.connectors.redis.sink import RedisSink
from millstream.errors import ExternalError, UserError
from millstream.sql.connector.lookup import CACHE_OPTIONS, Lookup, LookupRows, TableLookup, read_cache_policy
from millstream.sql.connector.table_connector import TableConnector, TableContext, TableSink
from millstream.sql.types import data_types as t
from millstream.sql.types.changelog_mode import ChangelogMode
from millstream.types.row import Row, RowKind

_SEPARATOR = "\x01"  # between the columns of a row
_OPTIONS = (
    "host", "port", "password", "database", "timeout", "redis-mode", "command", "max.retries", "ttl",
    "ttl.key.not.absent", "set.if.absent", "value.data.structure", "sink.parallelism", *CACHE_OPTIONS,
)  # fmt: skip
_RETRACTIONS = (RowKind.DELETE, RowKind.UPDATE_BEFORE)
_SCALARS = t.CharType | t.VarCharType | t.NumericType | t.BooleanType


@dataclass(frozen=True)
class Writing:
    """A command that writes: the number of columns before the value, whether it has a value, and the inverse
    command."""

    keys: int
    has_value: bool = True
    undo: str | None = None
    upserts: bool = False


_WRITING = {
    "SET": Writing(1, undo="DEL", upserts=True),
    "HSET": Writing(2, undo="HDEL", upserts=True),
    "SADD": Writing(1, undo="SREM"),
    "ZADD": Writing(2, undo="ZREM"),
    "SREM": Writing(1),
    "ZREM": Writing(1),
    "RPUSH": Writing(1),
    "LPUSH": Writing(1),
    "PFADD": Writing(1),
    "PUBLISH": Writing(1),
    "INCRBY": Writing(1),
    "INCRBYFLOAT": Writing(1),
    "DECRBY": Writing(1),
    "HINCRBY": Writing(2),
    "HINCRBYFLOAT": Writing(2),
    "ZINCRBY": Writing(2),
    "DEL": Writing(1, has_value=False),
    "HDEL": Writing(2, has_value=False),
}
_READING = {"GET": 1, "HGET": 2}
_ALIASES = {"GET": "SET", "HGET": "HSET", "HMSET": "HSET"}


class NullInRedis(UserError):
    """A row has a NULL that Redis cannot hold."""

    def __init__(self, command: str, row: object) -> None:
        super().__init__(f"{command} cannot write {row}: Redis has no NULL", hint="filter such rows out")


class UnreadableValue(ExternalError):
    """A value in Redis does not fit the column."""

    def __init__(self, key: object, text: str, expected: object) -> None:
        super().__init__(f"the value of the key {key} is {text!r}, which is not {expected}")


@dataclass(frozen=True)
class _RowCommands:
    """Converts a row to commands."""

    command: str
    ttl: int | None = None
    ttl_if_none: bool = False
    if_absent: bool = False
    whole_row: bool = False

    def __call__(self, row: Row) -> list[Command]:
        writing = _WRITING[self.command]
        values = row._values
        keys = values[: writing.keys]
        value = list(values) if self.whole_row else values[writing.keys] if writing.has_value else None
        if None in keys:
            raise NullInRedis(self.command, row)
        texts = [_to_text(key) for key in keys]
        if row._row_kind in _RETRACTIONS or (value is None and writing.has_value and writing.upserts):
            return self._undo(writing, texts, value)
        if value is None and writing.has_value:
            raise NullInRedis(self.command, row)
        arguments = [*texts, *([_to_text(value)] if writing.has_value else [])]
        name = self.command
        if self.if_absent:
            name, arguments = ("HSETNX", arguments) if name == "HSET" else (name, [*arguments, "NX"])
        commands: list[Command] = [(name, *arguments)]
        if self.ttl is not None:
            commands.append(("EXPIRE", texts[0], self.ttl, *(["NX"] if self.ttl_if_none else [])))
        return commands

    def _undo(self, writing: Writing, texts: list[str], value: Any) -> list[Command]:
        if writing.undo is None:
            return []
        if writing.upserts:
            return [(writing.undo, *texts)]
        return [(writing.undo, texts[0], _to_text(value))]  # the member of a set


def _to_text(value: Any) -> str:
    if isinstance(value, list):
        return _SEPARATOR.join("" if element is None else _to_text(element) for element in value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return format(value, "f") if isinstance(value, Decimal) else str(value)


class RedisLookup(Lookup):
    """Finds the value of a key, or of a field of a hash."""

    def __init__(
        self, server: RedisServer, command: str, schema: t.RowType, order: tuple[int, ...], *, whole_row: bool
    ) -> None:
        """`order` has the index in a key of the key column and of the field column."""
        self._arguments = (server, command, schema, order, whole_row)
        self._order = order
        self._command, self._schema, self._whole_row = command, schema, whole_row
        self._client: RedisClient | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return _create_lookup_of, self._arguments

    def open(self) -> None:
        """Create the client."""
        self._client = RedisClient(self._arguments[0])

    def find(self, keys: Sequence[Key]) -> Mapping[Key, LookupRows]:
        """Return the rows of all keys with one pipeline."""
        assert self._client is not None
        commands = [(self._command, *(_to_text(key[index]) for index in self._order)) for key in keys]
        replies = self._client.send(commands, "look up in")
        return {key: [self._row(key, data)] for key, data in zip(keys, replies, strict=True) if data is not None}

    def _row(self, key: Key, data: bytes) -> list[Any]:
        text = data.decode()
        if not self._whole_row:
            return [*(key[index] for index in self._order), _from_text(key, text, self._schema.types[len(key)])]
        texts = text.split(_SEPARATOR)
        if len(texts) != len(self._schema):
            raise UnreadableValue(key, text, f"a row of {len(self._schema)} columns")
        return [_from_text(key, part, data_type) for part, data_type in zip(texts, self._schema.types, strict=True)]

    def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            self._client.close()


def _create_lookup_of(
    server: RedisServer, command: str, schema: t.RowType, order: tuple[int, ...], whole_row: bool
) -> RedisLookup:
    return RedisLookup(server, command, schema, order, whole_row=whole_row)


def _from_text(key: object, text: str, data_type: t.DataType) -> Any:
    if isinstance(data_type, t.CharType | t.VarCharType):
        return text
    if not text:
        return None
    try:
        match data_type:
            case t.BooleanType():
                return {"true": True, "false": False}[text.lower()]
            case t.IntegerType():
                return int(text)
            case t.DecimalType():
                return Decimal(text)
        return float(text)
    except (ValueError, ArithmeticError, KeyError):
        raise UnreadableValue(key, text, data_type) from None


def _check(context: TableContext) -> tuple[RedisServer, str]:
    """Check the options and the columns; return the server and the command."""
    context.check(_OPTIONS)
    mode = context.options.get("redis-mode", "single")
    if mode != "single":
        message = f"'redis-mode' = '{mode}' is not supported"
        raise context.fail(message, "use 'single'")
    for name, data_type in zip(context.schema.names, context.schema.types, strict=True):
        if not isinstance(data_type, _SCALARS):
            message = f"redis tables cannot hold {data_type} (column '{name}')"
            raise context.fail(message, "use text, numbers and booleans, and CAST others to STRING")
    numbers = [
        context.integer(key, default) or 0
        for key, default in (("port", 6379), ("database", 0), ("timeout", 2000), ("max.retries", 1))
    ]
    port, database, timeout, retries = numbers
    host, password = context.required("host"), context.options.get("password")
    context.required("command")
    command = context.word("command", [*_WRITING, *_ALIASES], "").upper()
    return RedisServer(host, port, database, password, timeout, retries), command


def _is_whole_row(context: TableContext) -> bool:
    return context.word("value.data.structure", ("column", "row"), "column") == "row"


def _write(context: TableContext) -> TableSink:
    server, command = _check(context)
    command, whole_row = _ALIASES.get(command, command), _is_whole_row(context)
    writing, names = _WRITING[command], context.sink_schema.names
    least = writing.keys + (writing.has_value and not whole_row)
    if len(names) < least or (len(names) > least and not whole_row):
        message = f"'command' = '{command}' needs {least} columns, and the table has {len(names)}"
        raise context.fail(
            message, "the columns are the key, the field of a hash or the score of a sorted set, the value"
        )
    if whole_row and not writing.upserts:
        message = f"'value.data.structure' = 'row' needs 'command' = 'set' or 'hset', not '{command}'"
        raise context.fail(message)
    if_absent = context.flag("set.if.absent")
    if if_absent and not writing.upserts:
        message = f"'set.if.absent' needs 'command' = 'set' or 'hset', not '{command}'"
        raise context.fail(message)
    key = context.definition.primary_key
    if key and writing.upserts and set(key) != set(names[: writing.keys]):
        message = f"the primary key must be {', '.join(names[: writing.keys])}, by which '{command}' writes"
        raise context.fail(message)
    ttl = context.integer("ttl")
    commands = _RowCommands(command, ttl, context.flag("ttl.key.not.absent"), if_absent, whole_row)
    accepts = ChangelogMode.UPSERT if key and writing.upserts else ChangelogMode.INSERT_ONLY
    accepts = ChangelogMode.RETRACT if writing.undo is not None and not writing.upserts else accepts
    return TableSink(RedisSink(server, commands), accepts, context.integer("sink.parallelism"))


def _create_lookup(context: TableContext, keys: tuple[str, ...]) -> TableLookup | None:
    server, command = _check(context)
    names, command = context.schema.names, {"SET": "GET", "HSET": "HGET", "HMSET": "HGET"}.get(command, command)
    if command not in _READING:
        return None
    count, whole_row = _READING[command], _is_whole_row(context)
    if sorted(keys) != sorted(names[:count]):
        message = f"'command' = '{command}' is looked up by {' and '.join(names[:count])}, and the join compares {keys}"
        raise context.fail(message, "compare these columns")
    if len(names) != count + 1 and not whole_row:
        message = f"'command' = '{command}' needs {count + 1} columns, and the table has {len(names)}"
        raise context.fail(message, "or set 'value.data.structure' = 'row'")
    if context.options.get("lookup.cache", "").upper() == "FULL":
        message = "'lookup.cache' = 'FULL' needs a table that can be read as a whole"
        raise context.fail(message, "use PARTIAL or NONE")
    policy = read_cache_policy(replace(context, options=_with_units(context.options)))
    order = tuple(keys.index(name) for name in names[:count])
    lookup = RedisLookup(server, command, context.schema, order, whole_row=whole_row)
    return TableLookup(lookup, context.schema, policy, context.flag("lookup.async"))


def _with_units(options: Mapping[str, str]) -> dict[str, str]:
    """Return options whose `lookup.cache.ttl` has a unit: in this connector it is a number of seconds."""
    text = options.get("lookup.cache.ttl", "")
    return {**options, "lookup.cache.ttl": f"{text} s"} if text.isdigit() else dict(options)


CONNECTORS = (TableConnector("redis", write=_write, lookup=_create_lookup),)
