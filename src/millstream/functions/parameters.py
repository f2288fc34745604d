"""The function of an iteration with shared parameters: workers compute updates, and parameters apply them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

from millstream.functions.base import Function

T = TypeVar("T")
KEY = TypeVar("KEY")
V = TypeVar("V")
U = TypeVar("U")


class WorkerContext(ABC):
    """What `compute` knows about its worker.

    Example:
        >>> from millstream.iteration import ParameterFunction
        >>> class Mean(ParameterFunction):
        ...     def compute(self, records, parameters, context):
        ...         error = sum(records) / len(records) - parameters["mean"]
        ...         context.report("error", error * error)
        ...         return {"mean": error}
        ...     def apply(self, key, value, updates):
        ...         return value + sum(updates) / 8

    """

    @property
    @abstractmethod
    def round(self) -> int:
        """The number of the round; the first is 0."""

    @property
    @abstractmethod
    def worker(self) -> int:
        """The number of the worker; the first is 0."""

    @abstractmethod
    def report(self, name: str, value: float, kind: str = "sum") -> None:
        """Report a number, which is aggregated over all workers.

        Args:
            name: The name of the aggregate.
            value: The number.
            kind: `sum`, `min`, `max` or `count`.

        """


class ParameterFunction(Function, Generic[T, KEY, V, U]):
    """Learns parameters that all workers share.

    In every round, each worker computes updates from its records and the parameters that it sees. A parameter applies
    the updates of a round in the order of the workers. With a staleness of *s*, a worker sees the updates of the other
    workers at most *s* rounds late, and its own at once: they are applied to its copy of the parameters first.

    Example:
        >>> from millstream.datastream import StreamExecutionEnvironment
        >>> from millstream.iteration import iterate_parameters
        >>> class Mean(ParameterFunction):
        ...     def compute(self, records, parameters, context):
        ...         return {"mean": sum(record - parameters["mean"] for record in records)}
        ...     def apply(self, key, value, updates):
        ...         return value + 0.1 * sum(updates)
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> numbers, start = env.from_collection([1.0, 2.0, 6.0]), env.from_collection([("mean", 0.0)])
        >>> mean = iterate_parameters(numbers, start, Mean(), 50, staleness=2)

    """

    @abstractmethod
    def compute(self, records: Sequence[T], parameters: Mapping[KEY, V], context: WorkerContext) -> Mapping[KEY, U]:
        """Return the updates of one worker in one round, by the key of the parameter; an empty mapping if it has none.

        Args:
            records: The records of the worker, the same in every round.
            parameters: The parameters as the worker sees them. Do not change them.
            context: The number of the round and of the worker.

        """

    @abstractmethod
    def apply(self, key: KEY, value: V | None, updates: Sequence[U]) -> V:
        """Return the new value of a parameter.

        Args:
            key: The key of the parameter.
            value: The value before the round; None if the parameter is new.
            updates: The updates of one round, in the order of the workers; in the copy of a worker, its own one.

        """
