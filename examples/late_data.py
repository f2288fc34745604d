"""Late records: within the allowed lateness they update their window, later ones go to a side output.

Watermarks are emitted between epochs, so this program reads three records per epoch; a real stream does not need
that."""

from millstream.common import Configuration, Time, Types, WatermarkStrategy
from millstream.datastream import OutputTag, StreamExecutionEnvironment
from millstream.datastream.window import TumblingEventTimeWindows

PAIR = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()])
LATE = OutputTag("late", PAIR)

# (key, seconds, amount); a line is an epoch
RECORDS = [
    *[("a", 1, 1), ("a", 9, 2), ("a", 12, 4)],
    *[("a", 8, 8), ("a", 13, 16), ("a", 17, 32)],  # 8 s comes after the window ended, within the allowed five seconds
    *[("a", 5, 64), ("a", 26, 128), ("a", 27, 256)],  # 5 s is too late now
]

configuration = Configuration()
configuration.set_integer("millstream.epoch.max-records", 3)
env = StreamExecutionEnvironment.get_execution_environment(configuration)
env.set_parallelism(1)

strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda record, _: record[1] * 1000)
sums = (
    env.from_collection(RECORDS, PAIR)
    .assign_timestamps_and_watermarks(strategy)
    .key_by(lambda record: record[0], Types.STRING())
    .window(TumblingEventTimeWindows.of(Time.seconds(10)))
    .allowed_lateness(5_000)
    .side_output_late_data(LATE)
    .reduce(lambda one, other: (one[0], max(one[1], other[1]), one[2] + other[2]))
)
sums.print("window")
sums.get_side_output(LATE).print("late")
env.execute("late data")
