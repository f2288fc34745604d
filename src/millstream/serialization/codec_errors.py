"""Errors of the codec: values that cannot be encoded, and bytes that cannot be decoded.

Promises: every error of the codec is one of these; names of classes are shown as users write them.
Does not know: how values are encoded."""

from __future__ import annotations

from millstream.errors import ExternalError, UserError
from millstream.serialization.stored_names import name_of


def format_class_name(name: str) -> str:
    """Return the name of a class as users write it."""
    return name.replace(":", ".").removeprefix("builtins.")


class UndeclaredClass(UserError):
    """A value is an instance of a class that the program does not declare, so it cannot be stored or sent."""

    def __init__(self, cls: type) -> None:
        self.name = name_of(cls)
        name = format_class_name(self.name)
        super().__init__(
            f"an instance of {name} cannot be stored or sent, because the program does not declare its class",
            hint=f"name the class in a type annotation, or call env.register_type({cls.__qualname__})",
        )


class NotEncodable(UserError):
    """A value cannot be encoded: it is a resource such as a file, it is nested too deeply, or its class forbids
    copies."""

    def __init__(self, value: object, reason: str) -> None:
        self.type_name = format_class_name(name_of(type(value)))
        self.reason = reason
        super().__init__(f"a value of type {self.type_name} cannot be encoded: {reason}")


class NotDeclarable(UserError):
    """A declared class is not a class of values."""

    hint = "declare dataclasses, named tuples, enums and plain classes"

    def __init__(self, value: object) -> None:
        self.value = value
        super().__init__(f"{value!r} cannot be declared as a class of values")


class UnsafeData(ExternalError):
    """Bytes name a class that the program does not declare; no code of them was executed."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"the data names {name[:200]!r}, which this program does not declare; none of its code was executed",
            hint="if the data is your own, declare the class with env.register_type(cls), or name it in an annotation",
        )


class CorruptData(ExternalError):
    """Bytes were not written by `encode`: they are truncated, changed, or of another program."""

    def __init__(self, size: int, reason: str) -> None:
        self.size = size
        self.reason = reason
        super().__init__(f"{size} bytes cannot be decoded: {reason}")
