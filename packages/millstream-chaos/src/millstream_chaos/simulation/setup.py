"""The arguments of a simulated run: a program, how its input is cut, and the faults of one life of its driver.

Promises: plain values; equal values give equal runs.
Does not know: how a run works."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from millstream.config.configuration import Configuration
from millstream.datastream.data_stream import DataStream
from millstream.datastream.stream_execution_environment import StreamExecutionEnvironment
from millstream.functions import MapFunction
from millstream_chaos.storage.faulty_files import Mode, ReadMode

Program = Callable[[StreamExecutionEnvironment], DataStream]
EPOCH_MILLIS = 10  # the duration of an epoch on the virtual clock
_failures: dict[str, int] = {}


@dataclass
class Stumble(MapFunction):
    """Returns records unchanged; fails at record `at`, `times` times in this process, counted under `name`."""

    name: str
    at: int
    times: int = 1
    seen: int = 0

    def map(self, value: Any) -> Any:
        """Return the value, or fail."""
        self.seen += 1
        if self.seen == self.at and _failures.setdefault(self.name, 0) < self.times:
            _failures[self.name] += 1
            message = f"a simulated failure at {value}"
            raise ValueError(message)
        return value


@dataclass(frozen=True)
class Faults:
    """The faults in one life of a driver. All numbers count from 0.

    Attributes:
        storage: The storage operation that fails, and how.
        lasting: How many operations fail.
        stalls: The seconds that a stalled operation takes.
        reads: The read of storage that fails or returns wrong data, and how.
        reads_lasting: How many reads do so.
        behind: How many changes a stale read is behind.
        engine: The epochs in which the engine fails.
        most_records: An epoch with more records fails for lack of memory.
        forget: The probability that a worker is lost before a level.
        flip: The probability that its successor has the other state backend.
        attempts: How each slot is attempted: "once"; "twice", of which the second counts; "broken", of which the first
            ends half-way; or "mixed": both are read, each by some slots of the next level, as on Spark after a loss of
            map output. Attempts are mixed in the first run of each epoch only.
        mixes: The probability that the attempts of a slot are mixed, in any run.
        seed: The seed of the probabilities.

    """

    storage: tuple[int, Mode] | None = None
    lasting: int = 1
    stalls: float = 30.0
    reads: tuple[int, ReadMode] | None = None
    reads_lasting: int = 1
    behind: int = 1
    engine: frozenset[int] = frozenset()
    most_records: int | None = None
    forget: float = 0.0
    flip: float = 0.0
    attempts: str = "once"
    mixes: float = 0.0
    seed: int = 0


@dataclass(frozen=True)
class Setup:
    """A program, its sink (one of `SINKS`), and how its input is cut; `checkpoint_every` counts epochs."""

    program: Program
    parallelism: int = 2
    epoch_records: int = 7
    block_records: int = 3
    checkpoint_every: int | None = 2
    backend: str = "hashmap"
    options: Mapping[str, str] = field(default_factory=dict)
    repeats: bool = False
    sink: str = "visible"
    job: str = "job"
    incarnation: str | None = None  # None: a new one for each process

    def configuration(self) -> Configuration:
        """Return the setup as a configuration."""
        configuration = Configuration()
        settings = {
            "parallelism.default": str(self.parallelism),
            "millstream.epoch.max-records": str(self.epoch_records),
            "millstream.epoch.idle-interval": "20 ms",
            **self.options,
        }
        if self.checkpoint_every is not None:
            settings.setdefault("execution.checkpointing.interval", f"{self.checkpoint_every * EPOCH_MILLIS} ms")
        for key, value in settings.items():
            configuration.set_string(key, value)
        return configuration
