"""Laws of the file sink: nothing is visible before its commit, and a commit shows everything once, whatever fails."""

import errno
import itertools
import json
import os
import pickle
import re
import shutil
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import NamedTuple

import pytest

from millstream.connector.serialization_schema import Encoder, NotSerializable
from millstream.connector.sink import WriterContext
from millstream.connectors.files import (
    BucketAssigner,
    FileSink,
    JsonLinesEncoder,
    OutputFileConfig,
    RollingPolicy,
    commit_intents,
)
from millstream.connectors.files.buckets import BadBucket, BadTimePattern, BucketContext
from millstream.connectors.files.commit import OutputDamaged, OutputLost
from millstream.connectors.files.paths import UnusablePath
from millstream.connectors.files.rolling import BadOutputFile
from millstream.connectors.files.staging import NotAPath
from millstream.event_time.watermarks import MAX_WATERMARK
from millstream.files import access, local
from millstream.types.row import Row, RowKind


def context_of(sink, subtask, parallelism, epoch, attempt, now=0, job="job"):
    return WriterContext(job, sink, subtask, parallelism, epoch, attempt, now)


def sink_to(path, **choices):
    builder = FileSink.for_row_format(str(path), choices.get("encoder", Encoder.simple_string_encoder()))
    builder.with_bucket_assigner(choices.get("buckets", BucketAssigner.base_path_bucket_assigner()))
    builder.with_output_file_config(choices.get("names", OutputFileConfig("part", ".txt")))
    return builder.with_rolling_policy(choices.get("rolling", RollingPolicy.default_rolling_policy())).build()


def staged(sink, epoch, values, subtask=0, attempt="0-1.1", **more):
    writer = sink.create_writer(context_of("op", subtask, 2, epoch, attempt, **more))
    try:
        writer.write(values, None)
        return json.loads(json.dumps(writer.prepare_commit()))
    finally:
        writer.close()


def visible(path):
    """The files that a reader sees, those not hidden, with their content; names are without the part that names the
    job."""
    files = {file.relative_to(path).as_posix(): file for file in path.rglob("*") if file.is_file()}
    return {plain(name): file.read_text() for name, file in files.items() if not name.startswith(".")}


def plain(name):
    return re.sub(r"part-[0-9a-f]{12}-", "part-", name)


def staging_files(base):
    """The files in the staging directory: pending ones, and those left behind."""
    staging = base / ".staging"
    return sorted(name for name in os.listdir(staging) if name != "commits") if staging.exists() else []


def test_output_is_visible_only_after_its_commit(tmp_path):
    sink = sink_to(tmp_path / "out")
    made = staged(sink, 1, ["a", "b"])
    assert visible(tmp_path / "out") == {}
    committer = sink.create_committer()
    committer.commit(1, made)
    committer.reached(MAX_WATERMARK, 0)
    committer.finish()
    assert visible(tmp_path / "out") == {"part-0-1.txt": "a\nb\n"}
    assert list(map(plain, os.listdir(tmp_path / "out"))) == ["part-0-1.txt"]


@pytest.mark.parametrize("finish", [False, True])
def test_a_repeated_commit_changes_nothing(tmp_path, finish):
    sink = sink_to(tmp_path)
    made = staged(sink, 1, ["a"]) + staged(sink, 1, ["b"], 1) + staged(sink, 2, ["c"])
    for _ in range(3):
        committer = sink.create_committer()
        committer.commit(1, made)
        if finish:
            committer.finish()
    assert visible(tmp_path) == {"part-0-1.txt": "a\nc\n", "part-1-1.txt": "b\n"}


class Crash(BaseException):
    """The driver dies."""


class DyingOs:
    """The os module, in which the process dies just before or just after the n-th change."""

    def __init__(self, steps, after):
        self.steps, self.after = steps, after

    def __getattr__(self, name):
        real = getattr(os, name)
        if name not in ("rename", "replace", "remove", "link", "mkdir", "fsync"):
            return real

        def dying(*arguments, **named):
            self.steps -= 1
            if self.steps > 0:
                return real(*arguments, **named)
            if self.after:
                real(*arguments, **named)
            raise Crash

        return dying


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("foreign", [False, True])
def test_a_crash_between_any_two_steps_of_a_commit_does_not_change_the_output(tmp_path, after, foreign):
    for step in range(1, 200):
        base = tmp_path / str(step)
        sink = sink_to(base, buckets=ByFirstLetter())
        made = []
        for epoch, subtask in itertools.product((3, 4), (0, 1)):
            made += staged(sink, epoch, [f"a{epoch}", f"b{subtask}"], subtask)
        if foreign:
            (base / "a").mkdir()
            final = next(c["final"] for c in made if c["group"] == "0/a")
            (base / final).write_text("a3\na4\n")  # a file of another writer, with the same content
        with pytest.MonkeyPatch.context() as patch:
            dying = DyingOs(step, after)
            for module in (local, access):
                patch.setattr(module, "os", dying)
            try:
                sink.create_committer().commit(1, made)
                crashed = False
            except Crash:
                crashed = True
        whole = {"a3\na4\n", "b0\nb0\n", "b1\nb1\n"}
        assert set(visible(base).values()) <= whole  # no part of a file is ever seen
        sink.create_committer().commit(1, made)
        sink.create_committer().commit(1, made)
        found = sorted(visible(base).values())
        assert found == sorted(["a3\na4\n"] * (3 if foreign else 2) + ["b0\nb0\n", "b1\nb1\n"])
        assert staging_files(base) == []
        if not crashed:
            return
    raise AssertionError("the commit never came to its end")


class ByFirstLetter(BucketAssigner):
    def get_bucket_id(self, element, context):
        return element[0]


def test_files_of_an_earlier_job_are_kept(tmp_path):
    for _ in range(3):
        sink = sink_to(tmp_path)
        sink.create_committer().commit(1, staged(sink, 1, ["same"]))
    assert sorted(visible(tmp_path)) == ["part-0-1-1.txt", "part-0-1-2.txt", "part-0-1.txt"]


def test_jobs_with_one_base_path_use_different_names(tmp_path):
    sink = sink_to(tmp_path)
    for job in ("one", "two", "one-again"):
        sink.create_committer().commit(1, staged(sink, 1, [job], job=job))
    names = [name for name in os.listdir(tmp_path) if name.startswith("part-")]
    assert len(names) == 3
    assert all(re.fullmatch(r"part-[0-9a-f]{12}-0-1\.txt", name) for name in names)


def test_a_file_that_appears_during_a_commit_is_not_replaced(tmp_path, monkeypatch):
    sink = sink_to(tmp_path)
    made = staged(sink, 1, ["ours"])
    final = tmp_path / made[0]["final"]
    real = os.link

    def link(source, target):
        if not final.exists():
            final.write_text("theirs")
        real(source, target)

    monkeypatch.setattr(os, "link", link)
    sink.create_committer().commit(1, made)
    assert visible(tmp_path) == {"part-0-1.txt": "theirs", "part-0-1-1.txt": "ours\n"}


def test_commits_work_on_a_file_system_without_hard_links(tmp_path, monkeypatch):
    def link(source, target):
        raise PermissionError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", link)
    sink = sink_to(tmp_path)
    made = staged(sink, 1, ["a"])
    (tmp_path / made[0]["final"]).write_text("theirs")
    sink.create_committer().commit(1, made)
    assert visible(tmp_path) == {"part-0-1.txt": "theirs", "part-0-1-1.txt": "a\n"}


def test_a_part_file_may_be_removed_as_soon_as_it_is_visible(tmp_path, caplog):
    sink = sink_to(tmp_path, buckets=ByFirstLetter())
    made = staged(sink, 1, ["a", "b"]) + staged(sink, 2, ["a"])
    committer = sink.create_committer()
    committer.commit(1, made)
    committer.finish()  # the job has stopped, and its savepoint names these files
    (taken,) = (tmp_path / "a").iterdir()
    taken.unlink()
    sink.create_committer().commit(1, made)
    assert visible(tmp_path) == {"b/part-0-1.txt": "b\n"}
    assert "checkpoint 1: 1 part files were visible before, and have been removed since" in caplog.text
    shutil.rmtree(tmp_path / ".staging")
    with pytest.raises(OutputLost):
        sink.create_committer().commit(1, made)


def test_the_number_of_commit_intents_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(commit_intents, "_MAX_INTENTS", 3)
    sink = sink_to(tmp_path)
    for number in range(5):
        for epoch in (1, 2):
            made = staged(sink, epoch, ["x"], job=f"job{number}", now=number * 10 + epoch)
            sink.create_committer().commit(1, made)
    assert [name.partition("@")[2] for name in sorted(os.listdir(tmp_path / ".staging" / "commits"))] == [
        f"job{number}-op" for number in (2, 3, 4)
    ]


def test_epochs_of_a_checkpoint_become_one_file_as_far_as_the_size_allows(tmp_path):
    sink = sink_to(tmp_path, rolling=RollingPolicy.default_rolling_policy(part_size=6))
    made = [c for epoch in range(1, 6) for c in staged(sink, epoch, [str(epoch)])]
    sink.create_committer().commit(1, made)
    assert visible(tmp_path) == {"part-0-1.txt": "1\n2\n3\n", "part-0-4.txt": "4\n5\n"}


def test_a_part_that_is_large_enough_is_finished(tmp_path):
    sink = sink_to(tmp_path, rolling=RollingPolicy.default_rolling_policy(part_size=10))
    sink.create_committer().commit(1, staged(sink, 1, ["0123456789"] * 3000))
    assert sorted(visible(tmp_path)) == ["part-0-1-1.txt", "part-0-1-2.txt", "part-0-1.txt"]
    assert sum(map(len, visible(tmp_path).values())) == 3000 * 11


def test_dead_attempts_leave_nothing_behind(tmp_path):
    sink = sink_to(tmp_path)
    staged(sink, 1, ["dead"], attempt="0-1.0")
    made = staged(sink, 1, ["alive"], attempt="0-1.1")
    running = staged(sink, 2, ["later"])
    others = staged(sink, 1, ["another job"], job="other")
    sink.create_committer().commit(1, made)
    assert set(staging_files(tmp_path)) == {os.path.basename(c["staged"]) for c in running + others}
    assert visible(tmp_path) == {"part-0-1.txt": "alive\n"}


def test_aborted_output_is_removed(tmp_path):
    sink = sink_to(tmp_path)
    sink.create_committer().abort(staged(sink, 1, ["a"]))
    writer = sink.create_writer(context_of("op", 0, 1, 2, "0"))
    writer.write(["b"], None)
    writer.abort()
    assert os.listdir(tmp_path / ".staging") == []


def test_lost_and_damaged_output_is_reported(tmp_path):
    sink = sink_to(tmp_path)
    (made,) = staged(sink, 1, ["a"])
    os.truncate(tmp_path / made["staged"], 1)
    with pytest.raises(OutputDamaged, match="has 1 bytes, 2 were written"):
        sink.create_committer().commit(1, [made])
    os.remove(tmp_path / made["staged"])
    with pytest.raises(OutputLost, match=r"-0-1\.txt"):
        sink.create_committer().commit(1, [made])
    both = staged(sink, 2, ["a"]) + staged(sink, 3, ["b"])
    os.remove(tmp_path / both[1]["staged"])
    with pytest.raises(OutputLost):
        sink.create_committer().commit(2, both)


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/../../x", ""])
def test_a_committable_cannot_lead_out_of_the_base_path(tmp_path, name):
    sink = sink_to(tmp_path)
    (made,) = staged(sink, 1, ["a"])
    for field in ("staged", "final"):
        with pytest.raises(NotAPath):
            sink.create_committer().commit(1, [{**made, field: name}])


def test_more_buckets_than_open_files_are_written(tmp_path):
    sink = sink_to(tmp_path, buckets=ByNumber())
    writer = sink.create_writer(context_of("op", 0, 1, 1, "0"))
    for _ in range(2):
        writer.write([str(number) for number in range(70)], None)
    sink.create_committer().commit(1, writer.prepare_commit())
    assert visible(tmp_path) == {f"n={number}/part-0-1.txt": f"{number}\n" * 2 for number in range(70)}


class ByNumber(BucketAssigner):
    def get_bucket_id(self, element, context):
        return f"n={element}"


class Fixed(BucketAssigner):
    def __init__(self, bucket):
        self.bucket = bucket

    def get_bucket_id(self, element, context):
        return self.bucket


@pytest.mark.parametrize("bucket", ["..", "/abs", "a/../..", ".staging", ".", None, "a\0"])
def test_a_bucket_cannot_lead_out_of_the_base_path(tmp_path, bucket):
    with pytest.raises(BadBucket):
        staged(sink_to(tmp_path, buckets=Fixed(bucket)), 1, ["a"])


@pytest.mark.parametrize(
    ("pattern", "zone", "bucket"),
    [
        ("yyyy-MM-dd--HH", "UTC", "2024-02-29--23"),
        ("yyyy-MM-dd--HH", "Europe/Berlin", "2024-03-01--00"),
        ("yyyy-MM-dd--HH", "GMT-08:00", "2024-02-29--15"),
        ("'year='yyyy/'day='DDD", "UTC", "year=2024/day=060"),
        ("HHmm'' '%'", "UTC", "2358' %"),
    ],
)
def test_buckets_of_time_follow_the_epochs_processing_time(pattern, zone, bucket):
    assigner = BucketAssigner.date_time_bucket_assigner(pattern, zone)
    assert assigner.get_bucket_id("x", BucketContext(None, 1_709_251_139_999)) == bucket


@pytest.mark.parametrize(("pattern", "zone"), [("yyyy-QQ", "UTC"), ("'open", "UTC"), ("yyyy", "Atlantis/City")])
def test_patterns_and_zones_that_are_not_known_are_refused(pattern, zone):
    with pytest.raises(BadTimePattern):
        BucketAssigner.date_time_bucket_assigner(pattern, zone)


def test_by_default_there_is_a_bucket_for_each_hour(tmp_path, monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    sink = FileSink.for_row_format(str(tmp_path), Encoder.simple_string_encoder()).build()
    sink.create_committer().commit(1, staged(sink, 1, ["a"], now=3_600_000))
    assert visible(tmp_path) == {"1970-01-01--01/part-0-1": "a\n"}


class Pair(NamedTuple):
    a: int
    b: object


@dataclass
class Thing:
    when: date
    price: Decimal


@pytest.mark.parametrize(
    ("value", "line"),
    [
        (Row(a=1, b=Row(c="é")), '{"a": 1, "b": {"c": "é"}}'),
        (Row(1, None), "[1, null]"),
        (Pair(1, (2, 3)), '{"a": 1, "b": [2, 3]}'),
        ({"x": [Thing(date(2024, 1, 2), Decimal("1.10"))]}, '{"x": [{"when": "2024-01-02", "price": "1.10"}]}'),
        ("a\nb", '"a\\nb"'),
        (b"\x00\xff", '"AP8="'),
    ],
)
def test_json_lines_contain_records_with_field_names(tmp_path, value, line):
    sink = sink_to(tmp_path, encoder=JsonLinesEncoder())
    sink.create_committer().commit(1, staged(sink, 1, [value]))
    assert visible(tmp_path) == {"part-0-1.txt": f"{line}\n"}


@pytest.mark.parametrize("value", [float("nan"), object(), Row.of_kind(RowKind.DELETE, 1), {(1, 2): 3}])
def test_values_without_a_json_form_are_refused(tmp_path, value):
    with pytest.raises(NotSerializable):
        staged(sink_to(tmp_path, encoder=JsonLinesEncoder()), 1, [value])


@pytest.mark.parametrize("charset", ["UTF-8", "latin-1", "utf-16"])
def test_batched_strings_are_written_like_single_ones(tmp_path, charset):
    encoder = Encoder.simple_string_encoder(charset)
    sink = sink_to(tmp_path, encoder=encoder)
    (many,) = staged(sink, 1, ["é", "", "b"])
    one_by_one = staged(sink, 2, ["é"]) + staged(sink, 3, [""]) + staged(sink, 4, ["b"])
    read = [(tmp_path / made["staged"]).read_bytes() for made in (many, *one_by_one)]
    assert read[0] == b"".join(read[1:])


def test_a_base_path_that_cannot_be_written_is_refused_before_the_job(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UnusablePath, match="is not a directory"):
        sink_to(tmp_path / "file").check()
    with pytest.raises(UnusablePath, match="file is not a directory"):
        sink_to(tmp_path / "file" / "out").check()
    sink_to(tmp_path / "new" / "out").check()
    sink_to(tmp_path).check()


@pytest.fixture
def _not_root(tmp_path):
    """Root may do everything, so the real user, for whom `os.access` asks, is changed once the directory of the test
    exists."""
    root = os.getuid() == 0
    if root:
        os.setreuid(65534, 0)
    yield
    if root:
        os.setreuid(0, 0)


@pytest.mark.usefixtures("_not_root")
def test_a_directory_without_permission_is_refused_before_the_job(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(UnusablePath, match="not writable"):
        sink_to(tmp_path / "out").check()


def test_names_that_no_file_can_have_are_refused():
    config = OutputFileConfig.builder().with_part_prefix("p").with_part_suffix(".x").build()
    assert (config.get_part_prefix(), config.get_part_suffix()) == ("p", ".x")
    for prefix in ("a/b", ".hidden"):
        with pytest.raises(BadOutputFile):
            OutputFileConfig(prefix, "")
    with pytest.raises(BadOutputFile):
        RollingPolicy.default_rolling_policy(part_size=0)


def test_the_description_can_be_pickled(tmp_path):
    sink = pickle.loads(pickle.dumps(sink_to(tmp_path, encoder=JsonLinesEncoder())))
    sink.create_committer().commit(1, staged(sink, 1, [1]))
    assert visible(tmp_path) == {"part-0-1.txt": "1\n"}
