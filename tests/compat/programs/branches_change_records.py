"""A function may change its input: other branches of the same stream, and side outputs, do not see the change."""

from pyflink.common import Row, Types
from pyflink.datastream import DataStream, OutputTag, ProcessFunction, StreamExecutionEnvironment

ORDER = "key"
WATERMARKS = "final"
TEXTS = Types.TUPLE([Types.STRING(), Types.STRING()])
SIDE = OutputTag("side", Types.PICKLED_BYTE_ARRAY())


def change(name):
    def changed(value):
        value["v"].append(name)
        return name, str(value)

    return changed


def change_row(row):
    row[0] = -row[0]
    return "row-changed", str(row[0])


class Twice(ProcessFunction):
    def process_element(self, value, ctx):
        shared = {"v": [value]}
        yield shared
        yield SIDE, shared


def define(env: StreamExecutionEnvironment) -> DataStream:
    numbers = env.from_collection([1, 2, 3])
    dicts = numbers.map(lambda x: {"v": [x]})
    branches = [dicts.map(change("one"), TEXTS), dicts.map(change("two"), TEXTS)]
    branches.append(dicts.key_by(lambda d: len(d["v"])).map(change("keyed"), TEXTS))
    branches.append(dicts.map(lambda d: ("unchanged", str(d)), TEXTS))
    rows = numbers.map(lambda x: Row(x, "x"), Types.ROW([Types.INT(), Types.STRING()]))
    branches += [rows.map(change_row, TEXTS), rows.map(lambda r: ("row", str(r[0])), TEXTS)]
    both = numbers.process(Twice())
    branches.append(both.map(change("main"), TEXTS))
    branches.append(both.get_side_output(SIDE).map(lambda d: ("side", str(d)), TEXTS))
    return branches[0].union(*branches[1:])
