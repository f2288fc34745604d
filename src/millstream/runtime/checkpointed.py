"""Calls functions that keep operator state: `initialize_state` when they start, `snapshot_state` every epoch.

Promises: a function is initialised from the state before the epoch, before it sees a record.
Does not know: what the functions do, or when a task creates its functions again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from millstream.functions import Function, KeyedStateStore
from millstream.functions.checkpointed import (
    CheckpointedFunction,
    FunctionInitializationContext,
    FunctionSnapshotContext,
    OperatorStateStore,
)
from millstream.runtime import rowwise
from millstream.runtime.context import StateNameTaken, StreamingRuntimeContext
from millstream.runtime.operator import OperatorContext
from millstream.state.views import create_broadcast_view, create_operator_list_view
from millstream.state_descriptors.descriptors import (
    BroadcastState,
    ListState,
    ListStateDescriptor,
    MapStateDescriptor,
    StateDescriptor,
)


class OperatorStates(OperatorStateStore):
    """Views on the operator state of one subtask."""

    def __init__(self, context: OperatorContext) -> None:
        self._context = context
        self._known: dict[str, tuple[str, StateDescriptor]] = {}

    def _declare(self, kind: str, descriptor: StateDescriptor) -> None:
        found = self._known.setdefault(descriptor.name, (kind, descriptor))
        if found[0] != kind or found[1].type_info != descriptor.type_info:
            first, second = f"{found[0]} {found[1]}", f"{kind} {descriptor}"
            raise StateNameTaken(self._context.name, descriptor.name, first, second)

    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """A list whose elements are dealt out evenly when the parallelism changes."""
        self._declare("list", state_descriptor)
        return create_operator_list_view(state_descriptor, self._context.state, union=False)

    def get_union_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """A list; after a restore every subtask has the elements of all."""
        self._declare("union list", state_descriptor)
        self._context.memory.has_union_state = True
        return create_operator_list_view(state_descriptor, self._context.state, union=True)

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        """A map that every subtask must fill alike."""
        self._declare("broadcast", state_descriptor)
        return create_broadcast_view(state_descriptor, self._context.state)

    def get_registered_state_names(self) -> set[str]:
        """The names of the lists asked for."""
        return {name for name, (kind, _) in self._known.items() if kind != "broadcast"}

    def get_registered_broadcast_state_names(self) -> set[str]:
        """The names of the broadcast states asked for."""
        return {name for name, (kind, _) in self._known.items() if kind == "broadcast"}


class InitializationContext(FunctionInitializationContext):
    """The context of `initialize_state`."""

    def __init__(self, context: OperatorContext, keyed: KeyedStateStore) -> None:
        self._context, self._keyed = context, keyed
        self._states = OperatorStates(context)

    def is_restored(self) -> bool:
        """Whether there was an epoch before."""
        return self._context.epoch > 1

    def get_restored_checkpoint_id(self) -> int | None:
        """The epoch before."""
        return self._context.epoch - 1 if self.is_restored() else None

    def get_operator_state_store(self) -> OperatorStateStore:
        """State of the subtask."""
        return self._states

    def get_keyed_state_store(self) -> KeyedStateStore:
        """State of keys."""
        return self._keyed


class SnapshotContext(FunctionSnapshotContext):
    """The context of `snapshot_state`."""

    def __init__(self, context: OperatorContext) -> None:
        self._context = context

    def get_checkpoint_id(self) -> int:
        """The epoch that ends."""
        return self._context.epoch

    def get_checkpoint_timestamp(self) -> int:
        """The processing time of the epoch."""
        return self._context.now


class Functions:
    """The functions of one operator: opens them, those that keep operator state once that state is there."""

    def __init__(self, context: OperatorContext, functions: Sequence[Any], *, keyed: bool) -> None:
        self._context, self._keyed = context, keyed
        self._functions = [function for function in functions if isinstance(function, Function | CheckpointedFunction)]
        self._checkpointed = any(isinstance(function, CheckpointedFunction) for function in self._functions)
        self._opened = False

    def open(self) -> None:
        """Open them, unless they are to be initialised first."""
        if not self._checkpointed:
            self._open()

    def _open(self) -> None:
        for function in self._functions:
            runtime = StreamingRuntimeContext(self._context, keyed=self._keyed)
            if isinstance(function, CheckpointedFunction):
                started = InitializationContext(self._context, runtime)
                rowwise.guarded(self._context, function.initialize_state, started)
            if isinstance(function, Function):
                rowwise.guarded(self._context, function.open, runtime)
        self._opened = True

    def initialize(self) -> None:
        """State is at the version before the epoch: functions that keep operator state can be opened."""
        if self._checkpointed and not self._opened:
            self._open()

    def snapshot(self) -> None:
        """The epoch ends: functions put into state what they need to go on."""
        for function in self._functions:
            if isinstance(function, CheckpointedFunction):
                rowwise.guarded(self._context, function.snapshot_state, SnapshotContext(self._context))

    def close(self) -> None:
        """Close them."""
        self._opened = False
        for function in self._functions:
            if isinstance(function, Function):
                rowwise.guarded(self._context, function.close)
