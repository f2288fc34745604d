"""The fuzz targets: every parser of bytes that come from storage or the network, one function each. A target takes any
bytes. It returns, or raises a declared error (`MillstreamError`), which is caught here; any other error is a bug.
`run.py` drives targets with Atheris, `test_targets.py` with Hypothesis."""

from __future__ import annotations

import datetime
import io
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.checkpoint.metadata import CheckpointMetadata, OperatorSnapshot
from millstream.cluster.lease import FileLease
from millstream.connectors.files.bulk import AvroFiles
from millstream.connectors.files.ranges import OpenRange
from millstream.connectors.jdbc.cdc.pgoutput import Decoder
from millstream.errors import MillstreamError
from millstream.formats import Format, format_named
from millstream.formats.schema_registry import RegistryUnreachable, SchemaRegistry, parse_response
from millstream.runtime import block as blocks
from millstream.runtime import report as reports
from millstream.runtime.memory import SubtaskMemory
from millstream.serialization import codec
from millstream.sql.syntax import parse_statement
from millstream.sql.syntax.parse import parse_expression, parse_statements, parse_type
from millstream.state import deltas
from millstream.state.handles import Lineage
from millstream.types.factory import Types
from millstream.types.row import Row
from millstream_chaos.storage.memory_files import MemoryFileSystem

COLUMNS = pa.schema(
    [
        ("b", pa.bool_()),
        ("i", pa.int32()),
        ("l", pa.int64()),
        ("d", pa.float64()),
        ("s", pa.string()),
        ("n", pa.decimal128(10, 2)),
        ("da", pa.date32()),
        ("ts", pa.timestamp("ms")),
        ("y", pa.binary()),
        ("a", pa.list_(pa.int32())),
        ("r", pa.struct([("x", pa.int32()), ("z", pa.string())])),
    ]
)
FLAT = pa.schema([field for field in COLUMNS if field.name not in ("a", "r", "y")])
SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "R",
        "fields": [{"name": "i", "type": ["null", "int"]}, {"name": "s", "type": "string"}],
    }
)


@dataclass(frozen=True)
class Target:
    """A parser. `seeds` are inputs that it accepts, from which a fuzzer starts; `words` are what they are made of."""

    name: str
    parse: Callable[[bytes], object]
    seeds: tuple[bytes, ...]
    words: tuple[bytes, ...] = field(default=())

    def run(self, data: bytes) -> None:
        """Call the target with bytes; a declared error is a valid answer."""
        with suppress(MillstreamError):
            self.parse(data)


TARGETS: dict[str, Target] = {}


def target(*seeds: bytes, words: str = "") -> Callable[[Callable[[bytes], object]], Callable[[bytes], object]]:
    """Make a function a target of its own name."""

    def add(parse: Callable[[bytes], object]) -> Callable[[bytes], object]:
        name = parse.__name__
        TARGETS[name] = Target(name, parse, seeds, tuple(word.encode() for word in words.split()))
        return parse

    return add


# ------------------------------------------------------------------------------------------------------- the runtime

_ROW = Types.ROW_NAMED(["i"], [Types.LONG()])


@target(
    blocks.pack_watermark(1, 2, 3, 4),
    blocks.pack_watermark(1, 2, 3, None),
    reports.pack_failure(1, reports.TaskFailure("user", "v", "x")),
)
def block(data: bytes) -> object:
    """Headers of blocks, and the payloads that are no pickles: those are trusted as Spark's own are."""
    found = blocks.header(data)
    match found.kind:
        case blocks.BlockKind.WATERMARK:
            return blocks.unpack_watermark(data)
        case blocks.BlockKind.FAILURE:
            return reports.unpack_failure(data)
        case blocks.BlockKind.COLUMNS:
            return blocks.unpack_batch(data, _ROW)
    return None


@target(
    *map(codec.encode, [1, -(2**70), "text", b"raw", (1, (2.5, None)), [{"k": {1, 2}}], {"a": [True, "b" * 300]}]),
    codec.encode(datetime.date(2026, 1, 2)),
    codec.encode(np.arange(3)),
)
def values(data: bytes) -> object:
    """Untyped values."""
    return codec.decode(data)


_OPERATOR = OperatorSnapshot("o", "name", "uid", 1, 128, (Lineage(),), (SubtaskMemory(watermark=5),))


@target(
    CheckpointMetadata(1, 2, 3, "job", "name", 4, 5, (_OPERATOR,), {"s": {"a": 1}}, {"t": ({"name": "x"},)}).to_bytes(),
    words='"operators" "subtasks" "files" "memory" "uid" "traits" "parallelism" "savepoint" "incarnation" "format"',
)
def metadata(data: bytes) -> object:
    """The metadata of checkpoints."""
    return CheckpointMetadata.from_bytes(data)


_TABLES = {
    "typed": deltas.TableSchema("typed", Types.LONG(), Types.ROW_NAMED(["s", "d"], [Types.STRING(), Types.DOUBLE()])),
    "untyped": deltas.TableSchema("untyped", Types.PICKLED_BYTE_ARRAY(), Types.MAP(Types.STRING(), Types.LONG())),
}
_CHANGES = (
    deltas.Changes([None, "w"], [1, 2], [False, True], [Row(s="a", d=1.5), None]),
    deltas.Changes([None], [("k", 1)], [False], [{"a": 1}]),
)


@target(
    deltas.encode(zip(_TABLES.values(), _CHANGES, strict=True)),
    deltas.encode(zip(_TABLES.values(), _CHANGES, strict=True), compressed=True),
    words='"name" "length" "rows" "key" "value" "kind" "ttl" "redistribution" MSD1 PAR1',
)
def state_file(data: bytes) -> object:
    """The tables in a state file."""
    with suppress(MillstreamError):
        deltas.describe(data)
    return list(deltas.decode(data, _TABLES))


@target(b'{"term": 1, "holder": "a:1"}', b"7", b'{"status": "FINISHED", "cause": null}')
def lease(data: bytes) -> object:
    """The files of a lease."""
    files = MemoryFileSystem()
    held = FileLease("/lease", files)
    files.make_dirs("/lease")
    for name in ("term-0000000001", "beat-0000000001", "outcome"):
        files.write_bytes(f"/lease/{name}", data, sync=False)
    with suppress(MillstreamError):
        held.held()
    return held.outcome()


# --------------------------------------------------------------------------------------------------------------- SQL

_SQL = (
    b"SELECT a, COUNT(*) FROM t /*+ OPTIONS('k'='v') */ WHERE b > 1.5e3 GROUP BY a HAVING TRUE ORDER BY 1 LIMIT 5",
    b"CREATE TABLE t (a INT NOT NULL, b AS a + 1, WATERMARK FOR c AS c - INTERVAL '5' SECOND) WITH ('connector' = 'x')",
    b"SELECT * FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(c), INTERVAL '1' HOUR)) w JOIN u FOR SYSTEM_TIME AS OF w.c ON 1=1",
    b"INSERT INTO t VALUES (1, 'a''b', DATE '2020-01-01', ARRAY[1], MAP['k', ROW(1, NULL)], x'0f', _UTF16'x')",
    b"SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY a ORDER BY c MEASURES A.x AS x PATTERN (A+ B{2}?) DEFINE A AS x)",
    b"EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1; INSERT INTO b SELECT 2; END;",
    b"SELECT CASE WHEN a IS NOT DISTINCT FROM b THEN CAST(a AS DECIMAL(10, 2)) ELSE SUM(x) OVER (PARTITION BY y) END",
)


@target(*_SQL, words="SELECT FROM WHERE ( ) , ' ` \" -- /* */ NULL INTERVAL AS OVER ROW < > ARRAY CASE END IN EXISTS ;")
def sql(data: bytes) -> object:
    """Statements, scripts, expressions and types."""
    text = data.decode("utf-8", "surrogateescape")
    for parse in (parse_statement, parse_statements, parse_expression, parse_type):
        with suppress(MillstreamError):
            parse(text)
    return None


# ----------------------------------------------------------------------------------------------------------- formats


@cache
def _format(name: str, flat: bool = False, **options: str) -> Format:
    return format_named(name, FLAT if flat else COLUMNS, {key.replace("_", "-"): v for key, v in options.items()})


def _decode(made: Format, data: bytes) -> None:
    """Decode records together and alone, and lines where the format has lines."""
    lines = data.split(b"\n")
    for records in ([data], lines, [data, *lines]):
        decoded = made.decode(records)
        made.type_info.to_arrow(decoded.rows(made.type_info))
    made.decode_lines(data)


_JSON = (
    b'{"b":true,"i":1,"l":-5,"d":0.1,"s":"a\\"b\\u00e9","n":1.5,"da":"2020-01-02","ts":"2020-01-02 03:04:05.678",'
    b'"y":"AAE=","a":[1,null],"r":{"x":1,"z":"q"}}'
)
_CHANGE = b'{"before":null,"after":' + _JSON + b',"op":"c","data":[' + _JSON + b'],"old":[{}],"type":"INSERT"}'
_WORDS = '{ } [ ] : , " \\u \\ null true false NaN -1e999 "r" "a" "ts" "2020-02-30" "before" "after" "op" "data" "type"'


@target(_JSON, _JSON + b"\n" + _JSON, b"null", words=_WORDS)
def json_records(data: bytes) -> object:
    """JSON, strict and forgiving."""
    _decode(_format("json"), data)
    _decode(_format("json", ignore_parse_errors="true"), data)
    return _decode(_format("json", flat=True, timestamp_format_standard="ISO-8601"), data)


@target(_CHANGE, words=_WORDS)
def changelogs(data: bytes) -> object:
    """Changes in JSON."""
    for name in ("debezium-json", "canal-json", "maxwell-json"):
        _decode(_format(name), data)
    return None


@target(
    b"true,1,-5,0.1,a b,1.5,2020-01-02,2020-01-02 03:04:05",
    b'true,1,-5,0.1,"a ""b""",1.5,,\n# x\nfalse,,,,,,,',
    words=', " "" \\ # \n \r null ; NaN 2020-02-30',
)
def csv_records(data: bytes) -> object:
    """CSV, with and without escapes."""
    _decode(_format("csv", flat=True), data)
    options = {"escape_character": "\\", "allow_comments": "true", "null_literal": "null", "field_delimiter": ";"}
    return _decode(_format("csv", flat=True, ignore_parse_errors="true", **options), data)


@target(b"\x02\x01\x02\x02\x02\x0a\x02" + bytes(8) + b"\x02\x02a" + bytes(20), b"\0" * 11)
def avro_records(data: bytes) -> object:
    """Avro, binary and as JSON."""
    _decode(_format("avro"), data)
    return _decode(_format("avro", encoding="json"), data)


def _container() -> bytes:
    import fastavro

    stream = io.BytesIO()
    fastavro.writer(stream, json.loads(SCHEMA), [{"i": 1, "s": "a"}, {"i": None, "s": "b"}], sync_marker=b"s" * 16)
    return stream.getvalue()


@target(_container(), words='avro.schema avro.codec null deflate "type" "record" "fields" "name" "items" "symbols"')
def avro_file(data: bytes) -> object:
    """Avro container files."""
    kind = Types.ROW_NAMED(["i", "s"], [Types.INT(), Types.STRING()])
    part = OpenRange("file", io.BytesIO(data), 0, len(data), len(data))
    return list(AvroFiles(kind, "skip").read(part, 100))


# ------------------------------------------------------------------------------------------------------- the network


class _Answering(SchemaRegistry):
    """A registry that answers everything with the same bytes."""

    def __init__(self, data: bytes) -> None:
        super().__init__("http://localhost:1")
        self._data = data

    def _ask(self, *_: Any) -> Any:
        try:
            return parse_response(self._data)
        except ValueError as problem:
            raise RegistryUnreachable("http://localhost:1", str(problem)) from None


@target(
    json.dumps({"schema": SCHEMA, "id": 1}).encode(),
    json.dumps({"schema": '{"type":"map","values":["null",{"type":"array","items":"R"}]}'}).encode(),
    words='"schema" \\"type\\" \\"record\\" \\"fields\\" \\"name\\" \\"items\\" \\"logicalType\\" \\"decimal\\" "id"',
)
def registry_answers(data: bytes) -> object:
    """What a schema registry answers, and records of the schema in it."""
    made: Any = format_named("avro-confluent", COLUMNS, {"url": "http://localhost:1", "subject": "s"})
    made._registry = _Answering(data)
    with suppress(MillstreamError):
        made._registry.latest("s")
    with suppress(MillstreamError):
        made._registry.register("s", "x")
    return made.decode([b"\0\0\0\0\1\2\2a", b"\0\0\0\0\1" + bytes(40)])


def _messages(data: bytes) -> Iterator[bytes]:
    """Bytes as messages: each has its length before it, in one byte."""
    while data:
        yield data[1 : 1 + data[0]]
        data = data[1 + data[0] :]


def _framed(*messages: bytes) -> bytes:
    return b"".join(bytes([len(each)]) + each for each in messages)


_RELATION = b"R\0\0\0\7public\0t\0d\0\2\1id\0\0\0\0\x17\xff\xff\xff\xff\0s\0\0\0\0\x19\xff\xff\xff\xff"
_VALUES = b"\0\2t\0\0\0\1" + b"5" + b"n"


@target(
    _framed(
        b"B" + bytes(20),
        _RELATION,
        b"I\0\0\0\7N" + _VALUES,
        b"U\0\0\0\7O" + _VALUES + b"N\0\2t\0\0\0\1" + b"6" + b"u",
        b"D\0\0\0\7K" + _VALUES,
        b"T\0\0\0\1\0\0\0\0\7",
        b"M\0" + bytes(8) + b"p\0\0\0\0\2{}",
        b"C" + bytes(25),
    )
)
def pgoutput(data: bytes) -> object:
    """Messages of PostgreSQL's logical replication."""
    return list(Decoder().events(_messages(data), 0, 1 << 62))
