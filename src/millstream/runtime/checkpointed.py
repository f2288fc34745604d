"""Calls functions that keep operator state: `initialize_state` when they start, `snapshot_state` in every epoch.

Promises: a function is initialized from the state before the epoch, before it processes a record.
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
        self._registered: dict[str, tuple[str, StateDescriptor]] = {}

    def _declare(self, state_type: str, descriptor: StateDescriptor) -> None:
        registered = self._registered.setdefault(descriptor.name, (state_type, descriptor))
        if registered[0] != state_type or registered[1].type_info != descriptor.type_info:
            first, second = f"{registered[0]} {registered[1]}", f"{state_type} {descriptor}"
            raise StateNameTaken(self._context.name, descriptor.name, first, second)

    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """Return a list state whose elements are redistributed evenly when the parallelism changes."""
        self._declare("list", state_descriptor)
        return create_operator_list_view(state_descriptor, self._context.state, union=False)

    def get_union_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """Return a list state; after a restore every subtask has the elements of all."""
        self._declare("union list", state_descriptor)
        self._context.memory.has_union_state = True
        return create_operator_list_view(state_descriptor, self._context.state, union=True)

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        """Return a broadcast state; every subtask must make the same changes to it."""
        self._declare("broadcast", state_descriptor)
        return create_broadcast_view(state_descriptor, self._context.state)

    def get_registered_state_names(self) -> set[str]:
        """Return the names of the list states."""
        return {name for name, (state_type, _) in self._registered.items() if state_type != "broadcast"}

    def get_registered_broadcast_state_names(self) -> set[str]:
        """Return the names of the broadcast states."""
        return {name for name, (state_type, _) in self._registered.items() if state_type == "broadcast"}


class InitializationContext(FunctionInitializationContext):
    """The context of `initialize_state`."""

    def __init__(self, context: OperatorContext, keyed: KeyedStateStore) -> None:
        self._context, self._keyed = context, keyed
        self._states = OperatorStates(context)

    def is_restored(self) -> bool:
        """Whether there was an epoch before."""
        return self._context.epoch > 1

    def get_restored_checkpoint_id(self) -> int | None:
        """Return the number of the epoch before."""
        return self._context.epoch - 1 if self.is_restored() else None

    def get_operator_state_store(self) -> OperatorStateStore:
        """Return the store of operator state."""
        return self._states

    def get_keyed_state_store(self) -> KeyedStateStore:
        """Return the store of keyed state."""
        return self._keyed


class SnapshotContext(FunctionSnapshotContext):
    """The context of `snapshot_state`."""

    def __init__(self, context: OperatorContext) -> None:
        self._context = context

    def get_checkpoint_id(self) -> int:
        """Return the number of the epoch."""
        return self._context.epoch

    def get_checkpoint_timestamp(self) -> int:
        """Return the processing time of the epoch."""
        return self._context.now


class Functions:
    """The functions of one operator. Functions that keep operator state are opened after it is restored."""

    def __init__(self, context: OperatorContext, functions: Sequence[Any], *, keyed: bool) -> None:
        self._context, self._keyed = context, keyed
        self._functions = [function for function in functions if isinstance(function, Function | CheckpointedFunction)]
        self._checkpointed = any(isinstance(function, CheckpointedFunction) for function in self._functions)
        self._opened = False

    def open(self) -> None:
        """Open the functions, unless they must be initialized first."""
        if not self._checkpointed:
            self._open()

    def _open(self) -> None:
        for function in self._functions:
            runtime = StreamingRuntimeContext(self._context, keyed=self._keyed)
            if isinstance(function, CheckpointedFunction):
                initialization = InitializationContext(self._context, runtime)
                rowwise.call_user_code(self._context, function.initialize_state, initialization)
            if isinstance(function, Function):
                rowwise.call_user_code(self._context, function.open, runtime)
        self._opened = True

    def initialize(self) -> None:
        """Open the functions that keep operator state: it is restored now."""
        if self._checkpointed and not self._opened:
            self._open()

    def snapshot(self) -> None:
        """Call `snapshot_state` of the functions that keep operator state."""
        for function in self._functions:
            if isinstance(function, CheckpointedFunction):
                rowwise.call_user_code(self._context, function.snapshot_state, SnapshotContext(self._context))

    def close(self) -> None:
        """Close the functions."""
        self._opened = False
        for function in self._functions:
            if isinstance(function, Function):
                rowwise.call_user_code(self._context, function.close)
