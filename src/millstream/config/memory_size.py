"""An amount of memory.

Promises: an immutable number of bytes that parses and prints as in Flink; units are powers of 1024.
Does not know: who uses the memory."""

from __future__ import annotations

import re
from typing import Self

from millstream.errors import UserError

_UNITS = {
    **dict.fromkeys(("", "b", "bytes"), 1),
    **dict.fromkeys(("k", "kb", "kibibytes"), 1 << 10),
    **dict.fromkeys(("m", "mb", "mebibytes"), 1 << 20),
    **dict.fromkeys(("g", "gb", "gibibytes"), 1 << 30),
    **dict.fromkeys(("t", "tb", "tebibytes"), 1 << 40),
}
_TEXT = re.compile(r"\s*(\d+)\s*([a-z]*)\s*", re.IGNORECASE)


class NegativeMemorySize(UserError, ValueError):
    """A memory size below zero."""

    def __init__(self, bytes_size: int) -> None:
        self.bytes_size = bytes_size
        super().__init__(f"a memory size must be zero or positive, not {bytes_size}")


class MemorySize(int):
    """A number of bytes that can be read in any unit (1 kb is 1024 bytes).

    Args:
        bytes_size: The number of bytes.

    Raises:
        NegativeMemorySize: The number is below zero.

    Example:
        >>> MemorySize.parse("64 mb").get_bytes()
        67108864
        >>> MemorySize.of_mebi_bytes(1024).get_gibi_bytes()
        1

    """

    def __new__(cls, bytes_size: int = 0) -> Self:
        """Create the size from a number of bytes."""
        if bytes_size < 0:
            raise NegativeMemorySize(bytes_size)
        return super().__new__(cls, bytes_size)

    @staticmethod
    def of_mebi_bytes(mebi_bytes: int) -> MemorySize:
        """Create the size from a number of mebibytes.

        Args:
            mebi_bytes: The number of mebibytes, at least 0.

        """
        return MemorySize(mebi_bytes << 20)

    @staticmethod
    def parse(text: str) -> MemorySize:
        """Parse a whole number with a unit such as `64 mb`; a number without a unit is in bytes.

        Args:
            text: The text; units are b, kb, mb, gb and tb, and stand for powers of 1024.

        Raises:
            ValueError: The text is not a memory size.

        """
        match = _TEXT.fullmatch(text)
        if match is None or match[2].lower() not in _UNITS:
            raise ValueError(text)
        return MemorySize(int(match[1]) * _UNITS[match[2].lower()])

    def get_bytes(self) -> int:
        """Return the size in bytes."""
        return int(self)

    def get_kibi_bytes(self) -> int:
        """Return the size in whole kibibytes."""
        return int(self) >> 10

    def get_mebi_bytes(self) -> int:
        """Return the size in whole mebibytes."""
        return int(self) >> 20

    def get_gibi_bytes(self) -> int:
        """Return the size in whole gibibytes."""
        return int(self) >> 30

    def get_tebi_bytes(self) -> int:
        """Return the size in whole tebibytes."""
        return int(self) >> 40

    # The comparisons are those of int; methods of a Python class show PyFlink's parameter names in their signatures.
    def __eq__(self, other: object) -> bool:
        return int.__eq__(self, other)

    def __hash__(self) -> int:
        return int.__hash__(self)

    def __lt__(self, other: int) -> bool:
        return int.__lt__(self, other)

    def __le__(self, other: int) -> bool:
        return int.__le__(self, other)

    def __str__(self) -> str:
        for unit, label in ((1 << 30, "gb"), (1 << 20, "mb"), (1 << 10, "kb")):
            if self and self % unit == 0:
                return f"{self // unit} {label}"
        return f"{int(self)} bytes"

    def __repr__(self) -> str:
        return f"MemorySize({str(self)!r})"
