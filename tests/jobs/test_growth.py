"""Nothing grows with the number of epochs: not the driver, not the workers, not the checkpoint directory."""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections import Counter

import pytest

from millstream.checkpoint.storage import CheckpointStorage
from millstream.cluster import entrypoint, job_statistics
from millstream.cluster.checkpoints import Checkpoints, CheckpointSchedule
from millstream.cluster.job_events import CheckpointDone, EpochDone
from millstream.cluster.open_snapshots import OpenSnapshots
from millstream.common import Configuration, Types, WatermarkStrategy
from millstream.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from millstream.datastream.connectors.number_seq import NumberSequenceSource
from millstream.datastream.state import ValueStateDescriptor
from millstream.testing.inline_engine import InlineEngine

WARM_UP, EPOCHS, EVERY = 100, 600, 10
SLACK = 100  # objects; one that is kept for each epoch would be 250


class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        yield value


class Samples:
    """What a process holds, counted now and then in the job's own thread between two epochs."""

    def __init__(self, directory):
        self._directory, self._own = directory, 0
        self.objects: list[Counter[str]] = []
        self.blocks: list[int] = []
        self.files: list[int] = []
        self.threads: list[int] = []

    def __call__(self, observation):
        if not isinstance(observation, EpochDone) or observation.epoch < WARM_UP or observation.epoch % EVERY:
            return
        gc.collect()
        if observation.epoch == WARM_UP:
            gc.freeze()  # existing objects are not counted
        blocks = sys.getallocatedblocks()
        self.blocks.append(blocks - self._own)
        self.objects.append(Counter(type(each).__name__ for each in gc.get_objects()))
        self._own += sys.getallocatedblocks() - blocks
        self.threads.append(threading.active_count())
        self.files.append(sum(len(files) for _, _, files in os.walk(self._directory)))


@pytest.fixture
def samples(tmp_path):
    yield Samples(tmp_path)
    gc.unfreeze()


def grown(series):
    """How far the highest of the second half is above the highest of the first."""
    half = len(series) // 2
    return max(series[half:]) - max(series[:half])


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_a_job_is_no_larger_after_many_epochs(tmp_path, samples, backend, monkeypatch):
    monkeypatch.setattr(entrypoint, "_KEPT_EPOCHS", 50)
    monkeypatch.setattr(job_statistics, "_KEPT_CHECKPOINTS", 5)
    monkeypatch.setattr(job_statistics, "_KEPT_EPOCHS", 50)
    configuration = Configuration()
    for key, value in {
        "parallelism.default": "1",
        "millstream.epoch.max-records": "1",
        "execution.checkpointing.interval": "20 ms",
        "execution.checkpointing.dir": str(tmp_path),
        "state.backend.type": backend,
    }.items():
        configuration.set_string(key, value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    numbers = env.from_source(NumberSequenceSource(1, EPOCHS), WatermarkStrategy.no_watermarks(), "n")
    counted = numbers.key_by(lambda n: n % 3, Types.LONG()).process(Count(), Types.LONG())
    counted.filter(lambda n: False).print()
    job = entrypoint.submit(env._graph(), configuration, "growth", engine=InlineEngine(), listeners=[samples])
    assert job.wait(120)
    assert job.epoch_count >= EPOCHS
    assert job.checkpoint_count > 20
    assert len(samples.objects) == 1 + (EPOCHS - WARM_UP) // EVERY
    kinds = set().union(*samples.objects)
    more = {kind: by for kind in kinds if (by := grown([each[kind] for each in samples.objects])) > SLACK}
    assert not more, "objects that stay after each epoch"
    assert grown(samples.blocks) < 4 * SLACK
    assert grown(samples.files) < 20
    assert threading.active_count() <= samples.threads[0], threading.enumerate()


def test_a_running_job_keeps_its_newest_epochs_and_counts_all(tmp_path):
    job = entrypoint.RunningJob("id", "name", Configuration())
    checkpoints = Checkpoints(CheckpointStorage(str(tmp_path), "id"), CheckpointSchedule(None), temporary=False)
    job.snapshots = OpenSnapshots(checkpoints, None, entrypoint.SystemClock())
    for epoch in range(1, 2_001):
        job.notify(EpochDone(epoch, 1, 1.0, 0, None, 1.0, {}))
        job.notify(CheckpointDone(epoch, epoch, 1, 1, 1.0, "path"))
    assert (job.epoch_count, job.checkpoint_count) == (2_000, 2_000)
    assert [each.epoch for each in job.epochs] == list(range(1_501, 2_001))
    assert len(job.checkpoints) == 100
    assert job.checkpoints[-1].id == 2_000
