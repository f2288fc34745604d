"""The base of all user functions, and the context in which they run.

Promises: `open` is called once before the first record of a subtask, `close` once after the last.
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
    """Access to keyed state by descriptor; reads and writes concern the current key."""

    @abstractmethod
    def get_state(self, state_descriptor: ValueStateDescriptor[T]) -> ValueState[T]:
        """Return the value state of a descriptor."""

    @abstractmethod
    def get_list_state(self, state_descriptor: ListStateDescriptor[T]) -> ListState[T]:
        """Return the list state of a descriptor."""

    @abstractmethod
    def get_map_state(self, state_descriptor: MapStateDescriptor[K, V]) -> MapState[K, V]:
        """Return the map state of a descriptor."""

    @abstractmethod
    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor[T]) -> ReducingState[T]:
        """Return the reducing state of a descriptor, which combines values with its reduce function."""

    @abstractmethod
    def get_aggregating_state(self, state_descriptor: AggregatingStateDescriptor[IN, OUT]) -> AggregatingState[IN, OUT]:
        """Return the aggregating state of a descriptor, which adds values with its aggregate function."""


class RuntimeContext(KeyedStateStore):
    """The context of a function: its task and subtask, job parameters, metrics and keyed state."""

    @abstractmethod
    def get_task_name(self) -> str:
        """Return the name of the task."""

    @abstractmethod
    def get_number_of_parallel_subtasks(self) -> int:
        """Return the parallelism of the task."""

    @abstractmethod
    def get_max_number_of_parallel_subtasks(self) -> int:
        """Return the max parallelism of the task, which is its number of key groups."""

    @abstractmethod
    def get_index_of_this_subtask(self) -> int:
        """Return the index of this subtask, from 0 to parallelism - 1."""

    @abstractmethod
    def get_attempt_number(self) -> int:
        """Return how often the subtask was restarted; 0 in the first attempt."""

    @abstractmethod
    def get_task_name_with_subtasks(self) -> str:
        """Return the task name with the subtask, such as `window (3/6)` for index 2."""

    @abstractmethod
    def get_job_parameter(self, key: str, default_value: str) -> str:
        """Return a global job parameter, or the default if it is not set."""

    @abstractmethod
    def get_metrics_group(self) -> MetricGroup:
        """Return the `MetricGroup` in which the function registers its metrics."""

    @abstractmethod
    def get_distributed_cache(self) -> DistributedCache:
        """Return the files that the program registered with `register_cached_file`."""

    @abstractmethod
    def add_accumulator(self, name: str, accumulator: Accumulator[Any, Any]) -> None:
        """Add an accumulator; the result of the job has its value over all subtasks."""

    @abstractmethod
    def get_accumulator(self, name: str) -> Accumulator[Any, Any] | None:
        """Return the accumulator of that name, or None; its local value is that of this subtask in this epoch."""

    @abstractmethod
    def get_int_counter(self, name: str) -> IntCounter:
        """Return the counter of that name; the first call creates it."""

    @abstractmethod
    def get_long_counter(self, name: str) -> LongCounter:
        """Return the counter of that name; the first call creates it."""

    @abstractmethod
    def get_double_counter(self, name: str) -> DoubleCounter:
        """Return the counter of that name; the first call creates it."""

    @abstractmethod
    def get_histogram(self, name: str) -> Histogram:
        """Return the histogram of that name; the first call creates it."""


class DistributedCache(ABC):
    """Files that the program registered; every worker has a copy."""

    @abstractmethod
    def get_file(self, name: str) -> Path:
        """Return the path of the local copy of a file or directory."""


class Function(ABC):  # noqa: B024 - its subclasses are abstract
    """The base class of all user functions."""

    def open(self, runtime_context: RuntimeContext) -> None:
        """Initialize the function: get state, open connections. Called once, before the first record."""

    def close(self) -> None:
        """Release resources. Called once, after the last record, also if the job fails."""
