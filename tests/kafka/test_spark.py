"""On Spark, with workers that die: from Kafka through keyed state to Kafka, exactly once."""

from __future__ import annotations

import functools
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from test_sink import counting, expected, filled

from millstream.connectors.kafka.commit import KafkaCommitter
from millstream.connectors.kafka.commit_task import WriteStaged
from millstream.connectors.kafka.messages import read_frames
from millstream.connectors.kafka.staging import Staged, Staging
from millstream.datastream.connectors.kafka import KafkaSink

pytestmark = pytest.mark.spark


def kill_worker() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.usefixtures("spark_context")
def test_a_killed_worker_does_not_change_the_output(broker, new_topic, tmp_path, staging):
    topics = filled(broker, new_topic)
    counting(broker, topics, tmp_path, staging, kill_worker).execute("counts")
    assert (tmp_path / "happened").exists()
    assert Counter(broker.values(topics[1])) == expected()


class Dying(KafkaCommitter):
    """Its tasks die once each: in mid-transaction, and between the commit of a transaction and the removal of files."""

    def __init__(self, directory: Path, *args) -> None:
        super().__init__(*args)
        self._marker = directory

    def _task(self, lane):
        return functools.partial(write_and_die, super()._task(lane), self._marker)


def write_and_die(write: WriteStaged, directory: Path):
    place = ("read", "remove")[write.files[0].subtask]
    marker = directory / f"died-{place}"
    if not marker.exists():  # the process dies during the change
        setattr(Staging, place, functools.partialmethod(read_and_die if place == "read" else die, marker))
    return write()


def read_and_die(staging: Staging, marker: Path, staged: Staged):
    with open(staging.path(staged), "rb") as stream:
        yield from read_frames(stream, "")
    time.sleep(0.2)  # in which messages are sent
    die(staging, marker, staged)


def die(staging: Staging, marker: Path, staged: Staged) -> None:
    marker.touch()
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.usefixtures("spark_context")
def test_tasks_killed_during_a_commit_do_not_change_the_output(broker, new_topic, tmp_path, staging, monkeypatch):
    topics = filled(broker, new_topic)
    monkeypatch.setattr(
        KafkaSink, "create_committer", lambda sink: Dying(tmp_path, sink.prefix, staging, sink._settings())
    )
    counting(broker, topics, tmp_path, staging).execute("counts")
    assert {path.name for path in tmp_path.glob("died-*")} == {"died-read", "died-remove"}
    assert Counter(broker.values(topics[1])) == expected()
    assert [name for name in os.listdir(staging) if "@" in name] == []


def test_the_example_survives_being_killed():
    script = Path(__file__).parent.parent.parent / "examples" / "kafka_exactly_once.py"
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert len(re.findall("^killed", done.stdout, re.MULTILINE)) == 2
    assert done.stdout.endswith("every payment was counted once\n")
