"""Laws of checkpoint storage: publishing is atomic whenever the process dies, and reads return exactly the bytes
written."""

from __future__ import annotations

import errno
import hashlib
import os
import pickle
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from millstream.checkpoint.storage import EPOCH_LOG, CheckpointStorage, StoredFile
from millstream.checkpoint.storage_errors import CheckpointTaken, NoConditionalWrites
from millstream.files.contract import FileSystem
from millstream.files.errors import CorruptFile, MissingFile, OutsideRoot, StorageFailure
from millstream.files.local import LocalFileSystem
from millstream_chaos.storage.faulty_files import CRASHES, FaultyFileSystem, Mode, SimulatedCrash, crash_points

JOB = "a1b2"


@pytest.fixture
def storage(tmp_path: Path) -> CheckpointStorage:
    return CheckpointStorage(str(tmp_path), JOB)


def flip(path: Path, place: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


# ----------------------------------------------------------------------------------------------------------- files


def test_written_files_are_read_by_another_process(storage: CheckpointStorage, tmp_path: Path) -> None:
    stored = storage.write("shared/op/1", b"state")
    assert stored == StoredFile(f"{JOB}/shared/op/1", 5, hashlib.sha256(b"state").hexdigest())
    assert (tmp_path / JOB / "shared/op/1").read_bytes() == b"state"
    assert pickle.loads(pickle.dumps(storage)).read(stored) == b"state"
    assert CheckpointStorage(str(tmp_path), "another").read(stored) == b"state"
    assert CheckpointStorage(str(tmp_path / JOB)).write("shared/op/1", b"state").name == "shared/op/1"


def test_a_damaged_file_is_named_with_what_was_expected_and_found(storage: CheckpointStorage, tmp_path: Path) -> None:
    stored = storage.write("shared/1", b"state")
    flip(tmp_path / stored.name, 2)
    with pytest.raises(CorruptFile, match=f"shared/1 is damaged: expected SHA-256 {stored.sha256}, found SHA-256"):
        storage.read(stored)
    with pytest.raises(CorruptFile, match="expected 4 bytes, found 5 bytes"):
        storage.read(replace(stored, size=4))
    storage.delete(stored.name)
    storage.delete(stored.name)
    with pytest.raises(MissingFile, match="shared/1"):
        storage.read(stored)


def test_shared_files_can_be_listed_and_deleted(storage: CheckpointStorage) -> None:
    assert storage.files() == []
    names = [storage.write(f"shared/{n}", b"").name for n in range(3)]
    assert storage.files() == names
    storage.delete(names[1])
    assert storage.files() == [names[0], names[2]]


# ----------------------------------------------------------------------------------------------------- checkpoints


def test_checkpoints_are_listed_by_number_once_published(storage: CheckpointStorage, tmp_path: Path) -> None:
    assert storage.list_checkpoints() == []
    for number in (10, 9, 1):
        storage.publish(number, b"{}")
    storage.publish("savepoint-1", b"{}")
    (tmp_path / JOB / "chk-11").mkdir()
    (tmp_path / JOB / "chk-x").mkdir()
    assert storage.list_checkpoints() == [1, 9, 10]
    assert storage.read_metadata("savepoint-1") == b"{}"


def test_metadata_is_readable_text_and_fully_verified(storage: CheckpointStorage, tmp_path: Path) -> None:
    metadata = b'{"checkpoint": 3}'
    storage.publish(3, metadata)
    path = tmp_path / JOB / "chk-3/_metadata"
    whole = path.read_bytes()
    assert whole.startswith(metadata + b"\n")
    for place in range(len(whole)):
        path.write_bytes(whole)
        flip(path, place)
        with pytest.raises(CorruptFile, match="chk-3/_metadata is damaged"):
            storage.read_metadata(3)
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(CorruptFile):
            storage.read_metadata(3)
    path.unlink()
    with pytest.raises(MissingFile):
        storage.read_metadata(3)


def test_a_deleted_checkpoint_takes_only_its_own_directory(storage: CheckpointStorage, tmp_path: Path) -> None:
    stored = storage.write("shared/1", b"state")
    storage.write("chk-1/own", b"x")
    storage.publish(1, b"1")
    storage.publish(2, b"2")
    storage.delete_checkpoint(1)
    storage.delete_checkpoint(1)
    assert storage.list_checkpoints() == [2]
    assert not (tmp_path / JOB / "chk-1").exists()
    assert storage.read(stored) == b"state"


# ------------------------------------------------------------------------------------------------------------ logs


def test_records_are_read_in_order_after_a_restart(storage: CheckpointStorage, tmp_path: Path) -> None:
    records = [b"one", b"", b"\0" * 20, os.urandom(1000)]
    assert storage.read_log(EPOCH_LOG) == []
    for record in records[:2]:
        storage.append_log(EPOCH_LOG, record)
    again = CheckpointStorage(str(tmp_path), JOB)
    for record in records[2:]:
        again.append_log(EPOCH_LOG, record)
    storage.append_log(EPOCH_LOG, b"last")  # the first one detects the change of the second
    assert storage.read_log(EPOCH_LOG) == [*records, b"last"]
    storage.truncate_log(EPOCH_LOG, keep=records[1:3])
    storage.append_log(EPOCH_LOG, b"new")
    assert storage.read_log(EPOCH_LOG) == [*records[1:3], b"new"]
    storage.truncate_log(EPOCH_LOG)
    assert storage.read_log(EPOCH_LOG) == []


def test_a_torn_tail_is_dropped_and_the_next_record_takes_its_place(storage: CheckpointStorage, tmp_path: Path) -> None:
    path = tmp_path / JOB / EPOCH_LOG
    storage.append_log(EPOCH_LOG, b"first")
    start = path.stat().st_size
    storage.append_log(EPOCH_LOG, b"second")
    whole = path.read_bytes()
    tails = [whole[start:end] for end in range(start, len(whole))]
    tails += [b"\0" * 50, whole[start:-1] + b"\0", whole[start:-3] + b"\0" * 90, os.urandom(40)]
    for tail in tails:
        path.write_bytes(whole[:start] + tail)
        assert storage.read_log(EPOCH_LOG) == [b"first"]
        CheckpointStorage(str(tmp_path), JOB).append_log(EPOCH_LOG, b"third")
        assert storage.read_log(EPOCH_LOG) == [b"first", b"third"]


def test_damage_before_the_end_is_distinguished_from_a_torn_tail(storage: CheckpointStorage, tmp_path: Path) -> None:
    path = tmp_path / JOB / EPOCH_LOG
    for record in (b"first", b"second"):
        storage.append_log(EPOCH_LOG, record)
    end = path.stat().st_size
    storage.append_log(EPOCH_LOG, b"third")
    whole = path.read_bytes()
    for place in range(end):
        path.write_bytes(whole)
        flip(path, place)
        with pytest.raises(CorruptFile, match=r"epochs\.log is damaged: expected record [01] at byte"):
            storage.read_log(EPOCH_LOG)
        with pytest.raises(CorruptFile):
            CheckpointStorage(str(tmp_path), JOB).append_log(EPOCH_LOG, b"more")


def test_a_torn_record_that_contains_a_log_is_still_torn(storage: CheckpointStorage, tmp_path: Path) -> None:
    for record in (b"a", b"b"):
        storage.append_log("inner.log", record)
    inner = (tmp_path / JOB / "inner.log").read_bytes()
    storage.append_log(EPOCH_LOG, b"first")
    storage.append_log(EPOCH_LOG, inner + b"tail")
    path = tmp_path / JOB / EPOCH_LOG
    path.write_bytes(path.read_bytes()[:-1])
    assert storage.read_log(EPOCH_LOG) == [b"first"]


# --------------------------------------------------------------------------------------------------- crash points


class NoDevice(LocalFileSystem):
    """Does not wait for the disk: a process that dies loses nothing the system has taken."""

    def write_bytes(self, path: str, data: bytes, sync: bool) -> None:
        super().write_bytes(path, data, False)

    def append_bytes(self, path: str, data: bytes, sync: bool) -> None:
        super().append_bytes(path, data, False)

    def truncate(self, path: str, size: int, sync: bool) -> None:
        super().truncate(path, size, False)

    def sync_dir(self, path: str) -> None:
        pass


def restarted(root: Path) -> CheckpointStorage:
    return CheckpointStorage(str(root), JOB, fs=NoDevice())


def checkpoint(storage: CheckpointStorage, number: int) -> None:
    """Write a state file, log the epoch, publish: the protocol whose every crash point is tried."""
    storage.append_log(EPOCH_LOG, b"plan %d" % number)
    stored = storage.write(f"shared/state-{number}", b"state %d" % number * 100)
    storage.publish(number, f"{stored.name} {stored.size} {stored.sha256}".encode())
    storage.truncate_log(EPOCH_LOG, keep=[b"done %d" % number])
    if number > 1:
        storage.delete_checkpoint(number - 1)


def whole_checkpoints(root: Path) -> list[int]:
    """The checkpoints that a restarted process finds, each read completely."""
    storage = restarted(root)
    for number in storage.list_checkpoints():
        name, size, sha256 = storage.read_metadata(number).decode().split()
        assert storage.read(StoredFile(name, int(size), sha256)) == b"state %d" % number * 100
    return storage.list_checkpoints()


def test_every_crash_point_leaves_the_old_or_the_new_checkpoint_complete(tmp_path: Path) -> None:
    checkpoint(restarted(tmp_path / "count"), 1)
    tried = crash_points(lambda fs: checkpoint(CheckpointStorage(str(tmp_path / "count"), JOB, fs=fs), 2), NoDevice())
    assert len(tried) == 16 * 5
    seen = set()
    for index, mode in tried:
        root = tmp_path / f"{index}-{mode}"
        checkpoint(restarted(root), 1)
        faulty = FaultyFileSystem(NoDevice(), index, mode)
        with pytest.raises(SimulatedCrash if mode in CRASHES else StorageFailure):
            checkpoint(CheckpointStorage(str(root), JOB, fs=faulty), 2)
        found = whole_checkpoints(root)
        assert found in ([1], [1, 2], [2])
        seen.add(tuple(found))
        log = restarted(root).read_log(EPOCH_LOG)
        assert log in ([b"done 1"], [b"done 1", b"plan 2"], [b"done 2"])
        assert found == [1] or b"plan 2" in log or b"done 2" in log  # planned before run
        checkpoint(restarted(root), 2)  # a restart finishes the work
        assert whole_checkpoints(root) == [2]
        assert restarted(root).read_log(EPOCH_LOG) == [b"done 2"]
    assert seen == {(1,), (1, 2), (2,)}


def test_files_are_durable_before_their_names_and_names_before_success(tmp_path: Path) -> None:
    faulty = FaultyFileSystem(LocalFileSystem())
    storage = CheckpointStorage(str(tmp_path), JOB, fs=faulty)
    storage.publish(1, b"{}")
    _, write, rename, sync = faulty.operations
    assert (write.name, write.synced, write.path) == ("write_bytes", True, rename.path)
    assert (rename.name, rename.target) == ("move_new", str(tmp_path / JOB / "chk-1/_metadata"))
    assert (sync.name, sync.path) == ("sync_dir", str(tmp_path / JOB / "chk-1"))


def test_an_existing_checkpoint_is_never_replaced(tmp_path: Path) -> None:
    first, second = CheckpointStorage(str(tmp_path), JOB), CheckpointStorage(str(tmp_path), JOB)
    first.publish(1, b"first")
    first.publish(1, b"first")  # a request that is repeated finds its own file
    for taken in (lambda: second.publish(1, b"second"), lambda: second.void(1)):
        with pytest.raises(CheckpointTaken):
            taken()
    second.void(2)
    with pytest.raises(CheckpointTaken):
        first.publish(2, b"late")
    assert first.read_metadata(1) == b"first"


def test_a_directory_without_create_if_absent_is_refused(tmp_path: Path) -> None:
    class Replaces(LocalFileSystem):
        def move_new(self, source: str, target: str) -> None:
            os.replace(source, target)

    with pytest.raises(NoConditionalWrites, match="created only if absent"):
        CheckpointStorage(str(tmp_path), JOB, fs=Replaces()).check_writable()
    assert list(tmp_path.iterdir()) == []


def test_the_directory_of_a_linked_file_is_synced(tmp_path: Path, monkeypatch: Any) -> None:
    synced: list[str] = []
    monkeypatch.setattr(LocalFileSystem, "sync_dir", lambda _, path: synced.append(path))
    source, target = CheckpointStorage(str(tmp_path / "a"), JOB), CheckpointStorage(str(tmp_path / "b"))
    stored = source.write("shared/x", b"state")
    synced.clear()
    target.link("state/x", source, stored)
    assert (tmp_path / "b/state/x").stat().st_nlink == 2
    assert synced[-1] == str(tmp_path / "b/state")


def test_all_calls_fail_after_a_simulated_crash_and_work_before(tmp_path: Path) -> None:
    faulty = FaultyFileSystem(LocalFileSystem(), crash_at=1, mode="torn")
    path = str(tmp_path / "file")
    faulty.write_bytes(path, b"whole", sync=False)
    with pytest.raises(SimulatedCrash):
        faulty.append_bytes(path, b"more", sync=False)
    assert Path(path).read_bytes() == b"wholemo"
    for operation in (faulty.exists, faulty.read_bytes, faulty.size, faulty.list, faulty.resolve, faulty.remove):
        with pytest.raises(SimulatedCrash):
            operation(path)
    assert [operation.name for operation in faulty.operations] == ["write_bytes", "append_bytes"]


def test_a_full_disk_leaves_no_temporary_files(tmp_path: Path) -> None:
    for index in range(3):
        faulty = FaultyFileSystem(LocalFileSystem(), index, "enospc")
        with pytest.raises(StorageFailure):
            CheckpointStorage(str(tmp_path), JOB, fs=faulty).write("shared/1", b"state")
    assert list((tmp_path / JOB / "shared").iterdir()) == []


def test_random_appends_and_crashes_never_lose_an_acknowledged_record(tmp_path: Path) -> None:
    chance = random.Random(4711)
    acknowledged: list[bytes] = []
    for restart in range(60):
        faulty = FaultyFileSystem(NoDevice(), chance.randrange(6), chance.choice(CRASHES))
        storage = CheckpointStorage(str(tmp_path), JOB, fs=faulty)
        record = b""
        try:
            for number in range(10):
                record = b"%d/%d" % (restart, number) * chance.randrange(20)
                storage.append_log(EPOCH_LOG, record)
                acknowledged.append(record)
        except SimulatedCrash:
            found = CheckpointStorage(str(tmp_path), JOB).read_log(EPOCH_LOG)
            assert found in (acknowledged, [*acknowledged, record])
            acknowledged = found


# ------------------------------------------------------------------------------------------------------- failures


@pytest.mark.parametrize(
    ("mode", "says"), [("enospc", "no space left on device; hint: free"), ("eio", "hint: check the")]
)
def test_failures_name_path_reason_and_remedy(tmp_path: Path, mode: Mode, says: str) -> None:
    actions: list[Callable[[CheckpointStorage], object]] = [
        lambda storage: storage.write("shared/1", b"x"),
        lambda storage: storage.publish(1, b"x"),
        lambda storage: storage.append_log(EPOCH_LOG, b"x"),
        lambda storage: storage.delete(f"{JOB}/shared/1"),
    ]
    for action in actions:
        storage = CheckpointStorage(str(tmp_path), JOB, fs=FaultyFileSystem(LocalFileSystem(), 0, mode))
        with pytest.raises(StorageFailure, match=rf"cannot .*{JOB}.*{says}") as caught:
            action(storage)
        assert caught.value.errno == (errno.ENOSPC if mode == "enospc" else errno.EIO)


class NoPermission(LocalFileSystem):
    def write_bytes(self, path: str, data: bytes, sync: bool) -> None:
        raise PermissionError(errno.EACCES, "", path)

    def read_bytes(self, path: str) -> bytes:
        raise PermissionError(errno.EACCES, "", path)


def test_an_unusable_root_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    denied: FileSystem = NoPermission()
    for storage, says in (
        (CheckpointStorage(str(tmp_path / "file" / "below"), JOB), "below: not a directory; hint:"),
        (CheckpointStorage(str(tmp_path / "file"), JOB), "file: not a directory; hint:"),
        (CheckpointStorage(str(tmp_path), JOB, fs=denied), "permission denied; hint: give the user"),
    ):
        with pytest.raises(StorageFailure, match=rf"cannot use the checkpoint directory .*{says}"):
            storage.check_writable()
    with pytest.raises(StorageFailure, match=r"cannot read .*permission denied"):
        CheckpointStorage(str(tmp_path), JOB, fs=denied).read_metadata(1)


def test_a_missing_root_is_created(tmp_path: Path) -> None:
    CheckpointStorage(str(tmp_path / "new" / "root"), JOB).check_writable()
    assert list((tmp_path / "new" / "root").iterdir()) == []


def test_checking_a_usable_root_leaves_no_files(tmp_path: Path) -> None:
    CheckpointStorage(str(tmp_path), JOB).check_writable()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "name",
    [
        "../out",
        "shared/../../../out",
        "/etc/passwd",
        "shared/./1",
        "shared//1",
        ".",
        "..",
        "a\\..\\b",
        "a\0b",
        "link/1",
        "to",
    ],
)
def test_no_name_leads_out_of_the_root(tmp_path: Path, name: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "1").write_bytes(b"secret")
    root = tmp_path / "root"
    root.mkdir()
    (root / "link").symlink_to(outside)
    (root / "to").symlink_to(outside / "1")
    storage = CheckpointStorage(str(root))
    attempts: list[Callable[[], object]] = [
        lambda: storage.read(StoredFile(name, 6, "")),
        lambda: storage.write(name, b"changed"),
        lambda: storage.delete(name),
        lambda: storage.publish(name, b""),
        lambda: storage.delete_checkpoint(name),
        lambda: storage.append_log(name, b""),
        lambda: storage.files(name),
        lambda: CheckpointStorage(str(root), name),
    ]
    for attempt in attempts:
        with pytest.raises((OutsideRoot, StorageFailure)) as caught:
            attempt()
        assert name == "to" or isinstance(caught.value, OutsideRoot)
    assert [path.name for path in outside.iterdir()] == ["1"]
    assert (outside / "1").read_bytes() == b"secret"


def test_links_inside_the_root_and_a_root_that_is_a_link_are_allowed(tmp_path: Path) -> None:
    (tmp_path / "disk/real").mkdir(parents=True)
    (tmp_path / "disk/inner").symlink_to(tmp_path / "disk/real")
    (tmp_path / "root").symlink_to(tmp_path / "disk")
    storage = CheckpointStorage(str(tmp_path / "root"))
    assert storage.read(storage.write("inner/1", b"x")) == b"x"


class ShortReads(LocalFileSystem):
    """The next reads return half of a file."""

    left: ClassVar[list[int]] = [0]

    def read_bytes(self, path: str) -> bytes:
        data = super().read_bytes(path)
        if not self.left[0]:
            return data
        self.left[0] -= 1
        return data[: len(data) // 2]


@pytest.mark.parametrize(("short", "is_read"), [(3, True), (4, False)])
def test_a_log_is_not_truncated_after_a_short_read(tmp_path: Path, short: int, is_read: bool) -> None:
    records = [bytes([number]) * 50 for number in range(6)]
    for record in records:
        CheckpointStorage(str(tmp_path), "job").append_log(EPOCH_LOG, record)
    storage = CheckpointStorage(str(tmp_path), "job", fs=ShortReads())
    for use in (lambda: storage.append_log(EPOCH_LOG, b"next"), lambda: storage.read_log(EPOCH_LOG)):
        ShortReads.left[0] = short
        if is_read:
            use()
        else:
            with pytest.raises(StorageFailure, match="input/output error"):
                use()
    expected = [*records, b"next"] if is_read else records
    assert CheckpointStorage(str(tmp_path), "job").read_log(EPOCH_LOG) == expected
