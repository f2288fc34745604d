"""from_pandas and to_pandas keep nested rows and arrays; NaN and None are NULL; a schema gives names or types."""

import datetime
import decimal

from pyflink.table import DataTypes, StreamTableEnvironment

ORDER = "all"
WATERMARKS = "final"

D = DataTypes


def text(value):
    if hasattr(value, "tolist"):
        value = value.tolist()
    return f"{type(value).__name__}:{value!r}"


def describe(name, frame):
    yield f"{name} columns {list(frame.columns)} {[str(dtype) for dtype in frame.dtypes]} {len(frame)}"
    for i in range(len(frame)):
        yield f"{name} " + " ".join(text(frame.iloc[i, j]) for j in range(frame.shape[1]))


def define(env):
    import numpy as np
    import pandas as pd

    t_env = StreamTableEnvironment.create(env)
    t_env.get_config().set_local_timezone("UTC")
    lines = []
    frame = pd.DataFrame(
        {
            "i8": np.int8([1, 2]), "i64": np.int64([3, 4]), "f32": np.float32([1.5, 2.5]), "f64": [1.0, float("nan")],
            "b": [True, False], "s": ["a", None], "y": [b"x", b"y"],
            "d": [datetime.date(2020, 1, 1), None], "t": [datetime.time(1, 2, 3), datetime.time(4, 5, 6)],
            "dec": [decimal.Decimal("1.50"), None], "ts": [pd.Timestamp("2020-01-01T01:02:03"), pd.NaT],
            "arr": [["p", "q"], None], "row": [{"x": 1, "y": "u"}, {"x": 2, "y": None}],
        },
        index=[7, 8],
    )
    lines += describe("derived", t_env.from_pandas(frame).to_pandas())
    row = D.ROW([D.FIELD("x", D.INT()), D.FIELD("y", D.STRING())])
    typed = t_env.from_pandas(
        frame[["i8", "f64", "dec", "ts", "row"]], [D.INT(), D.BIGINT(), D.DECIMAL(38, 18), D.TIMESTAMP(3), row]
    )
    lines += [f"typed names {typed.get_schema().get_field_names()}"]
    lines += describe("typed", typed.to_pandas())
    named = t_env.from_pandas(frame[["i8", "s"]], ["n", "m"], 2)
    lines += describe("named", named.to_pandas())
    lines += describe("empty", named.filter(named.n > 5).to_pandas())
    zoned = pd.DataFrame({"c": [pd.Timestamp("2026-01-01T00:00:00+01:00")]})
    lines += describe("zone", t_env.from_pandas(zoned).to_pandas())
    lines += describe("ltz", t_env.from_pandas(zoned, [D.TIMESTAMP_LTZ(3)]).to_pandas())
    for wrong in (D.STRING(), D.TINYINT()):
        try:
            t_env.from_pandas(pd.DataFrame({"c": [1000]}), [wrong])
            lines.append("accepted")
        except Exception:
            lines.append("refused")
    fields = row.fields.copy()
    fields.reverse()
    lines.append(f"fields {[field.name for field in fields]} {row.names}")
    return lines
