"""Stateful functions by type, their persisted values, and the context of a call.

Promises: the names of StateFun's Python SDK 3. Two values of a function with one name, and functions that cannot be
called with a context and a message, are refused.
Does not know: how functions are called."""

from __future__ import annotations

import inspect
import keyword
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from millstream.errors import InvalidArgument, InvalidArgumentType, UserError
from millstream.functions.entities.messages import EgressMessage, Message, SdkAddress, parse_typename
from millstream.functions.entities.value_types import Type

F = TypeVar("F", bound=Callable[..., Any])


class UnknownFunctionType(UserError, KeyError):
    """A message was sent to a function type that is not bound.

    Example:
        >>> StatefulFunctions().for_typename("com.example/cart")
        Traceback (most recent call last):
        ...
        millstream.functions.entities.registry.UnknownFunctionType: there is no function of type 'com.example/cart'; ...

    """

    __str__ = UserError.__str__

    def __init__(self, typename: str, bound: Iterable[str]) -> None:
        self.typename = typename
        super().__init__(
            f"there is no function of type '{typename}'",
            hint=f"bind it, or send to one of {', '.join(sorted(bound)) or 'the bound types (there are none)'}",
        )


class ValueSpec:
    """A persisted value of a function, one for each address.

    Args:
        name: The attribute of `context.storage`: a lower-case identifier.
        type: The type of the value.
        expire_after_call: Delete the value when the function was not called at this address for so long.
        expire_after_write: Delete the value when it was not written for so long.

    Example:
        >>> from millstream.functions.entities.value_types import IntType
        >>> ValueSpec("visits", IntType, expire_after_write=timedelta(days=7)).duration
        604800000

    """

    __slots__ = ("after_call", "after_write", "duration", "name", "type")

    def __init__(
        self,
        name: str,
        type: Any,
        expire_after_call: timedelta | None = None,
        expire_after_write: timedelta | None = None,
    ) -> None:
        if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name) or not name.islower():
            msg = f"{name!r} cannot be the name of a persisted value"
            raise InvalidArgument(msg, hint="use a lower-case identifier that is not a keyword of Python")
        if not isinstance(type, Type):
            msg = f"the persisted value '{name}' has the type {type!r}"
            raise InvalidArgumentType(msg, hint="pass a Type, such as IntType or make_json_type(...)")
        if expire_after_call and expire_after_write:
            msg = f"the persisted value '{name}' expires after calls and after writes"
            raise InvalidArgument(msg, hint="pass expire_after_call or expire_after_write")
        expiration = expire_after_call or expire_after_write or timedelta()
        if expiration < timedelta():
            msg = f"the persisted value '{name}' expires after {expiration}"
            raise InvalidArgument(msg, hint="pass a positive duration")
        self.name, self.type = name, type
        self.duration = round(expiration / timedelta(milliseconds=1))
        self.after_call, self.after_write = bool(expire_after_call), bool(expire_after_write)


class Context(ABC):
    """What a function can do while it is called.

    Example:
        >>> from millstream.statefun import message_builder
        >>> def count(context: Context, message: Message) -> None:
        ...     context.storage.calls = (context.storage.calls or 0) + 1
        ...     context.send(message_builder("com.example/total", "all", int_value=1))

    """

    __slots__ = ()

    @property
    @abstractmethod
    def address(self) -> SdkAddress:
        """The address of the function that is called."""

    @property
    @abstractmethod
    def caller(self) -> SdkAddress | None:
        """The address of the function that sent the message; None for a message of an ingress."""

    @property
    @abstractmethod
    def storage(self) -> Any:
        """The persisted values of the address, as attributes. A value that is not set is None; `del` deletes one."""

    @abstractmethod
    def send(self, message: Message) -> None:
        """Send a message to a function.

        Args:
            message: A message of `message_builder`.

        """

    @abstractmethod
    def send_after(self, duration: timedelta, message: Message, cancellation_token: str = "") -> None:
        """Send a message to a function after a delay.

        Args:
            duration: The delay, in processing time.
            message: The message.
            cancellation_token: A name by which this function can cancel the message.

        """

    @abstractmethod
    def cancel_delayed_message(self, cancellation_token: str) -> None:
        """Cancel the messages that this function sent with a cancellation token and that are not delivered yet.

        Args:
            cancellation_token: The token; one that was never used has no effect.

        """

    @abstractmethod
    def send_egress(self, message: EgressMessage) -> None:
        """Send a message to an egress.

        Args:
            message: A message of `egress_message_builder` or `kafka_egress_message`.

        """


@dataclass(frozen=True)
class StatefulFunction:
    """A bound function.

    Attributes:
        typename: Its type.
        fun: The function.
        specs: Its persisted values.
        is_async: Whether it is a coroutine function.

    Example:
        >>> functions = StatefulFunctions()
        >>> functions.register("com.example/quiet", lambda context, message: None)
        >>> functions.for_typename("com.example/quiet").is_async
        False

    """

    typename: str
    fun: Callable[[Context, Message], Any]
    specs: tuple[ValueSpec, ...]
    is_async: bool


class StatefulFunctions:
    """The functions of a program, by type.

    Example:
        >>> functions = StatefulFunctions()
        >>> @functions.bind(typename="com.example/greeter")
        ... def greet(context, message):
        ...     print(f"Hello {message.as_string()}!")

    """

    def __init__(self) -> None:
        self._functions: dict[str, StatefulFunction] = {}

    def register(self, typename: str, fun: Callable[..., Any], specs: Iterable[ValueSpec] | None = None) -> None:
        """Bind a function to a type.

        Args:
            typename: The function type, as `namespace/name`.
            fun: A function, or coroutine function, of a context and a message.
            specs: Its persisted values.

        """
        parse_typename(typename)
        if typename in self._functions:
            msg = f"two functions have the type '{typename}'"
            raise InvalidArgument(msg, hint="give each function a type of its own")
        if not callable(fun) or not _takes_two(fun):
            msg = f"{fun!r} cannot be called with a context and a message"
            raise InvalidArgument(msg, hint="define it as def function(context, message)")
        values = tuple(specs or ())
        names = [spec.name for spec in values]
        for name in names:
            if names.count(name) > 1:
                msg = f"function '{typename}' has two persisted values with the name '{name}'"
                raise InvalidArgument(msg, hint="give each value of a function its own name")
        is_async = inspect.iscoroutinefunction(fun) or inspect.iscoroutinefunction(type(fun).__call__)
        self._functions[typename] = StatefulFunction(typename, fun, values, is_async)

    def bind(self, typename: str, specs: Iterable[ValueSpec] | None = None) -> Callable[[F], F]:
        """Return a decorator that binds a function to a type.

        Args:
            typename: The function type, as `namespace/name`.
            specs: The persisted values of the function.

        """

        def bind_function(function: F) -> F:
            self.register(typename, function, specs)
            return function

        return bind_function

    def for_typename(self, typename: str) -> StatefulFunction:
        """Return the function of a type.

        Args:
            typename: The function type.

        Raises:
            UnknownFunctionType: No function is bound to the type.

        """
        if typename not in self._functions:
            raise UnknownFunctionType(typename, self._functions)
        return self._functions[typename]

    def functions(self) -> Mapping[str, StatefulFunction]:
        """Return all functions by type."""
        return dict(self._functions)


def _takes_two(fun: Callable[..., Any]) -> bool:
    try:
        inspect.signature(fun).bind(None, None)
    except (TypeError, ValueError):
        return False
    return True
