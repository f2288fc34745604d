"""Laws of Parquet, ORC and Avro files: each record once however files are split, and bad records are reported one by
one."""

import gzip
import io
import pickle
from datetime import date, datetime
from decimal import Decimal

import fastavro
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reading import MANY, everything, restarting, values

from millstream.connector.serialization_schema import Encoder
from millstream.connector.sink import WriterContext
from millstream.connector.source import Budget, ReaderContext
from millstream.connectors.files import (
    AvroFiles,
    AvroWriterFactory,
    BucketAssigner,
    CsvFiles,
    DamagedFile,
    FileSink,
    FileSource,
    MalformedLine,
    OrcFiles,
    OrcWriterFactory,
    ParquetFiles,
    ParquetWriterFactory,
    StreamFormat,
    create_encoder,
    create_file_format,
)
from millstream.connectors.files import enumerator as planning
from millstream.formats import BadFormat, FormatType, UnencodableRecord, avro_schemas, format_named
from millstream.times import Instant
from millstream.types.factory import Types
from millstream.types.row import Row, RowKind

KIND = Types.ROW_NAMED(["id", "name"], [Types.LONG(), Types.STRING()])
COUNT = 2000
ROWS = [Row(id=number, name=f"name {number}") for number in range(COUNT)]
READERS = {"parquet": ParquetFiles, "orc": OrcFiles, "avro": AvroFiles}


def table(**more):
    return pa.table({"id": [row.id for row in ROWS], "name": [row.name for row in ROWS], **more})


def write(path, kind, data):
    if kind == "parquet":
        pq.write_table(data, path, row_group_size=90)
    elif kind == "orc":
        orc.write_table(data, path)
    else:
        fields = [{"name": each.name, "type": ["null", _AVRO[each.type]]} for each in data.schema]
        schema = {"type": "record", "name": "r", "fields": fields}
        with open(path, "wb") as stream:
            fastavro.writer(stream, schema, data.to_pylist(), sync_interval=700)


_AVRO = {pa.int64(): "long", pa.string(): "string", pa.float64(): "double"}


def source_of(path, reader):
    make = FileSource.for_record_stream_format if isinstance(reader, StreamFormat) else FileSource.for_bulk_file_format
    return make(reader, str(path)).build()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("bulk")
    for kind in READERS:
        (root / kind).mkdir()
        write(root / kind / f"f.{kind}", kind, table(extra=[0.5] * COUNT))
    return root


@settings(max_examples=15)
@given(
    parallelism=st.integers(1, 4), size=st.integers(1, 30_000), records=st.sampled_from([1, 300, MANY]),
    block=st.sampled_from([7, 1000]), restart=st.booleans(), region=st.sampled_from([999, 10_000, 1 << 20]),
)  # fmt: skip
@pytest.mark.parametrize("kind", READERS)
def test_ranges_do_not_change_records(folder, kind, parallelism, size, records, block, restart, region):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planning, "_MIN_REGION", region)
        patch.setattr(AvroFiles, "least_range", 500)
        source = source_of(folder / kind, READERS[kind](KIND))
        between = restarting(source, 5 - parallelism) if restart else lambda same: same
        found = everything(source, parallelism, size=size, records=records, block=block, between=between)
    assert sorted(found, key=lambda row: row.id) == ROWS


def test_a_range_ends_between_row_groups(folder):
    source = source_of(folder / "parquet", ParquetFiles(KIND))
    enumerator = source.create_enumerator(1)
    counts = []
    while not enumerator.finished():
        counts += [len(values(source, part)) for part in enumerator.plan(Budget(100, MANY, 0))]
    assert sum(counts) == COUNT
    assert all(90 <= count <= 180 for count in counts[:-1])


@pytest.mark.parametrize("kind", READERS)
def test_only_requested_fields_are_read_and_missing_ones_are_null(folder, kind):
    wanted = Types.ROW_NAMED(["extra", "nope", "id"], [Types.DOUBLE(), Types.STRING(), Types.INT()])
    found = everything(source_of(folder / kind, READERS[kind](wanted)))
    assert sorted(found, key=lambda row: row.id)[:2] == [
        Row(extra=0.5, nope=None, id=0),
        Row(extra=0.5, nope=None, id=1),
    ]


def test_columns_are_found_in_any_case_on_request(tmp_path):
    pq.write_table(pa.table({"ID": [1], "Name": ["a"]}), tmp_path / "f.parquet")
    assert everything(source_of(tmp_path, ParquetFiles(KIND, case_sensitive=False))) == [Row(id=1, name="a")]
    assert everything(source_of(tmp_path, ParquetFiles(KIND))) == [Row(id=None, name=None)]
    pq.write_table(pa.table({"ID": [1], "id": [2]}), tmp_path / "f.parquet")
    with pytest.raises(BadFormat, match="is ambiguous"):
        everything(source_of(tmp_path, ParquetFiles(KIND, case_sensitive=False)))


def read_with_errors(source):
    """The records and the dead letters of all files."""
    reader = source.create_reader(ReaderContext(0, 1, 1000))
    found, letters, skipped = [], [], 0
    enumerator = source.create_enumerator(1)
    for part in enumerator.plan(Budget(MANY, MANY, 0)):
        for records in reader.read(part):
            is_array = isinstance(records.values, pa.Array)
            found += source.type_info().from_arrow(records.values) if is_array else records.values
        taken = reader.take_rejected()
        letters += taken.letters
        skipped += taken.count
    assert reader.take_rejected().count == 0
    return found, letters, skipped


BAD = range(7, 5000, 20)


@pytest.mark.parametrize("kind", READERS)
def test_poison_in_files_is_named_counted_or_kept(tmp_path, kind):
    """A record is bad if a value does not fit its type: here, numbers too large for 32 bits."""
    numbers = [1 << 40 if number in BAD else number for number in range(5000)]
    write(tmp_path / f"f.{kind}", kind, pa.table({"id": numbers, "name": ["x"] * 5000}))
    small = Types.ROW_NAMED(["id", "name"], [Types.INT(), Types.STRING()])
    with pytest.raises(MalformedLine, match=rf"f\.{kind} at byte 7"):
        everything(source_of(tmp_path, READERS[kind](small)))
    good = [number for number in range(5000) if number not in BAD]
    for policy, kept in (("skip", 0), ("dead-letter", len(BAD))):
        found, letters, skipped = read_with_errors(source_of(tmp_path, READERS[kind](small, policy)))
        assert sorted(row.id for row in found) == good
        assert (len(letters), skipped) == (kept, len(BAD))
        assert all(b"1099511627776" in data for data, _ in letters)


@pytest.mark.parametrize("name", ["json", "csv", "debezium-json"])
def test_poison_in_lines_is_named_counted_or_kept(tmp_path, name):
    good = format_named(name, KIND).encode([Row(id=number, name="x") for number in range(5000)])
    lines = [b"bad %d" % number if number in BAD else good[number] for number in range(5000)]
    (tmp_path / "f").write_bytes(b"\n".join(lines))
    offset = sum(len(line) + 1 for line in lines[:7])
    with pytest.raises(MalformedLine, match=f"at byte {offset}") as caught:
        everything(source_of(tmp_path, StreamFormat.lines_of(format_named(name, KIND))))
    assert (caught.value.offset, caught.value.line) == (offset, "bad 7")
    for policy, kept in (("skip", 0), ("dead-letter", len(BAD))):
        reader = StreamFormat.lines_of(format_named(name, KIND, {"on-error": policy}))
        found, letters, skipped = read_with_errors(source_of(tmp_path, reader))
        assert [row.id for row in found] == [number for number in range(5000) if number not in BAD]
        assert skipped == len(BAD)
        assert [data for data, _ in letters] == [lines[number] for number in BAD][:kept]


@pytest.mark.parametrize("kind", READERS)
def test_a_damaged_file_is_named(tmp_path, kind):
    path = tmp_path / f"f.{kind}"
    path.write_bytes(b"this is no such file at all, whatever its name says" * 10)
    with pytest.raises(DamagedFile, match=str(path)):
        everything(source_of(path, READERS[kind](KIND)))


def test_a_csv_record_may_hold_line_ends(tmp_path):
    text = 'id,name\n1,"a\nb"\n2,"c ""d"""\n\n3,e\r\n4,"f\n\n"\n'
    (tmp_path / "f.csv").write_text(text, newline="")
    with gzip.open(tmp_path / "g.csv.gz", "wb") as stream:
        stream.write(text.encode())
    reader = CsvFiles(format_named("csv", KIND), skip=1)
    found = everything(source_of(tmp_path, reader), 2, size=3)
    assert found == [Row(id=1, name="a\nb"), Row(id=2, name='c "d"'), Row(id=3, name="e"), Row(id=4, name="f\n\n")] * 2


def test_every_type_survives_a_round_trip_in_every_format(tmp_path):
    kind = Types.ROW_NAMED(
        ["i", "d", "s", "b", "da", "ts", "z", "n", "a", "m", "r"],
        [Types.INT(), Types.DOUBLE(), Types.STRING(), Types.PRIMITIVE_ARRAY(Types.BYTE()), Types.SQL_DATE(),
         Types.SQL_TIMESTAMP(), Types.INSTANT(), Types.BIG_DEC(), Types.LIST(Types.INT()),
         Types.MAP(Types.STRING(), Types.INT()), Types.ROW_NAMED(["x"], [Types.INT()])],
    )  # fmt: skip
    full = Row(i=1, d=0.5, s="é", b=b"\0", da=date(2020, 1, 2), ts=datetime.fromisoformat("2020-01-02T03:04:05.678"),
               z=Instant(1577934245, 678000000), n=Decimal("1.500000000000000000"), a=[1, None],
               m={"k": 1}, r=Row(x=1))  # fmt: skip
    empty = Row(**dict.fromkeys(kind.get_field_names()))
    data_type = FormatType.of(kind)
    factories = {
        "parquet": ParquetWriterFactory(kind), "orc": OrcWriterFactory(kind),
        "avro": AvroWriterFactory(avro_schemas.record_schema(data_type), data_type),
    }  # fmt: skip
    for name, factory in factories.items():
        stream = io.BytesIO()
        writer = factory.create(stream)
        writer.add_elements([full, empty])
        writer.finish()
        (tmp_path / name).write_bytes(stream.getvalue())
        assert everything(source_of(tmp_path / name, READERS[name](kind))) == [full, empty], name


@pytest.mark.parametrize("name", ["parquet", "orc", "avro", "csv", "json", "raw", "debezium-json"])
def test_formats_of_files_are_found_by_name(tmp_path, name):
    kind = Types.ROW_NAMED(["id"], [Types.STRING()]) if name == "raw" else KIND
    rows = [Row(id=row.name) for row in ROWS] if name == "raw" else ROWS
    writer = create_encoder(name, kind)
    if isinstance(writer, Encoder):
        builder = FileSink.for_row_format(str(tmp_path), writer)
    else:
        builder = FileSink.for_bulk_format(str(tmp_path), writer)
    sink = pickle.loads(pickle.dumps(builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build()))
    made = sink.create_writer(WriterContext("job", "op", 0, 1, 1, "0", 0))
    made.write(rows, None)
    sink.create_committer().commit(1, made.prepare_commit())
    assert everything(source_of(tmp_path, create_file_format(name, kind))) == rows
    with pytest.raises(BadFormat):
        create_file_format(name, kind, {"nope": "1"})


def test_changes_cannot_be_written_to_files():
    for factory in (ParquetWriterFactory(KIND), OrcWriterFactory(KIND)):
        with pytest.raises(UnencodableRecord, match="not an insert-only row"):
            factory.create(io.BytesIO()).add_elements([Row.of_kind(RowKind.DELETE, id=1, name="a")])


@pytest.mark.parametrize("kind", READERS)
def test_a_field_of_another_type_is_poison(tmp_path, kind):
    write(tmp_path / f"f.{kind}", kind, pa.table({"id": ["1", "x", None], "name": ["a", "b", "c"]}))
    found, letters, _ = read_with_errors(source_of(tmp_path, READERS[kind](KIND, "dead-letter")))
    assert [row.name for row in found] == (["c"] if kind == "avro" else ["a", "c"])  # columns are cast, records are not
    assert len(letters) + len(found) == 3
    assert all("id" in reason for _, reason in letters)
