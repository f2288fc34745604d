"""Functions that keep state of their subtask: filled when an epoch ends, read when a subtask starts anew.

Promises: Flink's interface. Epochs are the snapshot points: `snapshot_state` is called at the end of every epoch,
whether or not a checkpoint follows, so whatever a function has put into state by then is what it starts from again.
Does not know: how state is stored or dealt out."""

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
    """Hands out state of the subtask, not of a key."""

    @abstractmethod
    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """A list whose elements are dealt out evenly when the parallelism changes."""

    @abstractmethod
    def get_union_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """A list; after a restore every subtask has the elements of all."""

    @abstractmethod
    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        """A map that every subtask must fill alike."""

    @abstractmethod
    def get_registered_state_names(self) -> set[str]:
        """The names of the lists asked for."""

    @abstractmethod
    def get_registered_broadcast_state_names(self) -> set[str]:
        """The names of the broadcast states asked for."""


class FunctionInitializationContext(ABC):
    """What a function may ask while it is initialised."""

    @abstractmethod
    def is_restored(self) -> bool:
        """Whether earlier epochs may have left state: False only before the first epoch of a job."""

    @abstractmethod
    def get_restored_checkpoint_id(self) -> int | None:
        """The number of the epoch whose state this is; None before the first one."""

    @abstractmethod
    def get_operator_state_store(self) -> OperatorStateStore:
        """State of the subtask."""

    @abstractmethod
    def get_keyed_state_store(self) -> KeyedStateStore:
        """State of keys; may be asked for here and used while records are processed."""


class FunctionSnapshotContext(ABC):
    """What a function may ask at the end of an epoch."""

    @abstractmethod
    def get_checkpoint_id(self) -> int:
        """The number of the epoch that ends."""

    @abstractmethod
    def get_checkpoint_timestamp(self) -> int:
        """The processing time of the epoch."""


class CheckpointedFunction(ABC):
    """A mixin for functions whose fields matter: they are written to state at the end of every epoch.

    A subtask may move to another process between epochs, and a failed try is thrown away: then the function is made
    again as the program built it, `initialize_state` and `open` are called, in this order, and it goes on."""

    @abstractmethod
    def initialize_state(self, context: FunctionInitializationContext) -> None:
        """Take state handles, and what they hold. Called before `open`."""

    @abstractmethod
    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        """Put what must not be lost into state. Called at the end of every epoch."""
