"""Checkpoints and leases on a real S3 server, moto's, which honours conditional writes."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from millstream.checkpoint import object_store
from millstream.checkpoint.object_store import ObjectStore
from millstream.checkpoint.storage import CheckpointStorage
from millstream.checkpoint.storage_errors import CheckpointTaken
from millstream.cluster import entrypoint
from millstream.cluster.lease import FileLease, Outcome
from millstream.common import Configuration, Types, WatermarkStrategy
from millstream.datastream import StreamExecutionEnvironment
from millstream.datastream.connectors.number_seq import NumberSequenceSource
from millstream.model.job_status import JobStatus
from millstream.testing.inline_engine import InlineEngine

pytest.importorskip("moto.server", reason="needs moto[server]")
s3fs = pytest.importorskip("s3fs", reason="needs s3fs")

ROOT = "s3://bucket/checkpoints"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of a server that has nothing yet."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        until = time.monotonic() + 60
        while time.monotonic() < until:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
        process.kill()


@pytest.fixture
def store(server, monkeypatch):
    """The bucket, empty; programs find the server as they find Amazon's."""
    for name, value in {
        "AWS_ACCESS_KEY_ID": "id",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": server,
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(object_store, "_remote", {})
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


def test_one_of_several_drivers_makes_a_checkpoint(store):
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


def test_a_log_is_one_object_a_record(store):
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
    configuration = Configuration()
    for key, value in {
        "parallelism.default": "1",
        "millstream.epoch.max-records": "20",
        "execution.checkpointing.interval": "1 ms",
        "execution.checkpointing.dir": ROOT,
        "high-availability.type": "lease",
        "high-availability.storageDir": "s3://bucket/ha",
        "high-availability.cluster-id": "s3",
    }.items():
        configuration.set_string(key, value)
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
