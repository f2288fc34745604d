"""PyFlink's `datastream.utils`: the interface of connectors that know the type of their records.

Promises: a method that returns the type.
Does not know: who uses the type."""

from __future__ import annotations

from abc import ABC, abstractmethod

from millstream.types.factory import TypeInformation

__all__ = ["ResultTypeQueryable"]


class ResultTypeQueryable(ABC):
    """A connector that knows the type of the records it produces.

    Example:
        >>> from millstream.common import Types
        >>> from millstream.datastream import MapFunction
        >>> class Length(MapFunction, ResultTypeQueryable):
        ...     def map(self, value):
        ...         return len(value)
        ...     def get_produced_type(self):
        ...         return Types.LONG()
        >>> Length().get_produced_type()
        Long

    """

    @abstractmethod
    def get_produced_type(self) -> TypeInformation:
        """Return the type of the records."""
