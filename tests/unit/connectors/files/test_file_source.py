"""Laws of the file source: every line of every file once; a changed file is detected."""

import bz2
import gzip
import lzma
import os
import pickle
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reading import MANY, budgets, everything, replaying, restarting, values

from millstream.connector.serialization_schema import UnknownCharset
from millstream.connector.source import Boundedness, Budget, ReaderContext
from millstream.connectors.files import FileEnumeratorProvider, FileSource, MalformedLine, StreamFormat
from millstream.connectors.files import enumerator as planning
from millstream.connectors.files.formats import BadFormatOption
from millstream.connectors.files.paths import FileChanged, FileVanished, UnusablePath
from millstream.connectors.files.source import DamagedFile
from millstream.files.remote import UnknownFileSystem
from millstream.times import Duration
from millstream.types.factory import Types
from millstream.types.row import Row

TEXT = StreamFormat.text_line_format()


def text_source(*paths, charset="UTF-8"):
    return FileSource.for_record_stream_format(StreamFormat.text_line_format(charset), *map(str, paths)).build()


def json_source(path, *options):
    return FileSource.for_record_stream_format(StreamFormat.json_lines(*options), str(path)).build()


@pytest.fixture
def small_regions(monkeypatch):
    monkeypatch.setattr(planning, "_MIN_REGION", 16)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files of many sizes and line ends; hidden ones must not be read."""
    root = tmp_path_factory.mktemp("in")
    contents = {
        "a.txt": b"1\n2\n3",
        "b/empty": b"",
        "b/c.log": "häuser\r\n東京\r\n\r\n🙂".encode() * 5,
        "b/d/e": b"".join(b"line %d\n" % number for number in range(100)),
        "z": b"last\r",
        ".hidden": b"no\n",
        "_SUCCESS": b"no\n",
        ".staging/part": b"no\n",
        "_tmp/part": b"no\n",
    }
    for name, data in contents.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    (root / "b" / "loop").symlink_to(root)
    return root


def expected(root):
    names = ["a.txt", "b/c.log", "b/d/e", "z"]
    return [line.decode() for name in names for line in (root / name).read_bytes().splitlines()]


@settings(max_examples=40)
@given(
    parallelism=st.integers(1, 5),
    size=st.integers(1, 400),
    records=st.sampled_from([1, 5, MANY]),
    block=st.sampled_from([1, 7, 1000]),
    restart=st.booleans(),
    region=st.sampled_from([5, 100, 1 << 20]),
)
def test_ranges_do_not_change_records(folder, parallelism, size, records, block, restart, region):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planning, "_MIN_REGION", region)
        source = text_source(folder)
        between = restarting(source, 6 - parallelism) if restart else lambda same: same
        found = everything(source, parallelism, size=size, records=records, block=block, between=between)
    assert sorted(found) == sorted(expected(folder))


@pytest.mark.usefixtures("small_regions")
@pytest.mark.parametrize("size", [3, 50, MANY])
def test_one_reader_reads_files_in_order(folder, size):
    assert everything(text_source(folder), 1, size=size) == sorted_by_file(folder)


def sorted_by_file(root):
    order = ["a.txt", "z", "b/c.log", "b/d/e"]  # files of a directory before its directories
    return [line.decode() for name in order for line in (root / name).read_bytes().splitlines()]


@pytest.mark.usefixtures("small_regions")
@pytest.mark.parametrize("epochs", range(6))
def test_a_plan_can_be_replayed_without_the_checkpoint_that_knew_the_files(folder, epochs):
    source = text_source(folder)
    first = source.create_enumerator(2)
    found = []
    for _, budget in zip(range(epochs), budgets(size=150)):
        found += [line for part in first.plan(budget) for line in values(source, part)]
    again = replaying(source, 2, epochs, size=150)
    for budget in budgets(size=150):
        found += [line for part in again.plan(budget) for line in values(source, part)]
        if again.finished():
            break
    assert sorted(found) == sorted(expected(folder))


@pytest.mark.usefixtures("small_regions")
def test_several_readers_share_one_large_file(tmp_path):
    (tmp_path / "f").write_bytes(b"0123456\n" * 100)
    enumerator = text_source(tmp_path / "f").create_enumerator(4)
    ranges = enumerator.plan(Budget(MANY, 100, 0))
    assert len(ranges) >= 4
    assert sum(part.end - part.start["at"] for part in ranges) <= 104


def test_a_record_budget_is_kept_approximately(tmp_path):
    (tmp_path / "f").write_bytes(b"0123456\n" * 1000)
    source = text_source(tmp_path / "f")
    enumerator = source.create_enumerator(1)
    (part,) = enumerator.plan(Budget(50, MANY, 0))
    assert 45 <= len(values(source, part)) <= 55


@pytest.mark.usefixtures("small_regions")
def test_watermarks_wait_for_unread_splits_and_those_that_just_ended(tmp_path):
    for name in "abc":
        (tmp_path / name).write_bytes(b"1\n")
    enumerator = text_source(tmp_path).create_enumerator(1)
    seen = []
    for _, budget in zip(range(3), budgets(size=1)):
        enumerator.plan(budget)
        enumerator.plan(budget)
        seen.append(enumerator.splits())
    assert seen == [
        ["00000000.00000", "00000001.00000"],
        ["00000001.00000", "00000002.00000"],
        ["00000002.00000"],
    ]
    assert enumerator.finished()


def test_a_held_split_waits(tmp_path):
    for name in "ab":
        (tmp_path / name).write_bytes(b"1\n2\n3\n")
    source = text_source(tmp_path)
    enumerator = source.create_enumerator(1)
    enumerator.plan(Budget(MANY, 2, 0))
    (part,) = enumerator.plan(Budget(MANY, MANY, 0, frozenset({"00000000.00000"})))
    assert part.start["path"].endswith("b")
    (part,) = enumerator.plan(Budget(MANY, MANY, 0))
    assert values(source, part) == ["2", "3"]


def test_new_files_of_a_monitored_directory_are_read_once(tmp_path):
    builder = FileSource.for_record_stream_format(TEXT, str(tmp_path))
    source = builder.monitor_continuously(Duration.of_seconds(1)).build()
    assert source.boundedness() is Boundedness.CONTINUOUS_UNBOUNDED
    assert builder.process_static_file_set().build().boundedness() is Boundedness.BOUNDED
    enumerator = source.create_enumerator(2)

    def read(now):
        return [line for part in enumerator.plan(Budget(MANY, MANY, now)) for line in values(source, part)]

    (tmp_path / "b").write_text("b\n")
    assert read(0) == ["b"]
    (tmp_path / "a").write_text("a\n")
    assert read(999) == []
    assert read(1000) == ["a"]
    enumerator = source.create_enumerator(1, enumerator.snapshot())
    (tmp_path / "c").write_text("c\n")
    assert read(1001) == ["c"]
    assert not enumerator.finished()


def test_the_size_of_a_file_is_that_when_its_first_range_is_planned(tmp_path):
    for name in "ab":
        (tmp_path / name).write_text("1\n2\n")
    source = text_source(tmp_path)
    enumerator = source.create_enumerator(1)
    enumerator.plan(Budget(MANY, 1, 0))
    (tmp_path / "b").write_text("longer than before\n")
    found = [line for part in enumerator.plan(Budget(MANY, MANY, 0)) for line in values(source, part)]
    assert found == ["2", "longer than before"]


@pytest.mark.parametrize("change", ["grow", "shrink", "touch", "remove"])
def test_a_file_that_changes_after_planning_is_detected(tmp_path, change):
    path = tmp_path / "f"
    path.write_text("1\n2\n")
    source = text_source(path)
    (part,) = source.create_enumerator(1).plan(Budget(MANY, MANY, 0))
    if change == "remove":
        path.unlink()
    else:
        path.write_text({"grow": "1\n2\n3\n", "shrink": "1\n", "touch": "3\n4\n"}[change])
        os.utime(path, ns=(1, 1))
    with pytest.raises(FileVanished if change == "remove" else FileChanged, match=str(path)):
        values(source, part)


@pytest.mark.parametrize("charset", ["UTF-8", "latin-1", "cp1252", "utf-16", "utf-16-le", "utf-32"])
def test_text_is_read_in_its_character_set(tmp_path, charset):
    lines = ["häuser", "", "zwölf Boxkämpfer"]
    (tmp_path / "f").write_bytes("\r\n".join(lines).encode(charset))
    assert everything(text_source(tmp_path / "f", charset=charset), 3, size=3) == lines


def test_bytes_outside_the_character_set_are_replaced(tmp_path):
    (tmp_path / "f").write_bytes(b"ok\n\xff\xe9t\xe9\n")
    assert everything(text_source(tmp_path / "f")) == ["ok", "\ufffd\ufffdt\ufffd"]
    with pytest.raises(UnknownCharset):
        StreamFormat.text_line_format("klingon")


@pytest.mark.parametrize(("ending", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)])
def test_compressed_files_are_decompressed_and_not_split(tmp_path, ending, pack):
    path = tmp_path / f"f{ending}"
    path.write_bytes(pack(b"1\n2\n" * 50))
    assert everything(text_source(path), 4, size=1) == ["1", "2"] * 50
    path.write_bytes(b"not packed at all")
    with pytest.raises(DamagedFile, match=str(path)):
        everything(text_source(path))


def test_a_file_is_one_split_if_the_program_says_so(tmp_path):
    (tmp_path / "f").write_bytes(b"0123456\n" * 100)
    builder = FileSource.for_record_stream_format(TEXT, str(tmp_path))
    whole = builder.set_file_enumerator(FileEnumeratorProvider.default_non_splittable_file_enumerator()).build()
    (part,) = whole.create_enumerator(4).plan(Budget(1, 1, 0))
    assert len(values(whole, part)) == 100


@dataclass
class Point:
    x: int
    y: float = 0.5


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        (None, [{"x": 1, "y": 2.5}, {"x": 2}]),
        (Types.ROW_NAMED(["x", "y"], [Types.LONG(), Types.DOUBLE()]), [Row(x=1, y=2.5), Row(x=2, y=None)]),
        (Types.DATACLASS(Point), [Point(1, 2.5), Point(2, 0.5)]),
    ],
)
def test_json_lines_become_values_of_the_declared_type(tmp_path, kind, found):
    (tmp_path / "f").write_text('{"x": 1, "y": 2.5}\r\n\n  \n{"x": 2}')
    assert everything(json_source(tmp_path / "f", kind), 2, size=5) == found


BAD = ['{"x": ', '{"x": "many"}', "7"]


@pytest.mark.parametrize("bad", BAD)
def test_a_malformed_line_fails_with_file_byte_and_text(tmp_path, bad):
    path = tmp_path / "f"
    path.write_text('{"x": "é"}\n'.replace('"é"', "1") + f"\n{bad}\n" + '{"x": 2}\n')
    kind = Types.ROW_NAMED(["x"], [Types.LONG()])
    with pytest.raises(MalformedLine) as caught:
        everything(json_source(path, kind))
    assert (caught.value.path, caught.value.offset, caught.value.line) == (str(path), 10, bad)


def test_malformed_lines_are_skipped_and_counted_on_request(tmp_path):
    (tmp_path / "f").write_text("\n".join(['{"x": 1}', *BAD, '{"x": 2}']))
    source = json_source(tmp_path / "f", Types.DATACLASS(Point), "skip")
    (part,) = source.create_enumerator(1).plan(Budget(MANY, MANY, 0))
    reader = source.create_reader(ReaderContext(0, 1, 10))
    assert [value for records in reader.read(part) for value in records.values] == [Point(1), Point(2)]
    assert reader.take_rejected().count == 3
    with pytest.raises(BadFormatOption):
        StreamFormat.json_lines(on_error="ignore")


def test_paths_are_checked(tmp_path):
    with pytest.raises(UnusablePath, match="does not exist"):
        everything(text_source(tmp_path / "nothing"))
    with pytest.raises(UnknownFileSystem, match="nosuch://"):
        text_source("nosuch://bucket/key")
    assert text_source("s3://bucket/key").roots == ("s3://bucket/key",)
    with pytest.raises(UnusablePath, match="nothing to read"):
        text_source()
    (tmp_path / "a b").write_text("x\n")
    assert everything(text_source((tmp_path / "a b").as_uri())) == ["x"]
    assert everything(text_source(tmp_path / "a b", tmp_path)) == ["x"]


def test_the_description_can_be_pickled(folder):
    source = pickle.loads(pickle.dumps(text_source(folder)))
    assert everything(source) == everything(text_source(folder))
