"""Training on real workers: one dies in the middle of a round, and the model is the same."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest

from millstream.common import Configuration
from millstream.datastream import StreamExecutionEnvironment
from millstream.ml import LinearRegression
from millstream.ml.linear_learners import SquaredLoss
from millstream.table import StreamTableEnvironment

pytestmark = pytest.mark.usefixtures("spark_context")


def test_a_worker_that_dies_in_a_round_does_not_change_the_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configuration = Configuration()
    configuration.set_string("execution.checkpointing.dir", str(tmp_path))
    configuration.set_string("execution.checkpointing.interval", "50 ms")
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(2)
    t_env = StreamTableEnvironment.create(env)
    marker = tmp_path / "killed"

    class Deadly(SquaredLoss):
        def slopes(self, products, labels):  # type: ignore[no-untyped-def]
            if 0 < abs(products[0] - labels[0]) < 0.7 and not marker.exists():  # after some rounds
                marker.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return super().slopes(products, labels)

    monkeypatch.setattr("millstream.ml.regression.linearregression.SquaredLoss", Deadly)
    rows = [([float(x), 1.0], 2.0 * x - 1.0) for x in range(-2, 3)]
    table = t_env.from_elements(rows, ["features", "label"])
    model = LinearRegression().set_max_iter(8).set_learning_rate(0.3).fit(table)
    data = model.get_model_data()[0].to_arrow().to_pydict()
    coefficient = np.zeros(2)
    features, labels = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    for _ in range(8):
        coefficient -= 0.3 * (features @ coefficient - labels) @ features / 5
    assert marker.exists()
    assert data["coefficient"][0] == pytest.approx(coefficient.tolist(), rel=1e-9)
