"""What every user function is, and what it can ask of the subtask that runs it.

Promises: `open` is called once before the first record of a subtask's life, `close` once after the last.
Does not know: how a context is implemented; the runtime subclasses these."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typing_extensions import TypeVar

from millstream.job.accumulators import Accumulator, DoubleCounter, Histogram, IntCounter, LongCounter
from millstream.job.metrics import MetricGroup

if TYPE_CHECKING:  # state descriptors hold functions, so only one of the two may import the other at run time
    from millstream.state_descriptors.descriptors import (
        AggregatingState,
        AggregatingStateDescriptor,
        ListState,
        ListStateDescriptor,
        MapState,
        MapStateDescriptor,
        ReducingState,
        ReducingStateDescriptor,
        ValueState,
        ValueStateDescriptor,
    )


T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
IN = TypeVar("IN")
OUT = TypeVar("OUT")


class KeyedStateStore(ABC):
    """Hands out state by descriptor; what is read and written belongs to the current key."""

    @abstractmethod
    def get_state(self, state_descriptor: ValueStateDescriptor[T]) -> ValueState[T]:
        """One value per key."""

    @abstractmethod
    def get_list_state(self, state_descriptor: ListStateDescriptor[T]) -> ListState[T]:
        """A list per key."""

    @abstractmethod
    def get_map_state(self, state_descriptor: MapStateDescriptor[K, V]) -> MapState[K, V]:
        """A map per key."""

    @abstractmethod
    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor[T]) -> ReducingState[T]:
        """A value per key, folded with the descriptor's reduce function."""

    @abstractmethod
    def get_aggregating_state(self, state_descriptor: AggregatingStateDescriptor[IN, OUT]) -> AggregatingState[IN, OUT]:
        """An accumulator per key, folded with the descriptor's aggregate function."""


class RuntimeContext(KeyedStateStore):
    """Where a function runs: its task, its subtask, its job's parameters, metrics and keyed state."""

    @abstractmethod
    def get_task_name(self) -> str:
        """Name of the task, as the plan has it."""

    @abstractmethod
    def get_number_of_parallel_subtasks(self) -> int:
        """Parallelism of the task."""

    @abstractmethod
    def get_max_number_of_parallel_subtasks(self) -> int:
        """Max parallelism of the task: its number of key groups."""

    @abstractmethod
    def get_index_of_this_subtask(self) -> int:
        """Number of this subtask, from 0 to parallelism - 1."""

    @abstractmethod
    def get_attempt_number(self) -> int:
        """How often the subtask was restarted; 0 for the first attempt."""

    @abstractmethod
    def get_task_name_with_subtasks(self) -> str:
        """Task name and subtask, such as `window (3/6)` for the subtask with index 2."""

    @abstractmethod
    def get_job_parameter(self, key: str, default_value: str) -> str:
        """A global job parameter, or the default where it is not set."""

    @abstractmethod
    def get_metrics_group(self) -> MetricGroup:
        """The `MetricGroup` in which the function registers its metrics."""

    @abstractmethod
    def get_distributed_cache(self) -> DistributedCache:
        """The files the program registered with `register_cached_file`."""

    @abstractmethod
    def add_accumulator(self, name: str, accumulator: Accumulator[Any, Any]) -> None:
        """Have an accumulator summed up over all subtasks, for the job's result."""

    @abstractmethod
    def get_accumulator(self, name: str) -> Accumulator[Any, Any] | None:
        """The accumulator of that name, if one was added; its local value is what this epoch added here."""

    @abstractmethod
    def get_int_counter(self, name: str) -> IntCounter:
        """The counter of that name; it is made when it is first asked for."""

    @abstractmethod
    def get_long_counter(self, name: str) -> LongCounter:
        """The counter of that name; it is made when it is first asked for."""

    @abstractmethod
    def get_double_counter(self, name: str) -> DoubleCounter:
        """The counter of that name; it is made when it is first asked for."""

    @abstractmethod
    def get_histogram(self, name: str) -> Histogram:
        """The histogram of that name; it is made when it is first asked for."""


class DistributedCache(ABC):
    """Files that the program registered and every worker has a copy of."""

    @abstractmethod
    def get_file(self, name: str) -> Path:
        """The local copy of a file or directory."""


class Function(ABC):  # noqa: B024 - users subclass one of its kinds, each of which is abstract
    """Base of all user functions."""

    def open(self, runtime_context: RuntimeContext) -> None:
        """Prepare: take state handles, open connections. Called once, before the first record."""

    def close(self) -> None:
        """Release what `open` took. Called once, after the last record, also when the job fails."""
