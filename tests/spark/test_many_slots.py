"""Many more slots than cores: workers run one after another, and each has the state of several subtasks on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from millstream.common import Configuration, Types, WatermarkStrategy
from millstream.datastream import StreamExecutionEnvironment
from millstream.datastream.connectors.number_seq import NumberSequenceSource

SLOTS, RECORDS, KEYS = 64, 4000, 500


@pytest.mark.usefixtures("spark_context")
def test_a_job_with_64_slots_on_two_cores_gives_the_right_output(tmp_path: Path) -> None:
    configuration = Configuration()
    for key, value in {
        "execution.checkpointing.dir": str(tmp_path),
        "execution.checkpointing.interval": "100 ms",
        "state.backend.type": "rocksdb",
        "millstream.epoch.max-records": str(RECORDS // 4),
        "millstream.engine": "jobs",
    }.items():
        configuration.set_string(key, value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(SLOTS)
    pairs = env.from_source(NumberSequenceSource(0, RECORDS - 1), WatermarkStrategy.no_watermarks(), "numbers").map(
        lambda number: (number % KEYS, 1), Types.TUPLE([Types.LONG(), Types.LONG()])
    )
    counts: dict[Any, int] = {}
    rows = pairs.key_by(lambda pair: pair[0], Types.LONG()).reduce(lambda one, other: (one[0], one[1] + other[1]))
    for key, count in rows.execute_and_collect():
        counts[key] = max(count, counts.get(key, 0))
    assert counts == dict.fromkeys(range(KEYS), RECORDS // KEYS)
