"""The contract of a format: a batch of byte strings becomes records, records become byte strings.

Promises: decoding never raises for what the bytes hold: a record that cannot be read is an entry in `Decoded.errors`,
with its place in the batch, its bytes and the reason; each value says which record it came from.
Does not know: files, brokers, or what is done about a bad record; `settle` applies the policy that was chosen."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pyarrow as pa

from millstream.errors import UserError
from millstream.formats.shapes import Shape, Wanted
from millstream.types.factory import TypeInformation

_SHOWN = 200


class OnError(Enum):
    """What is done about a record that cannot be decoded."""

    FAIL = "fail"
    SKIP = "skip"
    DEAD_LETTER = "dead-letter"

    @staticmethod
    def of(name: str | OnError) -> OnError:
        """The policy of that name; `_` and `-` are the same."""
        if isinstance(name, OnError):
            return name
        for policy in OnError:
            if isinstance(name, str) and policy.value == name.strip().lower().replace("_", "-"):
                return policy
        raise UnknownPolicy(name)


class UnknownPolicy(UserError):
    """What to do about bad records was asked for in a word that is not known."""

    hint = 'use "fail", "skip" or "dead-letter"'

    def __init__(self, name: object) -> None:
        self.name = name
        super().__init__(f"on_error is {name!r}")


class UndecodableRecord(UserError):
    """A record that the format cannot read."""

    hint = "mend the record where it comes from, or choose on_error = skip or dead-letter"

    def __init__(self, format_name: str, where: str, data: bytes, reason: str) -> None:
        self.format_name, self.where, self.data, self.reason = format_name, where, data, reason
        super().__init__(f"{where} is no {format_name} record: {reason}: {shown(data)}")


class UnencodableRecord(UserError):
    """A record that the format cannot write."""

    def __init__(self, format_name: str, value: object, reason: str, *, hint: str | None = None) -> None:
        self.format_name, self.value, self.reason = format_name, value, reason
        super().__init__(f"{format_name} cannot write {value!r:.200}: {reason}", hint=hint)


class BadFormat(UserError):
    """A format that does not exist, or does not fit the type or the options it was given."""


class MissingLibrary(UserError):
    """A format needs a library that is not installed."""

    def __init__(self, format_name: str, library: str, extra: str) -> None:
        self.library = library
        super().__init__(
            f"the format {format_name} needs {library}", hint=f"pip install 'millstream[{extra}]', or {library} itself"
        )


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A record that could not be decoded: its index in the batch, its bytes, and why."""

    index: int
    data: bytes
    reason: str


@dataclass(frozen=True, slots=True)
class Decoded:
    """What a batch holds.

    `values` are records, as a list or as an Arrow array of the format's type. Value `i` came from record `origins[i]`
    of the batch; None says that each record gave exactly one value."""

    values: list[Any] | pa.Array
    origins: Sequence[int] | None = None
    errors: tuple[BadRecord, ...] = ()

    def origin_of(self, value: int) -> int:
        """The record of the batch that a value came from."""
        return value if self.origins is None else self.origins[value]

    def rows(self, type_info: TypeInformation) -> list[Any]:
        """The values as Python has them."""
        return self.values if isinstance(self.values, list) else type_info.from_arrow(self.values)


class Format(ABC):
    """How records of one type are written as bytes. Picklable: a description with logic that is built from it."""

    #: The name by which `format_named` finds it.
    name: str = ""
    #: Whether rows that are changes (-U, +U, -D) can be read or written.
    changelog: bool = False

    def __init__(self, shape: Shape, on_error: OnError = OnError.FAIL) -> None:
        self.shape = shape
        self.type_info: TypeInformation = shape.type_info()
        self.on_error = on_error

    @abstractmethod
    def decode(self, records: Sequence[bytes | None]) -> Decoded:
        """The values in a batch; None, the record of a deleted key, gives none."""

    def decode_lines(self, text: bytes) -> pa.Array | None:
        """The values in a text with one record on each line; None if they must be decoded one by one."""
        return None

    def only(self, wanted: Wanted) -> Format | None:
        """The format of the same records with some of their fields only; None if it must read all of them."""
        return None

    def encode_lines(self, columns: Sequence[pa.Array], end: bytes) -> bytes | memoryview | None:
        """A text with one record and `end` on each line, of records whose fields are these columns, in Arrow types of
        SQL; None if they must be encoded one by one."""
        return None

    @abstractmethod
    def encode(self, values: Sequence[Any]) -> list[bytes]:
        """The bytes of each value. Raises `UnencodableRecord` for the first that cannot be written."""


def settle(format_: Format, decoded: Decoded, where: Callable[[int], str]) -> tuple[BadRecord, ...]:
    """Apply the format's policy: fail at the first bad record, or give those that are skipped or kept.

    `where` names a record of the batch by its index: "message 17 of topic-0", "line at byte 80 of a.json"."""
    if decoded.errors and format_.on_error is OnError.FAIL:
        first = decoded.errors[0]
        raise UndecodableRecord(format_.name, where(first.index), first.data, first.reason)
    return decoded.errors


def each(
    records: Sequence[bytes | None], decode: Callable[[bytes], Any], refused: tuple[type[Exception], ...]
) -> Decoded:
    """Decode record by record. `decode` gives one value, or None for a record without one."""
    values: list[Any] = []
    origins: list[int] = []
    errors: list[BadRecord] = []
    for index, data in enumerate(records):
        if data is None:
            continue
        try:
            value = decode(data)
        except refused as problem:
            errors.append(BadRecord(index, bytes(data), reason_of(problem)))
            continue
        if value is not None:
            values.append(value)
            origins.append(index)
    return Decoded(values, origins if len(values) != len(records) else None, tuple(errors))


def reason_of(problem: Exception) -> str:
    """The reason in an error, in one line."""
    text = " ".join((getattr(problem, "message", None) or str(problem)).split())
    return text[:500] or type(problem).__name__


def shown(data: bytes) -> str:
    """The beginning of a record as a person can read it."""
    text = repr(bytes(data[:_SHOWN]).decode("utf-8", "backslashreplace"))
    return text if len(data) <= _SHOWN else f"{text}... ({len(data)} bytes)"
