"""Checkpoints and leases on a real S3 server, moto's, which honours conditional writes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from millstream.checkpoint.storage import CheckpointStorage
from millstream.checkpoint.storage_errors import CheckpointTaken
from millstream.cluster import entrypoint
from millstream.cluster.lease import FileLease, Outcome
from millstream.common import Configuration, Types, WatermarkStrategy
from millstream.datastream import StreamExecutionEnvironment
from millstream.datastream.connectors.number_seq import NumberSequenceSource
from millstream.files import remote
from millstream.files.remote import ObjectStore
from millstream.job.job_status import JobStatus
from millstream.testing.inline_engine import InlineEngine
from millstream.testing.s3 import list_client_variables, s3_server
from millstream_chaos.machine.faulty_store import FaultyStore

pytest.importorskip("moto.server", reason="needs moto[server]")
s3fs = pytest.importorskip("s3fs", reason="needs s3fs")

ROOT = "s3://bucket/checkpoints"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of a server that has nothing yet."""
    with s3_server() as url:
        yield url


@pytest.fixture
def store(server, monkeypatch):
    """The bucket, empty; programs find the server as they find Amazon's."""
    for name, value in list_client_variables(server).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(remote, "_clients", {})
    s3fs.S3FileSystem.clear_instance_cache()
    made = s3fs.S3FileSystem()
    if made.exists("bucket"):
        made.rm("bucket", recursive=True)
    made.mkdir("bucket")
    made.invalidate_cache()
    yield made
    s3fs.S3FileSystem.clear_instance_cache()


def run_at_once(*works) -> list:
    """Their results, in the order in which they ended."""
    found = []
    threads = [threading.Thread(target=lambda work=work: found.append(work())) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_only_one_of_several_drivers_creates_a_checkpoint(store):
    storage = CheckpointStorage(ROOT, "job")
    storage.check_writable()

    def publish(data: bytes) -> bool:
        try:
            CheckpointStorage(ROOT, "job").publish(1, data)
        except CheckpointTaken:
            return False
        return True

    assert sorted(run_at_once(*(lambda n=n: publish(b"%d" % n) for n in range(4)))) == [False, False, False, True]
    assert len(store.find("bucket")) == 1


class LosesAnswers(FaultyStore):
    """Carries out the first write of an object whose name has this text, and answers with an error."""

    def __init__(self, url: str, text: str) -> None:
        super().__init__(url, 1)
        self.text: str | None = text

    def draw_fault(self, method: str, path: str) -> str | None:
        if self.text is None or method != "PUT" or self.text not in path:
            return None
        self.text = None
        return "answer lost"


@pytest.fixture
def losing(server, store, monkeypatch):
    """Let the store lose the answer to a write."""
    with ExitStack() as stack:

        def lose(text: str) -> LosesAnswers:
            made = stack.enter_context(LosesAnswers(server, text))
            monkeypatch.setenv("AWS_ENDPOINT_URL", made.url)
            monkeypatch.setattr(remote, "_clients", {})
            s3fs.S3FileSystem.clear_instance_cache()
            return made

        yield lose


def test_a_checkpoint_whose_response_was_lost_is_recognised(losing):
    """The client repeats the write, which the store refuses: the object is there."""
    faulty = losing("_metadata")
    CheckpointStorage(ROOT, "job").publish(1, b"first")
    assert faulty.text is None
    with pytest.raises(CheckpointTaken):
        CheckpointStorage(ROOT, "job").publish(1, b"second")
    assert CheckpointStorage(ROOT, "job").read_metadata(1) == b"first"


def test_a_term_whose_response_was_lost_is_followed_by_a_later_one(losing):
    faulty = losing("term-")
    lease = FileLease("s3://bucket/ha/lost", ObjectStore.of(ROOT))
    assert not lease.take(1, "driver"), "the driver cannot know that it was the one who made it"
    assert faulty.text is None
    assert lease.held().term == 1
    assert lease.take(2, "driver")


def test_a_log_has_one_object_for_each_record(store):
    storage = CheckpointStorage(ROOT, "job")
    for number in range(5):
        storage.append_log("epochs.log", b"%d" % number)
    assert CheckpointStorage(ROOT, "job").read_log("epochs.log") == [b"0", b"1", b"2", b"3", b"4"]
    storage.truncate_log("epochs.log", [b"4"])
    assert CheckpointStorage(ROOT, "job").read_log("epochs.log") == [b"4"]
    storage.delete_log("epochs.log")
    store.invalidate_cache()
    assert store.find("bucket") == []


def test_a_lease_is_taken_by_one_driver_renewed_and_concluded(store):
    drivers = [FileLease("s3://bucket/ha/job", ObjectStore.of(ROOT)) for _ in range(3)]
    assert drivers[0].held() is None
    assert sorted(run_at_once(*(lambda d=d: d.take(1, "driver") for d in drivers))) == [False, False, True]
    drivers[0].renew(1, 7)
    held = drivers[1].held()
    assert (held.term, held.holder, held.beat) == (1, "driver", 7)
    assert drivers[1].take(2, "other")
    assert drivers[2].held().term == 2
    drivers[0].conclude(Outcome("FINISHED"))
    drivers[1].conclude(Outcome("FAILED", "too late"))
    assert drivers[2].outcome() == Outcome("FINISHED")


def test_a_job_with_high_availability_runs_with_everything_on_the_store(store):
    configuration = Configuration.from_dict(
        {
            "parallelism.default": "1",
            "millstream.epoch.max-records": "20",
            "execution.checkpointing.interval": "1 ms",
            "execution.checkpointing.dir": ROOT,
            "high-availability.type": "lease",
            "high-availability.storageDir": "s3://bucket/ha",
            "high-availability.cluster-id": "s3",
        }
    )
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    numbers = env.from_source(NumberSequenceSource(1, 60), WatermarkStrategy.no_watermarks(), "n")
    numbers.key_by(lambda n: n % 3, Types.LONG()).map(lambda n: n, Types.LONG()).filter(lambda n: n < 0).print()
    job = entrypoint.submit(env._graph(), configuration, "on S3", engine=InlineEngine())
    assert job.wait(120)
    assert job.master.job.status is JobStatus.FINISHED, job.master.failure
    assert job.checkpoint_count >= 1
    store.invalidate_cache()
    left = store.find("bucket")
    assert [name for name in left if "/ha/" not in name] == [], "checkpoints and plans are gone"
    assert any(name.endswith("/outcome") for name in left)
