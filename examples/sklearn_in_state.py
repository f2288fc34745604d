"""Models of scikit-learn as state: one for each sensor, trained exactly once with every record, also after kill -9."""

import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn._loss._loss import CyHalfBinomialLoss
from sklearn.linear_model import SGDClassifier

from millstream.common import Configuration, Types
from millstream.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from millstream.datastream.state import ValueStateDescriptor

VALUES = np.random.default_rng(1).normal(size=(600, 2)).tolist()
READINGS = [
    (f"sensor {n % 3}", heat, load, int(heat + (n % 3 - 1) * load > 0)) for n, (heat, load) in enumerate(VALUES)
]


def train(model: SGDClassifier | None, reading: tuple) -> SGDClassifier:
    model = model or SGDClassifier(loss="log_loss", random_state=0)
    return model.partial_fit([reading[1:3]], [reading[3]], classes=[0, 1])


class Alarm(KeyedProcessFunction):
    def __init__(self, marker: str) -> None:
        self.marker = Path(marker)

    def open(self, runtime_context: RuntimeContext) -> None:
        self.model = runtime_context.get_state(ValueStateDescriptor("model", Types.PICKLED_BYTE_ARRAY()))

    def process_element(self, reading: tuple, ctx: KeyedProcessFunction.Context) -> Iterator[tuple]:
        if reading == READINGS[400] and not self.marker.exists():
            self.marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        self.model.update(train(self.model.value(), reading))
        yield reading[0], self.model.value().coef_[0].tolist()


with tempfile.TemporaryDirectory() as directory:
    configuration = Configuration()
    configuration.set_string("execution.checkpointing.interval", "1 ms")  # after every epoch
    configuration.set_string("execution.checkpointing.dir", directory)
    configuration.set_integer("millstream.epoch.max-records", 100)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    for model_class in (SGDClassifier, CyHalfBinomialLoss):  # the classes that may be restored from a checkpoint
        env.register_type(model_class)
    sensors = env.from_collection(READINGS).key_by(lambda reading: reading[0], Types.STRING())
    outputs = list(sensors.process(Alarm(f"{directory}/killed")).execute_and_collect())
    print("a worker was killed:", Path(directory, "killed").exists())

models: dict[str, SGDClassifier] = {}
for reading in READINGS:
    models[reading[0]] = train(models.get(reading[0]), reading)
print("outputs:", len(outputs))
for sensor, model in sorted(models.items()):
    print(f"{sensor} has the model of a plain loop: {dict(outputs)[sensor] == model.coef_[0].tolist()}")
