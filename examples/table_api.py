"""The Table API: the operations of SQL as methods, a Python function in a query, and a result with updates."""

from millstream.table import DataTypes, EnvironmentSettings, TableEnvironment
from millstream.table.expressions import col
from millstream.table.udf import udf


@udf(result_type=DataTypes.STRING())
def size_of(cents: int) -> str:
    return "large" if cents >= 1000 else "small"


env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
orders = env.from_elements(
    [("ada", 450), ("bob", 1200), ("ada", 2000), ("eve", 90), ("bob", 30)],
    DataTypes.ROW([DataTypes.FIELD("customer", DataTypes.STRING()), DataTypes.FIELD("cents", DataTypes.BIGINT())]),
)
by_size = (
    orders.filter(col("cents") > 50)
    .add_columns(size_of(col("cents")).alias("size"))
    .group_by(col("size"))
    .select(col("size"), col("cents").sum.alias("cents"), col("customer").count.alias("orders"))
)

final = {}
with by_size.execute().collect() as rows:  # a changelog: an update replaces the row of its group
    for row in rows:
        if row.get_row_kind().name in ("INSERT", "UPDATE_AFTER"):
            final[row[0]] = row
for size, row in sorted(final.items()):
    print(f"{size}: {row[2]} orders, {row[1]} cents")
