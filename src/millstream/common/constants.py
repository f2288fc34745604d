"""PyFlink's module of this name: the range of a long, and the tag of the main output.

Promises: Flink's values.
Does not know: where they are used."""

from __future__ import annotations

MAX_LONG_VALUE = 0x7FFFFFFFFFFFFFFF
MIN_LONG_VALUE = -MAX_LONG_VALUE - 1
DEFAULT_OUTPUT_TAG = ""
