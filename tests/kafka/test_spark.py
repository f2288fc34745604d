"""On Spark, with workers that die: Kafka to state to Kafka, every result once."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from test_sink import counting, expected, filled

pytestmark = pytest.mark.spark


def kill_worker() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.usefixtures("spark_context")
def test_a_worker_that_is_killed_does_not_show(broker, new_topic, tmp_path, staging):
    topics = filled(broker, new_topic)
    counting(broker, topics, tmp_path, staging, kill_worker).execute("counts")
    assert (tmp_path / "happened").exists()
    assert Counter(broker.values(topics[1])) == expected()


def test_the_example_survives_being_killed():
    script = Path(__file__).parent.parent.parent / "examples" / "kafka_exactly_once.py"
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert len(re.findall("^killed", done.stdout, re.MULTILINE)) == 2
    assert done.stdout.endswith("every payment was counted once\n")
