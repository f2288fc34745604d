"""Functions with operator state: it is written at the end of an epoch, and read when a subtask starts again.

Promises: Flink's interface. `snapshot_state` is called at the end of every epoch, whether or not a checkpoint follows;
a function that starts again is initialized from what it wrote then.
Does not know: how state is stored or redistributed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from millstream.functions.base import KeyedStateStore

if TYPE_CHECKING:  # state descriptors hold functions, so only one of the two may import the other at run time
    from millstream.state_descriptors.descriptors import (
        BroadcastState,
        ListState,
        ListStateDescriptor,
        MapStateDescriptor,
    )


class OperatorStateStore(ABC):
    """Access to operator state: state of the subtask, not of a key.

    Example:
        >>> from millstream.common import Types
        >>> from millstream.datastream.state import ListStateDescriptor
        >>> class WithOffsets(CheckpointedFunction):
        ...     def initialize_state(self, context):
        ...         store = context.get_operator_state_store()
        ...         self.offsets = store.get_list_state(ListStateDescriptor("offsets", Types.LONG()))
        ...     def snapshot_state(self, context):
        ...         pass

    """

    @abstractmethod
    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """Return a list state whose elements are redistributed evenly when the parallelism changes.

        Args:
            state_descriptor: The name and the type of the elements.

        """

    @abstractmethod
    def get_union_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """Return a list state; after a restore every subtask has the elements of all subtasks.

        Args:
            state_descriptor: The name and the type of the elements.

        """

    @abstractmethod
    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        """Return a broadcast state; every subtask must make the same changes to it.

        Args:
            state_descriptor: The name and the types of keys and values.

        """

    @abstractmethod
    def get_registered_state_names(self) -> set[str]:
        """Return the names of the list states."""

    @abstractmethod
    def get_registered_broadcast_state_names(self) -> set[str]:
        """Return the names of the broadcast states."""


class FunctionInitializationContext(ABC):
    """The context of `initialize_state`.

    Example:
        >>> class Restorable(CheckpointedFunction):
        ...     def initialize_state(self, context):
        ...         self.is_new = not context.is_restored()
        ...     def snapshot_state(self, context):
        ...         pass

    """

    @abstractmethod
    def is_restored(self) -> bool:
        """Return whether there may be state of earlier epochs: False only before the first epoch of a job."""

    @abstractmethod
    def get_restored_checkpoint_id(self) -> int | None:
        """Return the number of the epoch that wrote the state; None before the first one."""

    @abstractmethod
    def get_operator_state_store(self) -> OperatorStateStore:
        """Return the store of operator state."""

    @abstractmethod
    def get_keyed_state_store(self) -> KeyedStateStore:
        """Return the store of keyed state; states can be created here and used while records are processed."""


class FunctionSnapshotContext(ABC):
    """The context of `snapshot_state`.

    Example:
        >>> class Numbered(CheckpointedFunction):
        ...     def initialize_state(self, context):
        ...         self.last_epoch = 0
        ...     def snapshot_state(self, context):
        ...         self.last_epoch = context.get_checkpoint_id()

    """

    @abstractmethod
    def get_checkpoint_id(self) -> int:
        """Return the number of the epoch that ends."""

    @abstractmethod
    def get_checkpoint_timestamp(self) -> int:
        """Return the processing time of the epoch."""


class CheckpointedFunction(ABC):
    """A mixin for functions that keep operator state, which is written at the end of every epoch.

    A subtask may move to another process between epochs, and a failed attempt is discarded. Then the function is
    created again as the program built it, and `initialize_state` and `open` are called, in this order.

    Example:
        >>> from millstream.common import Types
        >>> from millstream.datastream import MapFunction
        >>> from millstream.datastream.state import ListStateDescriptor
        >>> from millstream.testing import harness_for
        >>> class Numbering(MapFunction, CheckpointedFunction):
        ...     def initialize_state(self, context):
        ...         store = context.get_operator_state_store()
        ...         self.state = store.get_list_state(ListStateDescriptor("count", Types.LONG()))
        ...         self.count = sum(self.state.get())
        ...     def snapshot_state(self, context):
        ...         self.state.update([self.count])
        ...     def map(self, value):
        ...         self.count += 1
        ...         return self.count, value
        >>> with harness_for(Numbering()) as harness:
        ...     harness.process_all(["a", "b"])
        ...     harness.values()
        [(1, 'a'), (2, 'b')]

    """

    @abstractmethod
    def initialize_state(self, context: FunctionInitializationContext) -> None:
        """Create states, and read their content. Called before `open`.

        Args:
            context: Access to operator state and keyed state.

        """

    @abstractmethod
    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        """Write to state what must not be lost. Called at the end of every epoch.

        Args:
            context: The number of the epoch that ends, and its processing time.

        """
