"""Partition functions, which get all records of a subtask as arrays when the input has ended."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

Columns = Mapping[str, Any]
"""NumPy arrays of equal length, by the names of the fields; a column that is not numeric is an Arrow array."""


class PartitionFunction(ABC):
    """Computes the records of one subtask from all input records that have its keys.

    Subclasses are frozen dataclasses. Records of one key are in one subtask, but their order is not defined: the result
    must not depend on it.

    """

    @abstractmethod
    def process(self, *inputs: Columns) -> Iterable[Columns]:
        """Yield batches of records, each as columns by the names of the fields of the output.

        Args:
            inputs: The records of each input, by column.

        """
