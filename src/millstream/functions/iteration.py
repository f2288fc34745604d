"""Functions that take part in an iteration: they are notified when a round ends, and when the iteration ends.

Promises: Flink ML's interface. A listener is called after all records of the round have been processed.
Does not know: who counts the rounds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any


class IterationContext(ABC):
    """What a listener knows about the iteration.

    Example:
        >>> from millstream.iteration import IterationListener
        >>> class Loss(IterationListener):
        ...     def on_epoch_watermark_incremented(self, epoch_watermark, context):
        ...         yield epoch_watermark, context.get_aggregate("loss")

    """

    @abstractmethod
    def get_aggregate(self, name: str) -> float | None:
        """Return an aggregate of the round before this one, None if there is none.

        Args:
            name: The name of the aggregate.

        """

    @abstractmethod
    def get_aggregates(self) -> Mapping[str, float]:
        """Return all aggregates of the round before this one, by name."""


class IterationListener:
    """Base of functions in the body of an iteration that act when a round ends.

    A function of any type (map, process, keyed process, ...) can also be a listener. Both methods return records, which
    are emitted as those of `process_element` are; to return none, return None. There is no current key.

    Example:
        >>> from millstream.datastream import ProcessFunction
        >>> class Sum(ProcessFunction, IterationListener):
        ...     def __init__(self):
        ...         self.total = 0
        ...     def process_element(self, value, ctx):
        ...         self.total += value
        ...     def on_epoch_watermark_incremented(self, epoch_watermark, context):
        ...         yield self.total

    """

    def on_epoch_watermark_incremented(self, epoch_watermark: int, context: IterationContext) -> Iterable[Any] | None:
        """Process the end of a round of a bounded iteration.

        Args:
            epoch_watermark: The number of the round; the first is 0.
            context: The aggregates of the iteration.

        """

    def on_iteration_terminated(self, context: IterationContext) -> Iterable[Any] | None:
        """Process the end of the iteration.

        Args:
            context: The aggregates of the iteration.

        """
