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
    """Access to keyed state by descriptor; reads and writes concern the current key.

    Example:
        >>> from millstream.common import Types
        >>> from millstream.datastream import KeyedProcessFunction
        >>> from millstream.datastream.state import ValueStateDescriptor
        >>> from millstream.testing import harness_for
        >>> class CountPerKey(KeyedProcessFunction):
        ...     def open(self, runtime_context):
        ...         self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        ...     def process_element(self, value, ctx):
        ...         self.count.update((self.count.value() or 0) + 1)
        ...         yield value, self.count.value()
        >>> with harness_for(CountPerKey(), key=lambda name: name) as harness:
        ...     harness.process_all(["ann", "bob", "ann"])
        ...     harness.values()
        [('ann', 1), ('bob', 1), ('ann', 2)]

    """

    @abstractmethod
    def get_state(self, state_descriptor: ValueStateDescriptor[T]) -> ValueState[T]:
        """Return the value state of a descriptor.

        Args:
            state_descriptor: The name and the type of the value.

        """

    @abstractmethod
    def get_list_state(self, state_descriptor: ListStateDescriptor[T]) -> ListState[T]:
        """Return the list state of a descriptor.

        Args:
            state_descriptor: The name and the type of the elements.

        """

    @abstractmethod
    def get_map_state(self, state_descriptor: MapStateDescriptor[K, V]) -> MapState[K, V]:
        """Return the map state of a descriptor.

        Args:
            state_descriptor: The name and the types of keys and values.

        """

    @abstractmethod
    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor[T]) -> ReducingState[T]:
        """Return the reducing state of a descriptor, which combines values with its reduce function.

        Args:
            state_descriptor: The name, the reduce function and the type of the values.

        """

    @abstractmethod
    def get_aggregating_state(self, state_descriptor: AggregatingStateDescriptor[IN, OUT]) -> AggregatingState[IN, OUT]:
        """Return the aggregating state of a descriptor, which adds values with its aggregate function.

        Args:
            state_descriptor: The name, the aggregate function and the type of the accumulator.

        """


class RuntimeContext(KeyedStateStore):
    """The context of a function: its task and subtask, job parameters, metrics and keyed state.

    Example:
        >>> from millstream.datastream import MapFunction
        >>> from millstream.testing import harness_for
        >>> class WithSubtask(MapFunction):
        ...     def open(self, runtime_context):
        ...         self.index = runtime_context.get_index_of_this_subtask()
        ...     def map(self, value):
        ...         return value, self.index
        >>> with harness_for(WithSubtask()) as harness:
        ...     harness.process("a")
        ...     harness.values()
        [('a', 0)]

    """

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
        """Return a global job parameter, or the default if it is not set.

        Args:
            key: The key of the parameter.
            default_value: The result if the parameter is not set.

        """

    @abstractmethod
    def get_metrics_group(self) -> MetricGroup:
        """Return the `MetricGroup` in which the function registers its metrics."""

    @abstractmethod
    def get_distributed_cache(self) -> DistributedCache:
        """Return the files that the program registered with `register_cached_file`."""

    @abstractmethod
    def add_accumulator(self, name: str, accumulator: Accumulator[Any, Any]) -> None:
        """Add an accumulator; the result of the job has its value over all subtasks.

        Args:
            name: The name, unique in the job.
            accumulator: The accumulator; the function keeps it and adds values to it.

        """

    @abstractmethod
    def get_accumulator(self, name: str) -> Accumulator[Any, Any] | None:
        """Return the accumulator of that name, or None; its local value is that of this subtask in this epoch.

        Args:
            name: The name of the accumulator.

        """

    @abstractmethod
    def get_int_counter(self, name: str) -> IntCounter:
        """Return the counter of that name; the first call creates it.

        Args:
            name: The name of the accumulator.

        """

    @abstractmethod
    def get_long_counter(self, name: str) -> LongCounter:
        """Return the counter of that name; the first call creates it.

        Args:
            name: The name of the accumulator.

        """

    @abstractmethod
    def get_double_counter(self, name: str) -> DoubleCounter:
        """Return the counter of that name; the first call creates it.

        Args:
            name: The name of the accumulator.

        """

    @abstractmethod
    def get_histogram(self, name: str) -> Histogram:
        """Return the histogram of that name; the first call creates it.

        Args:
            name: The name of the accumulator.

        """


class DistributedCache(ABC):
    """Files that the program registered; every worker has a copy."""

    @abstractmethod
    def get_file(self, name: str) -> Path:
        """Return the path of the local copy of a file or directory."""


class Function(ABC):  # noqa: B024 - its subclasses are abstract
    """The base class of all user functions.

    Example:
        >>> from millstream.datastream import MapFunction
        >>> class ToPrice(MapFunction):
        ...     def open(self, runtime_context):
        ...         self.prices = {"tea": 3, "coffee": 4}
        ...     def map(self, value):
        ...         return self.prices[value]
        ...     def close(self):
        ...         self.prices = {}

    """

    def open(self, runtime_context: RuntimeContext) -> None:
        """Initialize the function: get state, open connections. Called once, before the first record.

        Args:
            runtime_context: Access to state, metrics and facts about the subtask.

        """

    def close(self) -> None:
        """Release resources. Called once, after the last record, also if the job fails."""
