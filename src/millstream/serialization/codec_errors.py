"""What can be wrong with values that are to be encoded, and with bytes that are to be decoded.

Promises: every error of the codec is one of these; a class is named as people write it.
Does not know: how values are encoded."""

from __future__ import annotations

from millstream.errors import ExternalError, UserError
from millstream.serialization.stored_names import name_of


def dotted(name: str) -> str:
    """The name of a class as people write it."""
    return name.replace(":", ".").removeprefix("builtins.")


class UndeclaredClass(UserError):
    """An instance of a class that the program does not declare was about to be stored or sent."""

    def __init__(self, cls: type) -> None:
        self.name = name_of(cls)
        super().__init__(
            f"an instance of {dotted(self.name)} cannot be stored or sent, the program does not declare its class",
            hint=f"name the class in a type annotation, or call env.register_type({cls.__qualname__})",
        )


class NotEncodable(UserError):
    """A value cannot be encoded: it is a resource, it is nested too deeply, or its class forbids copies."""

    def __init__(self, value: object, reason: str) -> None:
        self.type_name = dotted(name_of(type(value)))
        self.reason = reason
        super().__init__(f"a value of type {self.type_name} cannot be turned into bytes: {reason}")


class NotDeclarable(UserError):
    """Something that is no class of values was declared as one."""

    hint = "declare dataclasses, named tuples, enums and plain classes"

    def __init__(self, value: object) -> None:
        self.value = value
        super().__init__(f"{value!r} cannot be declared as a class of values")


class UnsafeData(ExternalError):
    """Bytes name something that only a declared class may be; nothing of it was executed."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"the data names {name[:200]!r}, which this program does not declare; nothing of it was executed",
            hint="if the data is your own, declare the class with env.register_type(cls), or name it in an annotation",
        )


class CorruptData(ExternalError):
    """Bytes are not what `encode` writes: cut off, changed, or from elsewhere."""

    def __init__(self, size: int, reason: str) -> None:
        self.size = size
        self.reason = reason
        super().__init__(f"{size} bytes are not a readable value: {reason}")
