"""The rows whose expressions are compared with Flink's: a column of each type, with usual values, limits and NULL.

The recorder and the test share this file; it imports the standard library only."""

from __future__ import annotations

import json
from pathlib import Path

GOLDEN = Path(__file__).parents[1] / "golden" / "sql" / "ends" / "expressions.json"
CHUNK = 40
ZONE = "Europe/Berlin"

_COLUMNS: dict[str, tuple[str, str, str]] = {
    "b": ("BOOLEAN", "TRUE", "FALSE"),
    "ti": ("TINYINT", "127", "-7"),
    "si": ("SMALLINT", "-300", "2"),
    "i": ("INT", "2147483647", "-5"),
    "bi": ("BIGINT", "9223372036854775807", "3"),
    "f": ("FLOAT", "1.5", "-0.1"),
    "d": ("DOUBLE", "-2.25", "0.5"),
    "dc": ("DECIMAL(10, 2)", "12345678.95", "-0.05"),
    "dc0": ("DECIMAL(20, 0)", "'99999999999999999999'", "0"),
    "dc38": ("DECIMAL(38, 18)", "3.141592653589793238", "-0.000000000000000001"),
    "c5": ("CHAR(5)", "'ab'", "''"),
    "vc": ("VARCHAR(7)", "'Hello W'", "' x '"),
    "s": ("STRING", "'Hello, World'", "'-12'"),
    "s2": ("STRING", "'o'", "''"),
    "bin": ("BINARY(3)", "X'010203'", "X'000000'"),
    "byt": ("BYTES", "X'48656C6C6F'", "X''"),
    "dt": ("DATE", "'2024-02-29'", "'1969-12-31'"),
    "tm": ("TIME", "'23:59:59'", "'00:00:00'"),
    "ts": ("TIMESTAMP(3)", "'2024-02-29 23:59:59.999'", "'1969-12-31 00:00:00.001'"),
    "ts6": ("TIMESTAMP(6)", "'2024-02-29 23:59:59.999999'", "'1969-12-31 00:00:00.000001'"),
    "ts9": ("TIMESTAMP(9)", "'2024-02-29 23:59:59.999999999'", "'1969-12-31 00:00:00.000000001'"),
    "lz": ("TIMESTAMP_LTZ(3)", "'2024-03-31 01:30:00.123'", "'1969-12-31 23:59:59.999'"),
    "ym": ("INTERVAL YEAR TO MONTH", "INTERVAL '1-2' YEAR TO MONTH", "INTERVAL '-1-2' YEAR TO MONTH"),
    "dsec": (
        "INTERVAL DAY TO SECOND(3)",
        "INTERVAL '1 02:03:04.567' DAY TO SECOND(3)",
        "INTERVAL '-1 02:03:04.567' DAY TO SECOND(3)",
    ),
}


def _cell(column: str, row: int) -> str:
    data_type, *values = _COLUMNS[column]
    value = [*values, "NULL"][row]
    return value if value.startswith("INTERVAL") else f"CAST({value} AS {data_type})"


ROWS = (
    "(VALUES "
    + ", ".join(f"({', '.join(_cell(column, row) for column in _COLUMNS)})" for row in range(3))
    + f") AS v({', '.join(_COLUMNS)})"
)


def expressions() -> list[str]:
    """Return the recorded expressions."""
    return list(json.loads(GOLDEN.read_text(encoding="utf-8")))


def select(chunk: list[str]) -> str:
    """Return a query of some expressions, one in each column."""
    return f"SELECT {', '.join(f'({sql}) AS c{n}' for n, sql in enumerate(chunk))} FROM {ROWS}"


def as_texts(view: str, count: int) -> str:
    """Return a query of the texts of all columns of a view."""
    return f"SELECT {', '.join(f'CAST(c{n} AS STRING)' for n in range(count))} FROM {view}"


def sort_column(rows: list[list[str | None]], column: int) -> list[str | None]:
    """Return the values of a column, sorted by the row number, because rows can have any order."""
    return sorted((row[column] for row in rows), key=lambda text: (text is not None, text))
