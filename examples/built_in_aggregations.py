"""Built-in aggregations run on whole columns, without a Python call for each record."""

from millstream.common import Duration, Time, WatermarkStrategy
from millstream.datastream import StreamExecutionEnvironment
from millstream.datastream.aggregations import Aggregations, Count, Max, Min, Sum
from millstream.datastream.connectors.datagen import DataGenSource, EventTime, RandomInt, RandomString
from millstream.datastream.window import TumblingEventTimeWindows

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(2)

source = DataGenSource(
    fields={
        "shop": RandomString(prefix="shop-", cardinality=3),
        "cents": RandomInt(100, 9_900),
        "time": EventTime(start=0, step_ms=2, disorder_ms=50),
    },
    count=30_000,
    seed=7,
)
strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(50))
sales = env.from_source(source, strategy, "sales")
(
    sales.key_by("shop")
    .window(TumblingEventTimeWindows.of(Time.seconds(20)))
    .aggregate(Aggregations(n=Count(), cents=Sum("cents"), least=Min("cents"), most=Max("cents")))
    .print()
)
env.execute("built-in aggregations")
