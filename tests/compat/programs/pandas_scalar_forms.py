"""A pandas function gets a Series of the column's type for each column, a DataFrame for a row, and values of literals."""

import datetime
import decimal

from pyflink.common import Row
from pyflink.table import DataTypes, StreamTableEnvironment
from pyflink.table.expressions import col, lit
from pyflink.table.udf import udf

ORDER = "none"
WATERMARKS = "final"

D = DataTypes


def forms(*args):
    import pandas as pd

    texts = []
    for i in range(len(args[0])):
        parts = []
        for arg in args:
            if isinstance(arg, pd.DataFrame):
                cells = [f"{name}:{arg[name].dtype}:{arg[name].iloc[i]!r}" for name in arg.columns]
                parts.append("DataFrame(" + ",".join(cells) + ")")
            elif isinstance(arg, pd.Series):
                value = arg.iloc[i]
                text = value.tolist() if hasattr(value, "tolist") else value
                parts.append(f"Series({arg.dtype},{type(value).__name__},{text!r})")
            else:
                parts.append(f"{type(arg).__name__}({arg!r})")
        texts.append(" ".join(parts))
    return pd.Series(texts)


def define(env):
    t_env = StreamTableEnvironment.create(env)
    row = D.ROW([D.FIELD("x", D.INT()), D.FIELD("y", D.STRING()), D.FIELD("z", D.ARRAY(D.INT()))])
    table = t_env.from_elements(
        [
            (
                1, 2, 3, 4, True, 1.5, 2.5, "a", bytearray(b"x"), decimal.Decimal("1.50"), datetime.date(2020, 1, 2),
                datetime.time(1, 2, 3), datetime.datetime(2020, 1, 2, 3, 4, 5, 678000), [1, 2], Row(7, "u", [3]),
            ),
            (
                5, 6, 7, 8, False, 3.5, 4.5, "b", bytearray(b"y"), decimal.Decimal("2.50"), datetime.date(2021, 1, 2),
                datetime.time(2, 2, 3), datetime.datetime(2021, 1, 2, 3, 4, 5), [3], Row(8, "v", []),
            ),
        ],
        D.ROW([
            D.FIELD("a", D.TINYINT()), D.FIELD("b", D.SMALLINT()), D.FIELD("c", D.INT()), D.FIELD("d", D.BIGINT()),
            D.FIELD("e", D.BOOLEAN()), D.FIELD("f", D.FLOAT()), D.FIELD("g", D.DOUBLE()), D.FIELD("h", D.STRING()),
            D.FIELD("i", D.BYTES()), D.FIELD("j", D.DECIMAL(10, 2)), D.FIELD("k", D.DATE()), D.FIELD("l", D.TIME()),
            D.FIELD("m", D.TIMESTAMP(3)), D.FIELD("n", D.ARRAY(D.INT())), D.FIELD("o", row),
        ]),
    )
    function = udf(forms, result_type=D.STRING(), func_type="pandas")
    numbers = table.select(function(col("a"), col("b"), col("c"), col("d"), col("e"), col("f"), col("g")).alias("t"))
    others = table.select(
        function(col("h"), col("i"), col("j"), col("k"), col("l"), col("m"), col("n"), col("o")).alias("t")
    )
    literals = table.select(function(col("a"), lit(1), lit("q"), lit(True), lit(2.5)).alias("t"))
    with numbers.union_all(others).union_all(literals).execute().collect() as rows:
        lines = [row[0] for row in rows]
    return lines
