"""Ids of jobs, operators, checkpoints and epochs.

Promises: an id is a value with one text form, the 32 hex digits Flink's REST and tools use; the id of an operator
is a function of its uid alone.
Does not know: how new ids are chosen; the bytes of a new JobID are an argument."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import NewType, TypeVar

from millstream.errors import UserError

CheckpointID = NewType("CheckpointID", int)
EpochID = NewType("EpochID", int)

_HEX = re.compile("[0-9a-f]{32}")
_Id = TypeVar("_Id", bound="_HexId")


class MalformedId(UserError, ValueError):
    """A text that is not an id."""

    hint = "an id has 32 hexadecimal digits, as `list` prints them"

    def __init__(self, id_type: str, text: object) -> None:
        self.id_type = id_type
        self.text = text
        super().__init__(f"{text!r} is not a {id_type}")


@dataclass(frozen=True, slots=True, order=True)
class _HexId:
    hex: str

    def __post_init__(self) -> None:
        if not isinstance(self.hex, str) or not _HEX.fullmatch(self.hex):
            raise MalformedId(type(self).__name__, self.hex)

    @classmethod
    def of_bytes(cls: type[_Id], sixteen: bytes) -> _Id:
        """Create an id from 16 bytes."""
        return cls(sixteen.hex())

    def to_bytes(self) -> bytes:
        """Return the 16 bytes of the id."""
        return bytes.fromhex(self.hex)

    def __str__(self) -> str:
        return self.hex


class JobID(_HexId):
    """The id of a submitted job.

    Example:
        >>> JobID("0" * 32)
        JobID(hex='00000000000000000000000000000000')

    """

    __slots__ = ()


class OperatorID(_HexId):
    """The id of an operator of a job, for its state and metrics."""

    __slots__ = ()

    @classmethod
    def of_uid(cls, uid: str) -> OperatorID:
        """Return the id of the operator with a uid; it is the same in every process and version."""
        return cls(hashlib.blake2b(uid.encode(), digest_size=16).hexdigest())
