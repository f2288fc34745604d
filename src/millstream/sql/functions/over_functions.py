"""Functions that exist with OVER only: numbering, ranks, and values of other rows of the partition.

Promises: each function is declared once, with its result type, its Spark spelling and its line of the reference page.
Does not know: frames, or how the functions are computed; the operators of OVER do that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from millstream.sql.functions.spark import SparkOverCall
from millstream.sql.types import data_types as t


@dataclass(frozen=True)
class OverFunction:
    """A function that exists with OVER only.

    `spark` returns None if Spark does not compute what Flink computes. A function that needs rows after the current one
    does not exist in streaming mode."""

    name: str
    syntax: str
    doc: str
    result_type: Callable[[Sequence[t.DataType]], t.DataType]
    spark: Callable[[SparkOverCall], str | None]
    in_streaming: bool = True


def _derive_bigint(_arg_types: Sequence[t.DataType]) -> t.DataType:
    return t.BIGINT.not_null()


def _derive_double(_arg_types: Sequence[t.DataType]) -> t.DataType:
    return t.DOUBLE.not_null()


def _get_first_argument(arg_types: Sequence[t.DataType]) -> t.DataType:
    return t.strip_time_attribute(arg_types[0]).nullable()


def _spell_number(call: SparkOverCall) -> str:
    return f"CAST({call.call.function}() OVER ({call.window(default_order='1')}) AS BIGINT)"


def _spell_distribution(call: SparkOverCall) -> str | None:
    return f"{call.call.function}() OVER ({call.window()})" if call.order else None


def _spell_ntile(call: SparkOverCall) -> str | None:
    return f"CAST(NTILE({call.call.options[0]}) OVER ({call.window()}) AS BIGINT)" if call.order else None


def _spell_shift(call: SparkOverCall) -> str | None:
    options = call.call.options
    offset = options[0] if options else 1
    if len(options) > 1 or not isinstance(offset, int) or not call.order:
        return None
    return f"{call.call.function}({call.args[0]}, {offset}) OVER ({call.window()})"


_OVER = "OVER ([PARTITION BY ...] ORDER BY ...)"
OVER_FUNCTIONS = {
    function.name: function
    for function in (
        OverFunction(
            "ROW_NUMBER", f"ROW_NUMBER() {_OVER}",
            "Returns the number of the row in its partition, counted from 1.", _derive_bigint, _spell_number,
        ),
        OverFunction(
            "RANK", f"RANK() {_OVER}",
            "Returns one plus the number of rows of the partition that are ordered before the row. Equal rows have the "
            "same rank, and the ranks after them have a gap.", _derive_bigint, _spell_number,
        ),
        OverFunction(
            "DENSE_RANK", f"DENSE_RANK() {_OVER}",
            "Returns one plus the number of distinct values that are ordered before the row. Equal rows have the same "
            "rank, and the ranks after them have no gap.", _derive_bigint, _spell_number,
        ),
        OverFunction(
            "CUME_DIST", f"CUME_DIST() {_OVER}",
            "Returns the fraction of the rows of the partition that are ordered before the row or equal to it.",
            _derive_double, _spell_distribution, in_streaming=False,
        ),
        OverFunction(
            "PERCENT_RANK", f"PERCENT_RANK() {_OVER}",
            "Returns the rank of the row minus 1, divided by the number of rows of the partition minus 1.",
            _derive_double, _spell_distribution, in_streaming=False,
        ),
        OverFunction(
            "NTILE", f"NTILE(count) {_OVER}",
            "Divides the rows of the partition into `count` buckets of nearly equal size and returns the number of the "
            "row's bucket, counted from 1.", _derive_bigint, _spell_ntile, in_streaming=False,
        ),
        OverFunction(
            "LAG", f"LAG(value [, offset [, default]]) {_OVER}",
            "Returns the value of the row that is `offset` rows (1 if not given) before the row, or `default` (NULL if "
            "not given) if there is no such row.", _get_first_argument, _spell_shift,
        ),
        OverFunction(
            "LEAD", f"LEAD(value [, offset [, default]]) {_OVER}",
            "Returns the value of the row that is `offset` rows (1 if not given) after the row, or `default` (NULL if "
            "not given) if there is no such row.", _get_first_argument, _spell_shift, in_streaming=False,
        ),
    )
}  # fmt: skip
