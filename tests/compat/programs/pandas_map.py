"""Table.map gives a pandas function one DataFrame, in which the fields of nested rows are columns; results go by position."""

from pyflink.common import Row
from pyflink.table import DataTypes, StreamTableEnvironment
from pyflink.table.udf import udf

ORDER = "none"
WATERMARKS = "final"

D = DataTypes


def define(env):
    t_env = StreamTableEnvironment.create(env)
    nested = D.ROW([D.FIELD("c", D.INT()), D.FIELD("d", D.STRING())])
    table = t_env.from_elements(
        [(1, Row(2, "x")), (2, Row(3, "y")), (3, Row(4, None))],
        D.ROW([D.FIELD("a", D.TINYINT()), D.FIELD("b", nested)]),
    )
    pair = D.ROW([D.FIELD("u", D.BIGINT()), D.FIELD("v", D.STRING())])

    def combine(frame):
        import pandas as pd

        names = ",".join(frame.columns)
        return pd.DataFrame({"ignored": frame.a + frame.c, "names": [f"{names} {d}" for d in frame.d]})

    first = udf(combine, result_type=pair, func_type="pandas")

    def multiply(frame):  # PyFlink chains both functions: the names are those of the first result, not of its type
        import pandas as pd

        return pd.concat([frame.iloc[:, 0] * 10, frame.iloc[:, 1]], axis=1)

    second = udf(multiply, result_type=pair, func_type="pandas")
    with table.map(first).map(second).execute().collect() as rows:
        lines = [f"{row[0]} {row[1]}" for row in rows]
    return lines
