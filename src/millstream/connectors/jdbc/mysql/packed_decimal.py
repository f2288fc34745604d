"""Decodes decimals in MySQL's packed form.

Promises: the result is the exact number, with its scale.
Does not know: columns, JSON."""

from __future__ import annotations

from decimal import Decimal

_BYTES_OF_DIGITS = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)


def read_decimal(data: bytes, position: int, precision: int, scale: int) -> tuple[Decimal, int]:
    """Decode a decimal. Nine digits are stored in four bytes; the shorter groups at both ends take fewer bytes."""
    whole = precision - scale
    parts = [whole % 9, *[9] * (whole // 9)], [*[9] * (scale // 9), scale % 9]
    size = sum(_BYTES_OF_DIGITS[digits] for part in parts for digits in part)
    image = bytearray(data[position : position + size])
    negative = not image[0] & 0x80
    image[0] ^= 0x80
    if negative:
        image = bytearray(byte ^ 0xFF for byte in image)
    texts: list[str] = []
    offset = 0
    for part in parts:
        text = ""
        for digits in part:
            width = _BYTES_OF_DIGITS[digits]
            if digits:
                text += str(int.from_bytes(image[offset : offset + width], "big")).zfill(digits)
            offset += width
        texts.append(text)
    number = f"{'-' if negative else ''}{texts[0] or '0'}" + (f".{texts[1]}" if scale else "")
    return Decimal(number), position + size
