"""The wall clock of the driver jumps by hours and days, partitions are idle, and events come from the ends of time.

Promises: event time does not care: the output is that of a run with a steady clock; checkpoints and restarts go on
after a jump in either direction.
Does not know: workers' clocks; those are wrong in `chaos_kills`, where workers are processes."""

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
from millstream.testing import sample_input
from millstream.testing.chaos import Report, Trace
from millstream.testing.sample_programs import PROGRAMS, Collect, EventTime, Longer, SplitsSource
from millstream.testing.simulation import Faults, ManualClock, Setup, World, reference, run
from millstream.times import Duration, Time
from millstream.windows.assigners import TumblingEventTimeWindows

HOUR, DAY = 3_600_000, 86_400_000
_SIZES = {"ci": (5, 1), "normal": (20, 2), "long": (40, 4)}  # jumps of each program, and how long its input is
_EPOCHS = 20  # that most programs have, at least, of their own input


class JumpingClock(ManualClock):
    """A clock whose reading jumps; durations are measured as before."""

    offset = 0

    def now(self) -> int:
        """Milliseconds, as whoever sets the clock would have it."""
        return super().now() + self.offset


@dataclass(frozen=True)
class IdleBeside(SplitsSource):
    """Splits, and one more that never has a record."""

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        """As without the idle split, which watermarks would wait for."""
        return _IdleBeside(super().create_enumerator(parallelism, state))


class _IdleBeside(SplitEnumerator):
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
    """Events long before and long after all others, beside a partition that never has any."""
    source = IdleBeside(sample_input.ends_of_time())
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(EventTime())
    strategy = strategy.with_idleness(Duration.of_millis(50))
    events = environment.from_source(source, strategy, "ends of time")
    windows = TumblingEventTimeWindows.of(Time.milliseconds(10))
    return events.key_by(lambda event: event[0]).window(windows).process(Collect())


ALL: dict[str, Callable[[StreamExecutionEnvironment], DataStream]] = {**PROGRAMS, "ends_of_time": ends_of_time}


def plan(seed: int, size: str) -> Trace:
    """For every program, after which epoch the clock jumps, and how far."""
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
    """Run every program with its jumps; the engine fails now and then, so restarts happen too."""
    report = Report(trace)
    jumped = checkpoints = 0
    for step in trace.shown():
        setup = Setup(Longer(ALL[step["program"]], trace.parameters["times"]), epoch_records=3, checkpoint_every=2)
        with World() as world:
            clock = world.clock = JumpingClock()
            due = {jump["after_epoch"]: jump["by"] for jump in step["jumps"]}

            def listen(
                observation: JobEvent, _master: JobMaster, clock: JumpingClock = clock, due: dict[int, int] = due
            ) -> None:
                if isinstance(observation, EpochDone):
                    clock.offset += due.pop(observation.epoch, 0)

            planned = len(due)
            began = clock.precise()
            life = run(setup, world, Faults(engine=frozenset(step["failing"])), listen=listen)
            jumped += planned - len(due)
            checkpoints += len(life.checkpoints)
            told = f"{step['program']}: {life.status} {life.failure}"
            report.check(life.status is JobStatus.FINISHED, told)
            report.check(world.visible() == reference(setup), f"{told}: the output differs")
            every = max(1, len(life.epochs) // 6)
            report.check(len(life.checkpoints) >= every, f"{told}: {len(life.checkpoints)} checkpoints")
            report.check(clock.precise() - began < HOUR / 1000, f"{told}: it waited for a clock that went back")
    report.figures |= {"programs": len(trace.steps), "jumps": jumped, "checkpoints": checkpoints}
    return report
