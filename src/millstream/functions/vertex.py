"""Vertex programs, which compute the values of all vertices of a subtask in each round, on NumPy arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np


class VertexProgram(ABC):
    """A vertex-centric iteration (Pregel), vectorised: each method gets the vertices of one subtask as arrays.

    Subclasses are frozen dataclasses. A block has `ids`, `values`, `initial` (the values of the vertices in the graph),
    `degrees`, and the edges `sources` (indexes of vertices), `targets` (ids), `weights` and `forward` (false for the
    reverse of an edge). `notes` is a dictionary in which `update` can leave results for `message` and `aggregate` of
    the same round. The iteration ends when no vertex sends a message.

    Attributes:
        combiner: How messages to one vertex are combined: `sum`, `min` or `max`. With None all messages arrive.
        dtype: The NumPy type of values and messages: `float64` or `int64`.
        width: How many numbers a value and a message have; with more than one, both are arrays of two dimensions.
        fields: The names of the numbers in the result.
        undirected: Whether messages are sent along both directions of each edge.
        simple: Whether self loops are dropped, and all parallel edges but the one with the least weight.
        is_monotone: Whether the results do not depend on the order in which messages arrive: values only improve, until
            none can. Only such a program can run with bounded staleness.

    Example:
        >>> from millstream.gelly.algorithms import ConnectedComponents
        >>> issubclass(ConnectedComponents, VertexProgram), ConnectedComponents.combiner
        (True, 'min')

    """

    combiner: ClassVar[str | None] = "min"
    dtype: ClassVar[str] = "float64"
    width: ClassVar[int] = 1
    fields: ClassVar[tuple[str, ...]] = ("value",)
    undirected: ClassVar[bool] = False
    simple: ClassVar[bool] = False
    is_monotone: ClassVar[bool] = False

    @abstractmethod
    def start(self, block: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the initial values, and the indexes of the vertices that send messages first.

        Args:
            block: The vertices of the subtask; their values are not set yet.

        """

    @abstractmethod
    def update(
        self, block: Any, vertices: np.ndarray, messages: np.ndarray, aggregates: Mapping[str, float]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the indexes of the vertices whose values change, their values, and the indexes of those that send.

        Args:
            block: The vertices of the subtask.
            vertices: The indexes of vertices with messages, in ascending order; without a combiner, the index of the
                receiver of each message.
            messages: The combined message of each; without a combiner, all messages.
            aggregates: The aggregates of the round before.

        """

    @abstractmethod
    def message(self, block: Any, edges: np.ndarray) -> np.ndarray:
        """Return the message along each of some edges, which are given by their indexes.

        Args:
            block: The vertices of a subtask, with their values and edges.
            edges: The indexes of the edges.

        """

    def select(self, block: Any, edges: np.ndarray) -> np.ndarray:
        """Return those of the edges of the senders along which messages are sent; by default all.

        Args:
            block: The vertices of the subtask.
            edges: The indexes of the edges of all vertices that send.

        """
        return edges

    def continues(self, block: Any) -> bool:
        """Return whether there is another round although no vertex of this block sends; called after `update`.

        Args:
            block: The vertices of the subtask.

        """
        return False

    def aggregate(self, block: Any) -> Mapping[str, tuple[str, float]]:
        """Return partial aggregates (`sum`, `min`, `max` or `count`) of the vertices after the round, by name.

        Args:
            block: The vertices of a subtask, with their values.

        """
        return {}

    def finish(self, block: Any, aggregates: Mapping[str, float]) -> np.ndarray:
        """Return the results of the vertices; by default their values.

        Args:
            block: The vertices of a subtask, with their values.
            aggregates: The aggregates of the last round, by name.

        """
        return block.values  # type: ignore[no-any-return]
