"""A record that cannot be read reaches the source's side output once, and the metric."""

from millstream.common import Types, WatermarkStrategy
from millstream.datastream import StreamExecutionEnvironment
from millstream.datastream.connectors.file_system import FileSource, StreamFormat
from millstream.datastream.formats.decoding import DEAD_LETTERS
from millstream.formats import format_named


def test_invalid_records_of_a_source_are_kept_with_offset_and_reason(tmp_path, inline_engine):
    lines = [b'{"id": %d}' % number if number % 4 else b"bad %d" % number for number in range(100)]
    path = tmp_path / "in.json"
    path.write_bytes(b"\n".join(lines))
    kind = Types.ROW_NAMED(["id"], [Types.INT()])
    lines_of = StreamFormat.lines_of(format_named("json", kind, {"on-error": "dead-letter"}))
    env = StreamExecutionEnvironment.get_execution_environment()
    source = FileSource.for_record_stream_format(lines_of, str(path)).build()
    rows = env.from_source(source, WatermarkStrategy.no_watermarks(), "rows")
    with rows.get_side_output(DEAD_LETTERS).execute_and_collect() as found:
        letters = list(found)
    assert sorted(letter.data for letter in letters) == sorted(lines[0::4])
    assert all(letter.reason.startswith(f"{path}:") for letter in letters)
