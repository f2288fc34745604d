"""Keys may be ints, strings, tuples, Rows, floats, bools or None where untyped; equal keys meet, typed and untyped."""

from pyflink.common import Row, Types
from pyflink.datastream import DataStream, StreamExecutionEnvironment

ORDER = "key"
WATERMARKS = "final"


def define(env: StreamExecutionEnvironment) -> DataStream:
    numbers = env.from_collection(list(range(24)))
    selectors = [
        ("int", lambda n: n % 3, Types.INT()),
        ("untyped", lambda n: n % 3, None),
        ("text", lambda n: "ab"[n % 2], Types.STRING()),
        ("tuple", lambda n: (n % 2, "xy"[n % 2]), Types.TUPLE([Types.INT(), Types.STRING()])),
        ("pickled-tuple", lambda n: (n % 2, ("p", n % 3)), None),
        ("row", lambda n: Row(n % 2, n % 3), Types.ROW([Types.INT(), Types.INT()])),
        ("pickled-row", lambda n: Row(a=n % 2), None),
        ("float", lambda n: n % 3 / 2, Types.DOUBLE()),
        ("bool", lambda n: n % 5 == 0, Types.BOOLEAN()),
        ("none", lambda n: None if n % 2 else "some", None),
    ]
    streams = [
        numbers.map(lambda n, name=name, selector=selector: (f"{name}-{selector(n)!r}".replace(" ", ""), n))
        .key_by(lambda e, selector=selector: selector(e[1]), key_type=kind)
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
        for name, selector, kind in selectors
    ]
    return streams[0].union(*streams[1:])
