"""Settings of an operator: its name, uid, parallelism, chaining and slot sharing group.

Promises: a setting changes the one transformation behind a stream or a sink.
Does not know: what the operator does."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, TypeVar

from millstream.config.resources import SlotSharingGroup
from millstream.errors import InvalidArgument, UserError
from millstream.graph.transformations import Chaining, Input

if TYPE_CHECKING:
    from millstream.datastream.stream_execution_environment import StreamExecutionEnvironment

S = TypeVar("S", bound="OperatorSettings")


class NotSupportedHere(UserError):
    """An operation that streams of this class do not support."""


class OperatorSettings:
    """The settings of the operator behind a stream or a sink."""

    _env: StreamExecutionEnvironment
    _inputs: tuple[Input, ...]

    @property
    def _id(self) -> int:
        return self._inputs[0].upstream

    def _change(self: S, **fields: Any) -> S:
        if len(self._inputs) != 1:
            msg = "a union is not an operator, so it has no settings"
            raise NotSupportedHere(msg, hint="set it on the operator before or after the union")
        self._env._program.change(self._id, **fields)
        return self

    def name(self: S, name: str) -> S:
        """Set the name of the operator, which logs, metrics and plans show."""
        return self._change(name=name)

    def uid(self: S, uid: str) -> S:
        """Set the unique id of the operator, by which a later version of the program finds its state in a savepoint."""
        return self._change(uid=uid)

    def set_uid_hash(self: S, uid_hash: str) -> S:
        """Set the operator id directly, instead of deriving it from a uid.

        Args:
            uid_hash: 32 hexadecimal digits.

        Raises:
            UserError: This is not an operator id.

        """
        if len(uid_hash) != 32 or any(c not in "0123456789abcdef" for c in uid_hash.lower()):
            msg = f"'{uid_hash}' is not an operator id"
            raise InvalidArgument(msg, hint="use 32 hexadecimal digits")
        return self._change(uid_hash=uid_hash.lower())

    def set_parallelism(self: S, parallelism: int) -> S:
        """Set the parallelism of the operator.

        Args:
            parallelism: The number of subtasks, at least 1.

        Raises:
            UserError: The number is not possible.

        """
        if not isinstance(parallelism, int) or parallelism < 1:
            msg = f"a parallelism of {parallelism!r} is not possible"
            raise InvalidArgument(msg, hint="use an int of at least 1")
        return self._change(parallelism=parallelism)

    def set_description(self: S, description: str) -> S:
        """Set a longer description, which plans show."""
        return self._change(description=description)

    def disable_chaining(self: S) -> S:
        """Never chain the operator with others."""
        return self._change(chaining=Chaining.NEVER)

    def slot_sharing_group(self: S, slot_sharing_group: str | SlotSharingGroup) -> S:
        """Set the slot sharing group of the operator and of those after it that set none; resources of the group are
        registered."""
        if isinstance(slot_sharing_group, SlotSharingGroup):
            self._env.register_slot_sharing_group(slot_sharing_group)
            return self._change(slot_group=slot_sharing_group.get_name())
        return self._change(slot_group=slot_sharing_group)


class WithoutOperator(ABC):
    """A stream without an operator of its own: settings belong to the operator before or after it."""

    @abstractmethod
    def _refuse(self) -> Any:
        """Raise the error of the subclass."""

    def name(self, name: str) -> Any:
        """Refuse: the stream has no operator of its own."""
        return self._refuse()

    def uid(self, uid: str) -> Any:
        """Refuse: the stream has no operator of its own."""
        return self._refuse()

    def set_uid_hash(self, uid_hash: str) -> Any:
        """Refuse: the stream has no operator of its own."""
        return self._refuse()

    def set_parallelism(self, parallelism: int) -> Any:
        """Refuse: the stream has no operator of its own."""
        return self._refuse()

    def set_max_parallelism(self, max_parallelism: int) -> Any:
        """Refuse: the stream has no operator of its own."""
        return self._refuse()

    def force_non_parallel(self) -> Any:
        """Refuse: the stream has no operator of its own."""
        return self._refuse()

    def set_buffer_timeout(self, timeout_millis: int) -> Any:
        """Refuse: the stream has no operator of its own."""
        return self._refuse()

    def start_new_chain(self) -> Any:
        """Refuse: the stream has no operator of its own."""
        return self._refuse()

    def disable_chaining(self) -> Any:
        """Refuse: the stream has no operator of its own."""
        return self._refuse()

    def slot_sharing_group(self, slot_sharing_group: str | SlotSharingGroup) -> Any:
        """Refuse: the stream has no operator of its own."""
        return self._refuse()
