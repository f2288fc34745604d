"""What the driver pays for an epoch and a checkpoint of a job with many slots, without Spark.

    python benchmarks/jobs/scale.py [--slots 16 256 1000 4000] [--epochs 20]

The planner, the job master, the checkpoint code and the handling of reports are those of every job. Only the slots are
simulated: an engine packs the requests as resident slots get them, and answers each with the report that a subtask of
20 operators would send, of the same size and content; 5 vertices with 4 operators each, all connected to all by key.

Promises: what the engine does in place of the slots is not counted.
Does not know: sockets, Spark, what a slot does."""

from __future__ import annotations

import argparse
import functools
import json
import pickle
import sys
import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from millstream.cluster import entrypoint
from millstream.cluster.job_events import CheckpointDone, EpochDone, JobEvent
from millstream.common import Configuration, Types, WatermarkStrategy
from millstream.datastream import StreamExecutionEnvironment
from millstream.datastream.connectors.blackhole import BlackHoleSink
from millstream.datastream.connectors.number_seq import NumberSequenceSource
from millstream.engine.contract import Deployment, EpochRequest, EpochResult
from millstream.engine.epoch_level import level_requests
from millstream.engine.packing import pickle_deployment
from millstream.engine.spark.engine import create_epoch_result
from millstream.runtime.block import attempt_token
from millstream.runtime.memory import OperatorMemory
from millstream.runtime.report import TaskReport, pack_report
from millstream.runtime.task import TaskRequest
from millstream.state.handles import Chain, Handle
from millstream.testing.inline_engine import InlineEngine

EXCHANGES, CHAIN = 4, 4  # exchanges by key between vertices of so many operators
BASE_BYTES, DELTA_BYTES = 200 << 20, 300 << 10  # of the files of a subtask; files below 256 KiB would be packed


@dataclass
class AnsweringEngine(InlineEngine):
    """Answers every request without running it. `away` are the seconds of CPU time in which it did the slots' work."""

    away: float = 0.0
    request_bytes: list[int] = field(default_factory=list)
    report_bytes: list[int] = field(default_factory=list)
    deployment_bytes: int = 0

    def __post_init__(self) -> None:
        super().__init__()

    def deploy(self, deployment: Deployment) -> None:
        """Pickle the program as for a broadcast."""
        self.deployment_bytes = len(pickle_deployment(deployment))
        self._deployment = deployment

    def run_epoch(self, request: EpochRequest) -> EpochResult:
        """Pack the requests by slot, and unpack an answer to each."""
        deployment = self._deployment
        assert deployment is not None, "deploy first"
        levels = level_requests(deployment, request)
        slots = range(deployment.plan.slots)
        sizes = [len(pickle.dumps([{slot: level.get(slot, [])} for level in levels], 5)) for slot in slots]
        self.request_bytes.append(sum(sizes))
        started = time.process_time()
        blocks = [
            pack_report(_report(deployment, vertex, subtask, asked))
            for level in levels
            for subtask, vertices in level.items()
            for vertex, asked in vertices
        ]
        self.report_bytes.append(sum(map(len, blocks)))
        self.away += time.process_time() - started
        return create_epoch_result(blocks)


def _report(deployment: Deployment, vertex: str, subtask: int, request: TaskRequest) -> TaskReport:
    """Return what a subtask would report that has read a watermark from each channel and changed its state."""
    task = next(planned.task for planned in deployment.plan.vertices if planned.task.vertex == vertex)
    suffix = f"{subtask}-{request.epoch}-{request.attempt}"
    memory = {}
    for node in task.operators:
        remembered = OperatorMemory(request.memory.get(node.id))
        remembered.watermark = remembered.emitted_watermark = 1_700_000_000_000 + request.epoch
        memory[node.id] = remembered.snapshot()
    counts = {"records_in": 1000, "records_out": 1000}
    return TaskReport(
        vertex=vertex,
        subtask=subtask,
        attempt=_attempt(request.attempt, subtask),
        states={node.id: _state(node.id, suffix, request) for node in task.operators[:1] if task.inputs},
        memory=memory,
        metrics={node.id: counts for node in task.operators},
        watermark=1_700_000_000_000 + request.epoch,
        busy=0.02,
        sent={edge.edge: 1 << 120 for edge in task.outputs},
        read={edge.edge: (1 << 120) for edge in task.inputs},
        bytes_in=100_000,
        bytes_out=100_000,
    )


def _state(operator: str, suffix: str, request: TaskRequest) -> Chain:
    """Return a delta, after a base in the first epoch; or a merged delta, as the request says."""
    delta = Handle(f"{operator}-{suffix}", DELTA_BYTES, "0" * 64, request.epoch, 1000)
    chain = request.lineages[operator].own
    if not chain:
        return (replace(delta, name=f"{delta.name}-base", size=BASE_BYTES, base=True),)
    first = request.compact.get(operator)
    if first is None:
        return (delta,)
    assert isinstance(first, int)
    merged = chain[first:]
    return (replace(delta, size=sum(part.size for part in merged), covers=tuple(part.name for part in merged)),)


@functools.cache
def _attempt(generation: str, subtask: int) -> bytes:
    return attempt_token(f"{generation}-{subtask}")


class Observed:
    """CPU time of this process between epochs and checkpoints, without the time in which the engine stood for slots."""

    def __init__(self, engine: AnsweringEngine) -> None:
        self._engine = engine
        self._at = self._now()
        self.epochs: list[float] = []
        self.checkpoints: list[float] = []
        self.paths: list[str] = []

    def _now(self) -> float:
        return time.process_time() - self._engine.away

    def __call__(self, event: JobEvent) -> None:
        """Note how long the driver worked for this epoch or checkpoint."""
        if isinstance(event, EpochDone | CheckpointDone):
            now = self._now()
            (self.epochs if isinstance(event, EpochDone) else self.checkpoints).append(now - self._at)
            if isinstance(event, CheckpointDone):
                self.paths.append(event.path)
            self._at = now


def build(env: StreamExecutionEnvironment) -> None:
    """A source with 3 operators behind it, then exchanges by key between stateful operators with 3 more each."""
    stream = env.from_source(NumberSequenceSource(0, 1 << 40), WatermarkStrategy.no_watermarks(), "numbers")
    for vertex in range(EXCHANGES + 1):
        if vertex:
            stream = stream.key_by(lambda number: number, Types.LONG()).reduce(lambda one, other: one + other)
        for _ in range(CHAIN - 1 if vertex < EXCHANGES else CHAIN - 2):  # the sink is chained, too
            stream = stream.map(lambda number: number, Types.LONG())
    stream.sink_to(BlackHoleSink())


def measure(slots: int, epochs: int) -> dict[str, Any]:
    """Run epochs with a checkpoint after each, and return medians."""
    with tempfile.TemporaryDirectory() as directory:
        configuration = Configuration.from_dict(
            {
                "parallelism.default": str(slots),
                "pipeline.max-parallelism": "32768",
                "execution.checkpointing.interval": "1 ms",
                "execution.checkpointing.dir": directory,
            }
        )
        env = StreamExecutionEnvironment.get_execution_environment(configuration)
        build(env)
        started = time.process_time()
        engine = AnsweringEngine()
        observed = Observed(engine)
        job = entrypoint.submit(env._graph(), configuration, "scale", engine=engine, listeners=[observed])
        while len(observed.epochs) < epochs and not job.wait(0.05):
            pass
        metadata = max((path.stat().st_size for path in Path(directory).rglob("*metadata*")), default=0)
        job.cancel()
        job.wait(600)
    warm = slice(2, None)
    return {
        "slots": slots,
        "start_s": observed.epochs[0] and round(observed._at - started, 3),
        "epoch_ms": 1000 * median(observed.epochs[warm]),
        "checkpoint_ms": 1000 * median(observed.checkpoints[warm]),
        "request_mb": median(engine.request_bytes[warm]) / 1e6,
        "reports_mb": median(engine.report_bytes[warm]) / 1e6,
        "program_kb": engine.deployment_bytes / 1e3,
        "metadata_mb": metadata / 1e6,
        "memory_mb": psutil.Process().memory_info().rss / 1e6,
    }


def main() -> None:
    """Print a line for each number of slots."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--slots", type=int, nargs="+", default=[16, 256, 1000, 4000])
    parser.add_argument("--epochs", type=int, default=20)
    args = parser.parse_args()
    for slots in args.slots:
        print(json.dumps(measure(slots, args.epochs)), flush=True)


if __name__ == "__main__":
    main()
