"""The program an environment records while the API is called.

Promises: transformations are frozen; naming or scaling one replaces it in place, so streams refer to it by id. A stream
of a program that was run can be used in the next one: what it is made of becomes part of that, too.
Does not know: streams' types in the API."""

from __future__ import annotations

import dataclasses
from typing import Any

from millstream.errors import UserError
from millstream.graph.transformations import Input, Transformation
from millstream.types.factory import TypeInformation, Types


class StreamOfClosedEnvironment(UserError):
    """A stream was used whose environment has been closed."""

    def __init__(self) -> None:
        super().__init__(
            "the environment of this stream has been closed", hint="make the stream again, or close it later"
        )


class Program:
    """Transformations, each after those it reads."""

    def __init__(self) -> None:
        self.transformations: dict[int, Transformation] = {}
        self._earlier: dict[int, Transformation] = {}
        self._next = 1

    def add(
        self, name: str, spec: Any, output_type: TypeInformation, inputs: tuple[Input, ...] = (), **more: Any
    ) -> int:
        """Record a transformation; gives its id."""
        for given in inputs:
            self._use(given.upstream)
        number = self._next
        self._next += 1
        self.transformations[number] = Transformation(number, name, spec, output_type, inputs, **more)
        return number

    def change(self, number: int, **fields: Any) -> None:
        """Replace fields of a transformation."""
        place = self.transformations if number in self.transformations else self._earlier
        place[number] = dataclasses.replace(self.get(number), **fields)

    def get(self, number: int) -> Transformation:
        """A transformation of this program or an earlier one."""
        found = self.transformations.get(number) or self._earlier.get(number)
        if found is None:
            raise StreamOfClosedEnvironment
        return found

    def _use(self, number: int) -> None:
        """Take a transformation of an earlier program into this one, with those it reads."""
        if number not in self.transformations:
            again = self.get(number)
            for given in again.inputs:
                self._use(given.upstream)
            self.transformations[number] = again

    def type_of(self, given: Input) -> TypeInformation:
        """The type of what an input reads."""
        upstream = self.get(given.upstream)
        if given.tag is None:
            return upstream.output_type
        return upstream.side_types.get(given.tag, Types.PICKLED_BYTE_ARRAY())

    def declare_side(self, number: int, tag: str, kind: TypeInformation) -> None:
        """A side output is read: its records are wanted, with this type."""
        known = self.get(number).side_types
        self.change(number, side_types={**known, tag: kind})

    def clear(self) -> None:
        """Begin a new program; ids go on."""
        self._earlier.update(self.transformations)
        self.transformations.clear()

    def forget(self) -> None:
        """Begin a new program that uses no stream of the earlier ones."""
        self._earlier.clear()
        self.transformations.clear()
