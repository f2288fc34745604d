"""An iteration on real workers: one dies in the middle of a round, and the result is the same."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from millstream.common import Configuration, Types
from millstream.datastream import StreamExecutionEnvironment
from millstream.iteration import iterate

pytestmark = pytest.mark.usefixtures("spark_context")


def test_a_worker_that_dies_in_a_round_does_not_change_the_result(tmp_path: Path) -> None:
    configuration = Configuration()
    configuration.set_string("execution.checkpointing.dir", str(tmp_path))
    configuration.set_string("execution.checkpointing.interval", "50 ms")
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(2)
    marker = tmp_path / "killed"

    def double(number: int) -> int:
        if number == 2 * 2**4 and not marker.exists():  # in round 4
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return 2 * number

    numbers = env.from_collection([1, 2, 3], Types.LONG())
    result = iterate(numbers, lambda stream: stream.key_by(lambda n: n % 7).map(double, Types.LONG()), 8)
    assert sorted(result.execute_and_collect()) == [256, 512, 768]
    assert marker.exists()
