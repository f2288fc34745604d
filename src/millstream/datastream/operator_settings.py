"""What can be said of an operator: its name, its id, where and how it runs.

Promises: what is said changes the one transformation behind a stream or a sink.
Does not know: what the operator does."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, TypeVar

from millstream.config.resources import SlotSharingGroup
from millstream.errors import UserError
from millstream.graph.transformations import Chaining, Input

if TYPE_CHECKING:
    from millstream.datastream.stream_execution_environment import StreamExecutionEnvironment

S = TypeVar("S", bound="Named")


class NotHere(UserError):
    """An operation that this kind of stream does not have."""


class Named:
    """What can be said of the operator behind a stream or a sink."""

    _env: StreamExecutionEnvironment
    _inputs: tuple[Input, ...]

    @property
    def _id(self) -> int:
        return self._inputs[0].upstream

    def _change(self: S, **fields: Any) -> S:
        if len(self._inputs) != 1:
            msg = "a union is no operator of its own"
            raise NotHere(msg, hint="say it of the operator before or after the union")
        self._env._program.change(self._id, **fields)
        return self

    def name(self: S, name: str) -> S:
        """Name the operator."""
        return self._change(name=name)

    def uid(self: S, uid: str) -> S:
        """Give the operator an id that its state is found by in later versions of the program."""
        return self._change(uid=uid)

    def set_uid_hash(self: S, uid_hash: str) -> S:
        """Give the operator the id itself, 32 hexadecimal digits."""
        if len(uid_hash) != 32 or any(c not in "0123456789abcdef" for c in uid_hash.lower()):
            msg = f"'{uid_hash}' is not an operator id"
            raise UserError(msg, hint="give 32 hexadecimal digits")
        return self._change(uid_hash=uid_hash.lower())

    def set_parallelism(self: S, parallelism: int) -> S:
        """Give the operator a parallelism of its own."""
        if not isinstance(parallelism, int) or parallelism < 1:
            msg = f"a parallelism of {parallelism!r} is not possible"
            raise UserError(msg, hint="give an int of at least 1")
        return self._change(parallelism=parallelism)

    def set_description(self: S, description: str) -> S:
        """A longer text for plans and pictures."""
        return self._change(description=description)

    def disable_chaining(self: S) -> S:
        """Run the operator on its own, fused with no other."""
        return self._change(chaining=Chaining.NEVER)

    def slot_sharing_group(self: S, slot_sharing_group: str | SlotSharingGroup) -> S:
        """Put the operator, and those after it, into a slot sharing group."""
        if isinstance(slot_sharing_group, SlotSharingGroup):
            return self._change(slot_group=slot_sharing_group.get_name())
        return self._change(slot_group=slot_sharing_group)


class NoOperator(ABC):
    """A stream that is no operator of its own: these things are said of the one before or after."""

    @abstractmethod
    def _refused(self) -> Any:
        """Raise why."""

    def name(self, name: str) -> Any:
        """Not here."""
        return self._refused()

    def uid(self, uid: str) -> Any:
        """Not here."""
        return self._refused()

    def set_uid_hash(self, uid_hash: str) -> Any:
        """Not here."""
        return self._refused()

    def set_parallelism(self, parallelism: int) -> Any:
        """Not here."""
        return self._refused()

    def set_max_parallelism(self, max_parallelism: int) -> Any:
        """Not here."""
        return self._refused()

    def force_non_parallel(self) -> Any:
        """Not here."""
        return self._refused()

    def set_buffer_timeout(self, timeout_millis: int) -> Any:
        """Not here."""
        return self._refused()

    def start_new_chain(self) -> Any:
        """Not here."""
        return self._refused()

    def disable_chaining(self) -> Any:
        """Not here."""
        return self._refused()

    def slot_sharing_group(self, slot_sharing_group: str | SlotSharingGroup) -> Any:
        """Not here."""
        return self._refused()
