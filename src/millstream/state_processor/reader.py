"""Flink's SavepointReader: reads state by descriptor, or with a function that is called for each key.

Promises: a descriptor reads what it would read in a job, including schema evolution and time to live.
Does not know: how state tables are read; `Savepoint` does."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

from millstream.functions import Function
from millstream.state.handles import Lineage
from millstream.state.store import ABSENT
from millstream.state.views import create_broadcast_view, create_operator_list_view
from millstream.state_descriptors.descriptors import ListStateDescriptor, MapStateDescriptor
from millstream.state_processor.harness import SingleOperator
from millstream.state_processor.identifier import OperatorIdentifier
from millstream.state_processor.snapshot import Savepoint, SavepointOperator
from millstream.types.factory import TypeInformation


class ReadContext:
    """The context of a reader function, which gives access to the timers of the current key."""

    def __init__(self, operator: SingleOperator) -> None:
        self._operator = operator

    def registered_event_time_timers(self) -> set[int]:
        """Return the event-time timers of the current key.

        Returns:
            The timestamps of the timers in milliseconds.

        """
        return self._timers("timers/event")

    def registered_processing_time_timers(self) -> set[int]:
        """Return the processing-time timers of the current key.

        Returns:
            The timestamps of the timers in milliseconds.

        """
        return self._timers("timers/processing")

    def _timers(self, name: str) -> set[int]:
        times = self._operator.state.tables[name].get(None, self._operator.context.scope.key)
        return set() if times is ABSENT else set(times)


class KeyedStateReaderFunction(Function):
    """Reads keyed state, one key after another. State is declared in `open`, as in a function of a job.

    Example:
        >>> from millstream.datastream.state import ValueStateDescriptor
        >>> class ReadCount(KeyedStateReaderFunction):
        ...     def open(self, runtime_context):
        ...         self.count = runtime_context.get_state(ValueStateDescriptor("count", int))
        ...     def read_key(self, key, ctx):
        ...         yield key, self.count.value()

    """

    @abstractmethod
    def read_key(self, key: Any, ctx: ReadContext) -> Iterable[Any] | None:
        """Read the state of a key.

        Args:
            key: The key. The states that `open` declared are those of this key.
            ctx: Gives access to the timers of the key.

        Returns:
            The results for this key, or None; a generator function is usual.

        """


class SavepointReader:
    """Reads the state of a savepoint or checkpoint by state descriptors.

    `Savepoint` reads state without descriptors, as tables.

    Example:
        >>> import tempfile
        >>> from millstream.datastream.state import ValueStateDescriptor
        >>> from millstream.state_processor import SavepointWriter
        >>> count = ValueStateDescriptor("count", int)
        >>> writer = SavepointWriter.new_savepoint().with_state("counts", count, {"ann": 3})
        >>> path = writer.write(f"{tempfile.mkdtemp()}/savepoint")
        >>> class ReadCount(KeyedStateReaderFunction):
        ...     def open(self, runtime_context):
        ...         self.count = runtime_context.get_state(count)
        ...     def read_key(self, key, ctx):
        ...         yield key, self.count.value()
        >>> list(SavepointReader.read(path).read_keyed_state("counts", ReadCount()))
        [('ann', 3)]

    """

    def __init__(self, savepoint: Savepoint) -> None:
        self._savepoint = savepoint

    @classmethod
    def read(cls, path: str, *, classes: Iterable[type] = ()) -> SavepointReader:
        """Open a savepoint or checkpoint.

        Args:
            path: The directory of a savepoint, or a chk-N directory of a job.
            classes: Classes whose instances untyped state may hold; objects of other classes are not read.

        Returns:
            The reader.

        Raises:
            NoSuchCheckpoint: If the path is neither a savepoint nor a checkpoint.

        """
        return cls(Savepoint(path, classes=classes))

    def read_list_state(self, operator: OperatorIdentifier | str, descriptor: ListStateDescriptor) -> list[Any]:
        """Read the list state of an operator.

        Args:
            operator: The identifier or uid of the operator.
            descriptor: The descriptor of the list state.

        Returns:
            The elements of all subtasks.

        Raises:
            NoSuchOperator: If the savepoint does not have the operator.

        """
        return self._read_list(operator, descriptor, union=False)

    def read_union_state(self, operator: OperatorIdentifier | str, descriptor: ListStateDescriptor) -> list[Any]:
        """Read the union list state of an operator.

        Args:
            operator: The identifier or uid of the operator.
            descriptor: The descriptor of the list state.

        Returns:
            The elements of all subtasks.

        Raises:
            NoSuchOperator: If the savepoint does not have the operator.

        """
        return self._read_list(operator, descriptor, union=True)

    def _read_list(
        self, identifier: OperatorIdentifier | str, descriptor: ListStateDescriptor, *, union: bool
    ) -> list[Any]:
        source = self._savepoint.operator(identifier)
        operator = SingleOperator(source.name, source.snapshot.max_parallelism)
        view = create_operator_list_view(descriptor, operator.state, union=union)
        _load(operator, source)
        return list(view.get())

    def read_broadcast_state(
        self, operator: OperatorIdentifier | str, descriptor: MapStateDescriptor
    ) -> dict[Any, Any]:
        """Read a broadcast state of an operator.

        Args:
            operator: The identifier or uid of the operator.
            descriptor: The descriptor of the broadcast state.

        Returns:
            The entries of the broadcast state.

        Raises:
            NoSuchOperator: If the savepoint does not have the operator.

        """
        source = self._savepoint.operator(operator)
        single = SingleOperator(source.name, source.snapshot.max_parallelism)
        view = create_broadcast_view(descriptor, single.state)
        _load(single, source)
        return dict(view.items())

    def read_keyed_state(
        self,
        operator: OperatorIdentifier | str,
        function: KeyedStateReaderFunction,
        key_type: TypeInformation | None = None,
    ) -> Iterator[Any]:
        """Call a function for every key that has one of the states that the function declares.

        Args:
            operator: The identifier or uid of the operator.
            function: The function that reads the state of a key.
            key_type: The type of the key in the job, if it was declared there.

        Returns:
            An iterator over the results of the function.

        Raises:
            NoSuchOperator: If the savepoint does not have the operator.

        """
        source = self._savepoint.operator(operator)
        single = SingleOperator(source.name, source.snapshot.max_parallelism, key_type)
        function.open(single.runtime_context(keyed=True))
        tables = [table for name, table in single.state.tables.items() if not name.startswith("timers/")]
        _load(single, source)
        context = ReadContext(single)
        keys = dict.fromkeys(key for table in tables for key, _ in list(table.scan(None)))
        for key in keys:
            single.set_current_key(key)
            yield from function.read_key(key, context) or ()
        function.close()


def _load(operator: SingleOperator, source: SavepointOperator) -> None:
    """Restore the state of all subtasks at parallelism 1."""
    lineages = source.snapshot.lineages
    chains = tuple((subtask, lineage.own) for subtask, lineage in enumerate(lineages) if lineage.own)
    operator.state.advance(Lineage(restored=chains), source.read)
