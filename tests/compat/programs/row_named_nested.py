"""Rows by name, position and attribute; nested Rows take their names from the declared type."""

from pyflink.common import Row, Types
from pyflink.datastream import DataStream, StreamExecutionEnvironment

ORDER = "all"
WATERMARKS = "final"


def define(env: StreamExecutionEnvironment) -> DataStream:
    place = Types.ROW_NAMED(["city", "zip"], [Types.STRING(), Types.INT()])
    person = Types.ROW_NAMED(["name", "age", "place"], [Types.STRING(), Types.INT(), place])
    data = [Row(f"p{i}", i * 7 % 50, Row(f"c{i % 3}", 1000 + i)) for i in range(20)]
    flat = Types.ROW_NAMED(["who", "where", "sum"], [Types.STRING(), place, Types.INT()])

    def reshape(row):
        moved = Row(zip=row.place.zip + 1, city=row["place"]["city"].upper()) if row.age % 2 else row[2]
        return Row(row.name, moved, row.age + len(row))

    return env.from_collection(data, type_info=person).map(reshape, output_type=flat)
