"""The interface of formats: a format decodes a batch of byte strings to records and encodes records to byte strings.

Promises: decoding does not raise for invalid bytes. A record that cannot be decoded is an entry of `Decoded.errors`,
with its index in the batch, its bytes and the reason. Each value is traced to its record of the batch.
Does not know: files, brokers, or what happens to a bad record; `apply_error_policy` does that."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pyarrow as pa

from millstream.errors import UserError
from millstream.formats.format_types import FieldSelection, FormatType
from millstream.types.factory import TypeInformation

_MAX_QUOTED = 200


class OnError(Enum):
    """What happens to a record that cannot be decoded."""

    FAIL = "fail"
    SKIP = "skip"
    DEAD_LETTER = "dead-letter"

    @staticmethod
    def of(name: str | OnError) -> OnError:
        """Return the policy of a name; `_` and `-` are the same."""
        if isinstance(name, OnError):
            return name
        for policy in OnError:
            if isinstance(name, str) and policy.value == name.strip().lower().replace("_", "-"):
                return policy
        raise UnknownPolicy(name)


class UnknownPolicy(UserError):
    """The name of an error policy is not known."""

    hint = 'use "fail", "skip" or "dead-letter"'

    def __init__(self, name: object) -> None:
        self.name = name
        super().__init__(f"unknown value of on_error: {name!r}")


class UndecodableRecord(UserError):
    """A record cannot be decoded by the format."""

    hint = "correct the record in the source, or set on_error to skip or dead-letter"

    def __init__(self, format_name: str, where: str, data: bytes, reason: str) -> None:
        self.format_name, self.where, self.data, self.reason = format_name, where, data, reason
        super().__init__(f"{where} is not a valid {format_name} record: {reason}: {quote_bytes(data)}")


class UnencodableRecord(UserError):
    """A record cannot be encoded by the format."""

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
    """The values of a batch.

    `values` are records, as a list or as an Arrow array of the format's type. Value `i` came from record `origins[i]`
    of the batch; with None, each record has exactly one value."""

    values: list[Any] | pa.Array
    origins: Sequence[int] | None = None
    errors: tuple[BadRecord, ...] = ()

    def origin_of(self, value: int) -> int:
        """Return the index of the record from which a value comes."""
        return value if self.origins is None else self.origins[value]

    def rows(self, type_info: TypeInformation) -> list[Any]:
        """Return the values as Python objects."""
        return self.values if isinstance(self.values, list) else type_info.from_arrow(self.values)


class Format(ABC):
    """A format of records of one type. It is picklable."""

    #: The name of the format in `format_named` and in SQL.
    name: str = ""
    #: Whether rows with the kinds -U, +U and -D can be decoded and encoded.
    changelog: bool = False

    def __init__(self, data_type: FormatType, on_error: OnError = OnError.FAIL) -> None:
        self.data_type = data_type
        self.type_info: TypeInformation = data_type.type_info()
        self.on_error = on_error

    @abstractmethod
    def decode(self, records: Sequence[bytes | None]) -> Decoded:
        """Decode a batch; None, the record of a deleted key, has no value."""

    def decode_lines(self, text: bytes) -> pa.Array | None:
        """Decode text with one record per line; None if the records must be decoded one by one."""
        return None

    def only(self, selection: FieldSelection) -> Format | None:
        """Return a format that decodes only some fields; None if it must decode all of them."""
        return None

    def encode_lines(self, columns: Sequence[pa.Array], end: bytes) -> bytes | memoryview | None:
        """Encode columns in the Arrow types of SQL as text with one record and `end` per line; None if the records must
        be encoded one by one."""
        return None

    @abstractmethod
    def encode(self, values: Sequence[Any]) -> list[bytes]:
        """Encode each value. Raises `UnencodableRecord` for the first that cannot be encoded."""


def apply_error_policy(format_: Format, decoded: Decoded, where: Callable[[int], str]) -> tuple[BadRecord, ...]:
    """Apply the error policy of the format: raise for the first bad record, or return the bad records.

    `where` names a record of the batch by its index: "message 17 of topic-0", "line at byte 80 of a.json"."""
    if decoded.errors and format_.on_error is OnError.FAIL:
        first = decoded.errors[0]
        raise UndecodableRecord(format_.name, where(first.index), first.data, first.reason)
    return decoded.errors


def decode_each(
    records: Sequence[bytes | None], decode: Callable[[bytes], Any], refused: tuple[type[Exception], ...]
) -> Decoded:
    """Decode record by record. `decode` returns one value, or None for a record without a value."""
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
    """Return the text of an error in one line."""
    text = " ".join((getattr(problem, "message", None) or str(problem)).split())
    return text[:500] or type(problem).__name__


def quote_bytes(data: bytes) -> str:
    """Return the beginning of a record as printable text."""
    text = repr(bytes(data[:_MAX_QUOTED]).decode("utf-8", "backslashreplace"))
    return text if len(data) <= _MAX_QUOTED else f"{text}... ({len(data)} bytes)"
