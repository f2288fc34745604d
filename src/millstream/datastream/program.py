"""The program of an environment: the transformations that calls of the API record.

Promises: transformations are frozen; a setting such as a name replaces the transformation, so streams refer to it by
id. A stream of an executed program can be used in the next one, which then contains the transformations it depends on.
Does not know: the classes of streams in the API."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

from millstream.client import unexecuted
from millstream.errors import UserError
from millstream.graph.transformations import Input, Transformation
from millstream.types.factory import TypeInformation, Types


class StreamOfClosedEnvironment(UserError):
    """A stream was used after its environment was closed."""

    def __init__(self) -> None:
        super().__init__(
            "the environment of this stream has been closed",
            hint="create the stream again, or close the environment later",
        )


class Program:
    """Transformations, each after its inputs. `parallelism` returns the current one of the environment."""

    def __init__(self, parallelism: Callable[[], int]) -> None:
        self._parallelism = parallelism
        self.transformations: dict[int, Transformation] = {}
        self._earlier: dict[int, Transformation] = {}
        self._companions: dict[int, list[int]] = {}
        self._next = 1
        self._number = unexecuted.next_program_number()

    def add(
        self, name: str, spec: Any, output_type: TypeInformation, inputs: tuple[Input, ...] = (), **more: Any
    ) -> int:
        """Record a transformation and return its id."""
        for edge in inputs:
            self._use(edge.upstream)
        transformation_id = self._next
        self._next += 1
        more.update(environment_parallelism=self._parallelism())
        self.transformations[transformation_id] = Transformation(
            transformation_id, name, spec, output_type, inputs, **more
        )
        return transformation_id

    @property
    def last_id(self) -> int:
        """The id of the last transformation."""
        return self._next - 1

    def note_sink(self) -> None:
        """Note that the program has a sink, so that it must be executed."""
        unexecuted.note_sink(self._number)

    def change(self, transformation_id: int, **fields: Any) -> None:
        """Replace fields of a transformation."""
        transformations = self.transformations if transformation_id in self.transformations else self._earlier
        transformations[transformation_id] = dataclasses.replace(self.get(transformation_id), **fields)

    def latest(self, transformation_id: int) -> Transformation | None:
        """Return a transformation of this program or an earlier one, None if it was forgotten."""
        return self.transformations.get(transformation_id) or self._earlier.get(transformation_id)

    def get(self, transformation_id: int) -> Transformation:
        """Return a transformation of this program or an earlier one."""
        transformation = self.latest(transformation_id)
        if transformation is None:
            raise StreamOfClosedEnvironment
        return transformation

    def _use(self, transformation_id: int) -> None:
        """Add a transformation of an earlier program to this one, with those it depends on."""
        if transformation_id not in self.transformations:
            for number, transformation in self.required([transformation_id]).items():
                self.transformations.setdefault(number, transformation)

    def required(self, transformation_ids: Iterable[int]) -> dict[int, Transformation]:
        """Return transformations and those they depend on, by id, each after its inputs."""
        reached: dict[int, Transformation] = {}
        pending = list(transformation_ids)
        while pending:
            number = pending.pop()
            if number not in reached:
                reached[number] = self.get(number)
                pending += [edge.upstream for edge in reached[number].inputs]
                pending += self._companions.get(number, ())
        return dict(sorted(reached.items()))

    def keep_together(self, transformation_ids: list[int]) -> None:
        """Let a later program that uses one of some transformations contain all of them. The list may grow."""
        self._companions.update(dict.fromkeys(transformation_ids, transformation_ids))

    def all_transformations(self) -> list[Transformation]:
        """Return the transformations of this program and of earlier ones."""
        return [*self._earlier.values(), *self.transformations.values()]

    def type_of(self, edge: Input) -> TypeInformation:
        """Return the type of the records of an input."""
        upstream = self.get(edge.upstream)
        if edge.tag is None:
            return upstream.output_type
        return upstream.side_types.get(edge.tag, Types.PICKLED_BYTE_ARRAY())

    def declare_side(self, transformation_id: int, tag: str, side_type: TypeInformation) -> None:
        """Declare that a side output is read, and the type of its records."""
        side_types = self.get(transformation_id).side_types
        self.change(transformation_id, side_types={**side_types, tag: side_type})

    def clear(self) -> None:
        """Start a new program; ids continue."""
        unexecuted.note_execution(self._number)
        self._earlier.update(self.transformations)
        self.transformations.clear()

    def forget(self) -> None:
        """Start a new program that cannot use streams of earlier ones."""
        unexecuted.note_execution(self._number)
        self._earlier.clear()
        self.transformations.clear()
