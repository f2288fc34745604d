"""PyFlink's `datastream.utils`: what a connector object can say about itself.

Promises: a connector that knows the type of its records says so.
Does not know: who asks."""

from __future__ import annotations

from abc import ABC, abstractmethod

from millstream.types.factory import TypeInformation

__all__ = ["ResultTypeQueryable"]


class ResultTypeQueryable(ABC):
    """Knows the type of the records it produces."""

    @abstractmethod
    def get_produced_type(self) -> TypeInformation:
        """The type of the records."""
