"""Creating state from records: Flink's bootstrap functions and transformations.

Promises: a job reads the state that a bootstrap function wrote; timers that it registered fire in the job.
Does not know: savepoints."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from millstream.checkpoint.state_tables import Tables
from millstream.errors import UserError
from millstream.event_time.timers import TimerService
from millstream.functions import Function
from millstream.runtime.checkpointed import OperatorStates
from millstream.runtime.memory import SubtaskMemory
from millstream.state.views import create_broadcast_view
from millstream.state_descriptors.descriptors import MapStateDescriptor, as_type
from millstream.state_processor.data import iterate_records
from millstream.state_processor.harness import SingleOperator
from millstream.types.factory import TypeInformation


class KeysMissing(UserError):
    """A keyed bootstrap function is used with records that have no key."""

    def __init__(self) -> None:
        super().__init__("a KeyedStateBootstrapFunction needs keyed records", hint="call key_by before transform")


class Context:
    """The context of a bootstrap function, which gives access to the current key, timers and broadcast state."""

    def __init__(self, operator: SingleOperator) -> None:
        self._operator = operator

    def get_current_key(self) -> Any:
        """Return the key of the current record.

        Returns:
            The key.

        """
        return self._operator.context.scope.key

    def timer_service(self) -> TimerService:
        """Return the timer service of the current key.

        Timers that are registered become part of the savepoint; the job that starts from it fires them.

        Returns:
            The timer service.

        """
        return self._operator.timers

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> Any:
        """Return the broadcast state of a descriptor.

        Args:
            state_descriptor: The descriptor of the broadcast state.

        Returns:
            The broadcast state, which can be changed.

        """
        return create_broadcast_view(state_descriptor, self._operator.state)


class KeyedStateBootstrapFunction(Function):
    """Writes keyed state from records.

    State is declared in `open`, as in a function of a job. It is used with a keyed transformation, see
    `OperatorTransformation`.

    Example:
        >>> from millstream.datastream.state import ValueStateDescriptor
        >>> class Balances(KeyedStateBootstrapFunction):
        ...     def open(self, runtime_context):
        ...         self.balance = runtime_context.get_state(ValueStateDescriptor("balance", int))
        ...     def process_element(self, value, ctx):
        ...         self.balance.update(value["balance"])
        >>> accounts = OperatorTransformation.bootstrap_with([{"id": "a", "balance": 3}])
        >>> transformation = accounts.key_by(lambda account: account["id"]).transform(Balances())

    """

    @abstractmethod
    def process_element(self, value: Any, ctx: Context) -> None:
        """Write a record to the state of its key.

        Args:
            value: The record.
            ctx: Gives access to the key and its timers.

        """


class BroadcastStateBootstrapFunction(Function):
    """Writes broadcast state from records.

    Example:
        >>> from millstream.datastream.state import MapStateDescriptor
        >>> class Rates(BroadcastStateBootstrapFunction):
        ...     def process_element(self, value, ctx):
        ...         ctx.get_broadcast_state(MapStateDescriptor("rates", str, float)).put(*value)
        >>> transformation = OperatorTransformation.bootstrap_with([("EUR", 1.1)]).transform(Rates())

    """

    @abstractmethod
    def process_element(self, value: Any, ctx: Context) -> None:
        """Write a record to broadcast state.

        Args:
            value: The record.
            ctx: Gives access to broadcast state.

        """


class StateBootstrapFunction(Function):
    """Writes operator state from records.

    As in a checkpointed function of a job, `initialize_state` gets the list states and `snapshot_state` writes them.

    Example:
        >>> from millstream.datastream.state import ListStateDescriptor
        >>> class Waiting(StateBootstrapFunction):
        ...     def initialize_state(self, context):
        ...         store = context.get_operator_state_store()
        ...         self.waiting = store.get_list_state(ListStateDescriptor("waiting", str))
        ...     def process_element(self, value, ctx):
        ...         self.waiting.add(value)
        ...     def snapshot_state(self, context):
        ...         pass
        >>> transformation = OperatorTransformation.bootstrap_with(["a", "b"]).transform(Waiting())

    """

    def initialize_state(self, context: Any) -> None:
        """Get the operator states; called once, before the first record.

        Args:
            context: Its `get_operator_state_store()` gives access to list, union list and broadcast state.

        """

    @abstractmethod
    def process_element(self, value: Any, ctx: Context) -> None:
        """Process a record.

        Args:
            value: The record.
            ctx: Gives access to broadcast state.

        """

    def snapshot_state(self, context: Any) -> None:
        """Write the state; called once, after the last record.

        Args:
            context: Not used.

        """


@dataclass(frozen=True)
class StateBootstrapTransformation:
    """Records, and the function that writes the state of one operator from them; see `OperatorTransformation`.

    Example:
        >>> from millstream.datastream.state import MapStateDescriptor
        >>> from millstream.state_processor import SavepointWriter
        >>> class Rates(BroadcastStateBootstrapFunction):
        ...     def process_element(self, value, ctx):
        ...         ctx.get_broadcast_state(MapStateDescriptor("rates", str, float)).put(*value)
        >>> transformation = OperatorTransformation.bootstrap_with([("EUR", 1.1)]).transform(Rates())
        >>> writer = SavepointWriter.new_savepoint().with_operator("convert", transformation)

    """

    data: Any
    function: Any
    key: Callable[[Any], Any] | None = None
    key_type: TypeInformation | None = None

    def tables(self, name: str, max_parallelism: int) -> tuple[Tables, SubtaskMemory]:
        """Run the function and return the state.

        Args:
            name: The name of the operator, for error messages.
            max_parallelism: The max parallelism of the operator.

        Returns:
            The state tables and the memory of the operator.

        Raises:
            KeysMissing: If the function is keyed and the records have no key.

        """
        operator = SingleOperator(name, max_parallelism, self.key_type)
        context, function = Context(operator), self.function
        is_keyed = isinstance(function, KeyedStateBootstrapFunction)
        if is_keyed and self.key is None:
            raise KeysMissing
        has_operator_state = isinstance(function, StateBootstrapFunction)
        if has_operator_state:
            function.initialize_state(_InitializationContext(operator))
        function.open(operator.runtime_context(keyed=is_keyed))
        for record in iterate_records(self.data):
            if self.key is not None:
                operator.set_current_key(self.key(record))
            function.process_element(record, context)
        if has_operator_state:
            function.snapshot_state(None)
        function.close()
        return operator.tables(), SubtaskMemory(has_union_state=operator.context.memory.has_union_state)


class _InitializationContext:
    """The context of `StateBootstrapFunction.initialize_state`."""

    def __init__(self, operator: SingleOperator) -> None:
        self._states = OperatorStates(operator.context)

    def is_restored(self) -> bool:
        """Return False, because the state is new."""
        return False

    def get_operator_state_store(self) -> OperatorStates:
        """Return the store of operator states."""
        return self._states


@dataclass(frozen=True)
class KeyedOperatorTransformation:
    """Keyed records for the state of one operator; created by `OneInputOperatorTransformation.key_by`."""

    data: Any
    key: Callable[[Any], Any]
    key_type: TypeInformation | None

    def transform(self, function: KeyedStateBootstrapFunction) -> StateBootstrapTransformation:
        """Write keyed state with a function.

        Args:
            function: The function that writes the state.

        Returns:
            The transformation, for `SavepointWriter.with_operator`.

        """
        return StateBootstrapTransformation(self.data, function, self.key, self.key_type)


@dataclass(frozen=True)
class OneInputOperatorTransformation:
    """Records for the state of one operator; created by `OperatorTransformation.bootstrap_with`."""

    data: Any

    def key_by(
        self, key_selector: Callable[[Any], Any] | str, key_type: TypeInformation | Any = None
    ) -> KeyedOperatorTransformation:
        """Partition the records by key.

        Args:
            key_selector: A function from a record to its key, or the name of a column.
            key_type: The type of the key in the job; without it, keys are untyped.

        Returns:
            The keyed records.

        """
        name = key_selector
        key = (lambda record: record[name]) if isinstance(name, str) else name
        return KeyedOperatorTransformation(self.data, key, None if key_type is None else as_type(key_type))

    def transform(
        self, function: StateBootstrapFunction | BroadcastStateBootstrapFunction
    ) -> StateBootstrapTransformation:
        """Write operator or broadcast state with a function.

        Args:
            function: The function that writes the state.

        Returns:
            The transformation, for `SavepointWriter.with_operator`.

        """
        return StateBootstrapTransformation(self.data, function)


class OperatorTransformation:
    """Starts a bootstrap transformation, which creates the state of one operator from records.

    Example:
        >>> from millstream.common import Types
        >>> from millstream.datastream.state import ValueStateDescriptor
        >>> class Count(KeyedStateBootstrapFunction):
        ...     def open(self, runtime_context):
        ...         self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        ...
        ...     def process_element(self, value, ctx):
        ...         self.count.update((self.count.value() or 0) + 1)
        >>> words = OperatorTransformation.bootstrap_with(["to", "be", "to"])
        >>> counts = words.key_by(lambda word: word).transform(Count())

    """

    @staticmethod
    def bootstrap_with(data: Any) -> OneInputOperatorTransformation:
        """Start with records.

        Args:
            data: An iterable of records, an Arrow table, a pandas or a Spark DataFrame. The records of a table are rows
                with the names of its columns as field names.

        Returns:
            The records, which can be keyed and transformed.

        """
        return OneInputOperatorTransformation(data)
