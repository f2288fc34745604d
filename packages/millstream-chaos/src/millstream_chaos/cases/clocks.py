"""The wall clock of the driver jumps by hours and days, partitions are idle, and timestamps are extreme.

Promises: the output does not depend on the wall clock: it is that of a run with a steady clock. Checkpoints and
restarts continue after a jump in either direction.
Does not know: the clocks of workers; they are wrong in `kills`, where workers are processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from millstream.cluster.job_events import EpochDone, JobEvent
from millstream.cluster.job_master import JobMaster
from millstream.connector.source import Budget, SplitEnumerator, SplitRange
from millstream.datastream.data_stream import DataStream
from millstream.datastream.stream_execution_environment import StreamExecutionEnvironment
from millstream.event_time.watermarks import WatermarkStrategy
from millstream.job.job_status import JobStatus
from millstream.testing.clock import ManualClock
from millstream.times import Duration, Time
from millstream.windows.assigners import TumblingEventTimeWindows
from millstream_chaos.samples import sample_input
from millstream_chaos.samples.programs import PROGRAMS, Collect, EventTime, Longer
from millstream_chaos.samples.splits_source import SplitsSource
from millstream_chaos.simulation import Faults, Setup, World, compute_reference, run
from millstream_chaos.trace import Report, Trace

HOUR, DAY = 3_600_000, 86_400_000
# the number of jumps in each program, and the factor of its input
_SIZES = {"ci": (5, 1), "normal": (20, 2), "long": (40, 4)}
_EPOCHS = 20  # most programs have at least this many checkpoints


class JumpingClock(ManualClock):
    """A clock whose wall time jumps; `precise`, with which durations are measured, does not."""

    offset = 0

    def now(self) -> int:
        """Return the wall time in milliseconds."""
        return super().now() + self.offset


@dataclass(frozen=True)
class WithIdleSplit(SplitsSource):
    """Adds a split that never has records to a source."""

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        """Create an enumerator with the idle split, for which watermarks must not wait."""
        return _IdleSplitEnumerator(super().create_enumerator(parallelism, state))


class _IdleSplitEnumerator(SplitEnumerator):
    def __init__(self, inner: SplitEnumerator) -> None:
        self._inner = inner

    def plan(self, budget: Budget) -> list[SplitRange]:
        return self._inner.plan(budget)

    def snapshot(self) -> Any:
        return self._inner.snapshot()

    def finished(self) -> bool:
        return self._inner.finished()

    def splits(self) -> list[str]:
        return [*self._inner.splits(), "idle"]

    def replayed(self, ranges: Sequence[SplitRange]) -> None:
        self._inner.replayed(ranges)

    def skip(self, done: SplitRange) -> None:
        self._inner.skip(done)


def ends_of_time(environment: StreamExecutionEnvironment) -> DataStream:
    """Return windows over events with extreme timestamps, from a source with an idle split."""
    source = WithIdleSplit(sample_input.ends_of_time())
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(EventTime())
    strategy = strategy.with_idleness(Duration.of_millis(50))
    events = environment.from_source(source, strategy, "ends of time")
    windows = TumblingEventTimeWindows.of(Time.milliseconds(10))
    return events.key_by(lambda event: event[0]).window(windows).process(Collect())


ALL: dict[str, Callable[[StreamExecutionEnvironment], DataStream]] = {**PROGRAMS, "ends_of_time": ends_of_time}


def plan(seed: int, size: str) -> Trace:
    """Draw for every program after which epochs the clock jumps, and how far."""
    chance = np.random.default_rng([seed, 29])
    count, times = _SIZES[size]
    steps = []
    for name in sorted(ALL):
        epochs = sorted(map(int, chance.choice(_EPOCHS * times, count, replace=False) + 1))
        jumps = [{"after_epoch": epoch, "by": int(chance.choice([-DAY, -HOUR, HOUR, DAY]))} for epoch in epochs]
        failing = sorted(map(int, chance.choice(_EPOCHS * times, 3, replace=False)))
        steps.append({"program": name, "jumps": jumps, "failing": failing})
    return Trace("clocks", seed, size, {"times": times}, steps)


def play(trace: Trace, _directory: Path) -> Report:
    """Run every program with its jumps; the engine fails from time to time, so that there are restarts."""
    report = Report(trace)
    jumped = checkpoints = 0
    for step in trace.iterate_steps():
        setup = Setup(Longer(ALL[step["program"]], trace.parameters["times"]), epoch_records=3, checkpoint_every=2)
        with World() as world:
            clock = world.clock = JumpingClock(World.BEGIN)
            due = {jump["after_epoch"]: jump["by"] for jump in step["jumps"]}

            def listen(
                event: JobEvent, _master: JobMaster, clock: JumpingClock = clock, due: dict[int, int] = due
            ) -> None:
                if isinstance(event, EpochDone):
                    clock.offset += due.pop(event.epoch, 0)

            planned = len(due)
            started = clock.precise()
            life = run(setup, world, Faults(engine=frozenset(step["failing"])), listen=listen)
            jumped += planned - len(due)
            checkpoints += len(life.checkpoints)
            outcome = f"{step['program']}: {life.status} {life.failure}"
            report.check(life.status is JobStatus.FINISHED, outcome)
            report.check(world.visible() == compute_reference(setup), f"{outcome}: the output differs")
            fewest = max(1, len(life.epochs) // 6)
            report.check(len(life.checkpoints) >= fewest, f"{outcome}: {len(life.checkpoints)} checkpoints")
            report.check(clock.precise() - started < HOUR / 1000, f"{outcome}: it waited for a clock that was set back")
    report.figures |= {"programs": len(trace.steps), "jumps": jumped, "checkpoints": checkpoints}
    return report
