"""The function of a delta iteration."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, Generic, TypeVar

from millstream.functions.base import Function

KEY = TypeVar("KEY")
S = TypeVar("S")
W = TypeVar("W")


class DeltaFunction(Function, Generic[KEY, S, W]):
    """Updates the elements of a solution set whose keys are in the workset of a round.

    Example:
        >>> class Least(DeltaFunction):
        ...     def update(self, key, solution, workset):
        ...         least = min(value for _, value in workset)
        ...         return (key, least) if solution is None or least < solution[1] else None

    """

    @abstractmethod
    def update(self, key: KEY, solution: S | None, workset: list[W]) -> S | None:
        """Return the new element of the solution set; None if it does not change.

        Args:
            key: The key of the element and of the records.
            solution: The element before the round; None if there is none.
            workset: The records of the round with this key; the order does not depend on anything but the input.

        """

    def expand(self, key: KEY, solution: S) -> Iterable[Any] | None:
        """Return the records that follow from a changed element: they become the next workset, or the input of the body
        that computes it. By default this is the element.

        Args:
            key: The key of the element.
            solution: The element after the change.

        """
        return (solution,)
