"""State made from records: Flink's bootstrap functions and transformations, in Python's spelling.

Promises: a function puts into state what a job's function would find there; timers it registers fire in the job.
Does not know: snapshots."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from millstream.checkpoint.contents import Tables
from millstream.errors import UserError
from millstream.event_time.timers import TimerService
from millstream.functions import Function
from millstream.runtime.checkpointed import OperatorStates
from millstream.runtime.memory import SubtaskMemory
from millstream.state.views import broadcast_view
from millstream.state_descriptors.descriptors import MapStateDescriptor, as_type
from millstream.state_processor.data import records
from millstream.state_processor.harness import LoneOperator
from millstream.types.factory import TypeInformation


class KeysMissing(UserError):
    """A keyed function was given records without keys."""

    def __init__(self) -> None:
        super().__init__("a KeyedStateBootstrapFunction needs keyed records", hint="call key_by first")


class Context:
    """The context of one call of a bootstrap function."""

    def __init__(self, operator: LoneOperator) -> None:
        self._operator = operator

    def get_current_key(self) -> Any:
        """The key of the record."""
        return self._operator.context.scope.key

    def timer_service(self) -> TimerService:
        """Timers of the key, that the job will fire."""
        return self._operator.timers

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> Any:
        """Broadcast state."""
        return broadcast_view(state_descriptor, self._operator.state)


class KeyedStateBootstrapFunction(Function):
    """Fills keyed state, record by record."""

    @abstractmethod
    def process_element(self, value: Any, ctx: Context) -> None:
        """Put a record into the state of its key."""


class BroadcastStateBootstrapFunction(Function):
    """Fills broadcast state, record by record."""

    @abstractmethod
    def process_element(self, value: Any, ctx: Context) -> None:
        """Put a record into broadcast state."""


class StateBootstrapFunction(Function):
    """Fills operator state: lists are handed to `initialize_state` as in a job, and filled by `snapshot_state`."""

    def initialize_state(self, context: Any) -> None:
        """Ask for state."""

    @abstractmethod
    def process_element(self, value: Any, ctx: Context) -> None:
        """Take a record."""

    def snapshot_state(self, context: Any) -> None:
        """Put what was taken into state."""


@dataclass(frozen=True)
class StateBootstrapTransformation:
    """Records and what makes state of them."""

    data: Any
    function: Any
    key: Callable[[Any], Any] | None = None
    key_type: TypeInformation | None = None

    def tables(self, name: str, max_parallelism: int) -> tuple[Tables, SubtaskMemory]:
        """The state, and what the operator remembers beside it."""
        operator = LoneOperator(name, max_parallelism, self.key_type)
        context, function = Context(operator), self.function
        keyed = isinstance(function, KeyedStateBootstrapFunction)
        if keyed and self.key is None:
            raise KeysMissing
        listed = isinstance(function, StateBootstrapFunction)
        if listed:
            function.initialize_state(_Initialization(operator))
        function.open(operator.runtime(keyed=keyed))
        for record in records(self.data):
            if self.key is not None:
                operator.at(self.key(record))
            function.process_element(record, context)
        if listed:
            function.snapshot_state(None)
        function.close()
        return operator.tables(), SubtaskMemory(has_union_state=operator.context.memory.has_union_state)


class _Initialization:
    """The context of `initialize_state`."""

    def __init__(self, operator: LoneOperator) -> None:
        self._states = OperatorStates(operator.context)

    def is_restored(self) -> bool:
        """Never: there is nothing yet."""
        return False

    def get_operator_state_store(self) -> OperatorStates:
        """State of the operator."""
        return self._states


@dataclass(frozen=True)
class _Keyed:
    """Records with keys."""

    data: Any
    key: Callable[[Any], Any]
    key_type: TypeInformation | None

    def transform(self, function: KeyedStateBootstrapFunction) -> StateBootstrapTransformation:
        """Have a function make state of them."""
        return StateBootstrapTransformation(self.data, function, self.key, self.key_type)


@dataclass(frozen=True)
class _Records:
    """Records for state."""

    data: Any

    def key_by(self, key_selector: Callable[[Any], Any] | str, key_type: TypeInformation | Any = None) -> _Keyed:
        """The records by key: what a function or a column says."""
        name = key_selector
        key = (lambda record: record[name]) if isinstance(name, str) else name
        return _Keyed(self.data, key, None if key_type is None else as_type(key_type))

    def transform(
        self, function: StateBootstrapFunction | BroadcastStateBootstrapFunction
    ) -> StateBootstrapTransformation:
        """Have a function make state of them."""
        return StateBootstrapTransformation(self.data, function)


class OperatorTransformation:
    """The beginning of a bootstrap transformation."""

    @staticmethod
    def bootstrap_with(data: Any) -> _Records:
        """Records: an iterable, an Arrow table, a pandas or a Spark DataFrame (rows have the columns' names)."""
        return _Records(data)
