"""Transformations, first of the four graphs: what the calls of the API recorded.

Promises: a transformation is a frozen value that names its inputs by id; changing a name or a parallelism creates a new
one.
Does not know: chains, subtasks, epochs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from millstream.connector.sink import Sink
from millstream.connector.source import Source
from millstream.job.traits import OperatorTraits
from millstream.runtime.operator import OperatorSpec
from millstream.runtime.partitioners import Partitioner
from millstream.types.factory import TypeInformation

DEFAULT_SLOT_GROUP = "default"


class Chaining(Enum):
    """How an operator may be chained to its input."""

    ALWAYS = "always"
    HEAD = "head"  # begins a chain, others may follow
    NEVER = "never"  # alone


@dataclass(frozen=True)
class Input:
    """An input of a transformation: the upstream transformation, one of its outputs, and the partitioner.

    `partitioner` is None if the program does not set one: forward if the parallelisms are equal, else rebalance."""

    upstream: int
    side: int = 0
    tag: str | None = None
    partitioner: Partitioner | None = None


@dataclass(frozen=True)
class Transformation:
    """One step of a program. With `follows_input` and no parallelism of its own, it has that of its input.

    `environment_parallelism` is that of the environment when the step was added."""

    id: int
    name: str
    spec: OperatorSpec
    output_type: TypeInformation
    inputs: tuple[Input, ...] = ()
    source: Source | None = None
    sink: Sink | None = None
    key_type: TypeInformation | None = None
    side_types: Mapping[str, TypeInformation] = field(default_factory=dict)
    parallelism: int | None = None
    max_parallelism: int | None = None
    uid: str | None = None
    uid_hash: str | None = None
    chaining: Chaining = Chaining.ALWAYS
    slot_group: str | None = None
    description: str | None = None
    follows_input: bool = False
    traits: OperatorTraits | None = None
    environment_parallelism: int | None = None
