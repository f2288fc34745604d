"""The program an environment records while the API is called.

Promises: transformations are frozen; naming or scaling one replaces it in place, so streams refer to it by id.
Does not know: streams' types in the API."""

from __future__ import annotations

import dataclasses
from typing import Any

from millstream.graph.transformations import Input, Transformation
from millstream.model.types import TypeInformation, Types


class Program:
    """Transformations in the order they were made."""

    def __init__(self) -> None:
        self.transformations: dict[int, Transformation] = {}
        self._next = 1

    def add(
        self, name: str, spec: Any, output_type: TypeInformation, inputs: tuple[Input, ...] = (), **more: Any
    ) -> int:
        """Record a transformation; gives its id."""
        number = self._next
        self._next += 1
        self.transformations[number] = Transformation(number, name, spec, output_type, inputs, **more)
        return number

    def change(self, number: int, **fields: Any) -> None:
        """Replace fields of a transformation."""
        self.transformations[number] = dataclasses.replace(self.transformations[number], **fields)

    def type_of(self, given: Input) -> TypeInformation:
        """The type of what an input reads."""
        upstream = self.transformations[given.upstream]
        if given.tag is None:
            return upstream.output_type
        return upstream.side_types.get(given.tag, Types.PICKLED_BYTE_ARRAY())

    def declare_side(self, number: int, tag: str, kind: TypeInformation) -> None:
        """A side output is read: its records are wanted, with this type."""
        known = self.transformations[number].side_types
        self.change(number, side_types={**known, tag: kind})

    def clear(self) -> None:
        """Begin a new program; ids go on."""
        self.transformations.clear()
