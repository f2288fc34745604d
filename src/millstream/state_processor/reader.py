"""Flink's SavepointReader: state by descriptor, or through a function that sees one key after another.

Promises: a descriptor reads what it would read in a job, evolved types and time to live included.
Does not know: how tables are put together; `Savepoint` does."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

from millstream.functions import Function
from millstream.state.handles import Lineage
from millstream.state.store import ABSENT
from millstream.state.views import broadcast_view, operator_list_view
from millstream.state_descriptors.descriptors import ListStateDescriptor, MapStateDescriptor
from millstream.state_processor.harness import LoneOperator
from millstream.state_processor.identifier import OperatorIdentifier
from millstream.state_processor.snapshot import Savepoint, SavepointOperator
from millstream.types.factory import TypeInformation


class ReadContext:
    """The context of one call of a reader function."""

    def __init__(self, operator: LoneOperator) -> None:
        self._operator = operator

    def registered_event_time_timers(self) -> set[int]:
        """The event-time timers of the key."""
        return self._timers("timers/event")

    def registered_processing_time_timers(self) -> set[int]:
        """The processing-time timers of the key."""
        return self._timers("timers/processing")

    def _timers(self, name: str) -> set[int]:
        times = self._operator.state.tables[name].get(None, self._operator.context.scope.key)
        return set() if times is ABSENT else set(times)


class KeyedStateReaderFunction(Function):
    """Reads keyed state, key by key; declares its state in `open`, as a job's function does."""

    @abstractmethod
    def read_key(self, key: Any, ctx: ReadContext) -> Iterable[Any] | None:
        """What to give for a key; state is that of the key."""


class SavepointReader:
    """Reads a savepoint or checkpoint."""

    def __init__(self, savepoint: Savepoint) -> None:
        self._savepoint = savepoint

    @classmethod
    def read(cls, path: str, *, classes: Iterable[type] = ()) -> SavepointReader:
        """The reader of the snapshot at a path."""
        return cls(Savepoint(path, classes=classes))

    def read_list_state(self, operator: OperatorIdentifier | str, descriptor: ListStateDescriptor) -> list[Any]:
        """The elements of an operator's list state, of all subtasks."""
        return self._listed(operator, descriptor, union=False)

    def read_union_state(self, operator: OperatorIdentifier | str, descriptor: ListStateDescriptor) -> list[Any]:
        """The elements of an operator's union list state, of all subtasks."""
        return self._listed(operator, descriptor, union=True)

    def _listed(self, which: OperatorIdentifier | str, descriptor: ListStateDescriptor, *, union: bool) -> list[Any]:
        operator = self._savepoint.operator(which)
        lone = LoneOperator(operator.name, operator.snapshot.max_parallelism)
        view = operator_list_view(descriptor, lone.state, union=union)
        _load(lone, operator)
        return list(view.get())

    def read_broadcast_state(
        self, operator: OperatorIdentifier | str, descriptor: MapStateDescriptor
    ) -> dict[Any, Any]:
        """The map of a broadcast state."""
        found = self._savepoint.operator(operator)
        lone = LoneOperator(found.name, found.snapshot.max_parallelism)
        view = broadcast_view(descriptor, lone.state)
        _load(lone, found)
        return dict(view.items())

    def read_keyed_state(
        self,
        operator: OperatorIdentifier | str,
        function: KeyedStateReaderFunction,
        key_type: TypeInformation | None = None,
    ) -> Iterator[Any]:
        """What a function gives for every key that has any of the states it declares."""
        found = self._savepoint.operator(operator)
        lone = LoneOperator(found.name, found.snapshot.max_parallelism, key_type)
        function.open(lone.runtime(keyed=True))
        declared = [name for name in lone.state.tables if not name.startswith("timers/")]
        _load(lone, found)
        context = ReadContext(lone)
        keys = dict.fromkeys(key for name in declared for key, _ in list(lone.state.tables[name].scan(None)))
        for key in keys:
            lone.at(key)
            yield from function.read_key(key, context) or ()
        function.close()


def _load(lone: LoneOperator, operator: SavepointOperator) -> None:
    """Give a lone operator the state of all subtasks, as a restore at parallelism 1 would."""
    lineages = operator.snapshot.lineages
    chains = tuple((subtask, lineage.own) for subtask, lineage in enumerate(lineages) if lineage.own)
    lone.state.advance(Lineage(restored=chains), operator.read)
