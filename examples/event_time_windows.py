"""Event-time windows: the highest temperature per sensor and ten seconds, of measurements out of order."""

from collections.abc import Iterable, Iterator

from millstream.common import Duration, Time, Types, WatermarkStrategy
from millstream.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from millstream.datastream.window import TumblingEventTimeWindows

# (sensor, milliseconds, degrees)
READINGS = [
    ("north", 1_000, 20.0),
    ("south", 2_000, 25.5),
    ("north", 9_500, 22.0),
    ("south", 11_000, 26.5),
    ("north", 8_000, 24.0),  # arrives after a later one, and still counts in its own window
    ("north", 12_000, 21.0),
    ("south", 19_000, 27.5),
]


class Hottest(ProcessWindowFunction):
    def process(
        self, key: str, context: ProcessWindowFunction.Context, elements: Iterable[tuple[str, int, float]]
    ) -> Iterator[str]:
        window = context.window()
        hottest = max(degrees for _, _, degrees in elements)
        yield f"{key} from {window.start // 1000} to {window.end // 1000} s: at most {hottest} degrees"


env = StreamExecutionEnvironment.get_execution_environment()
strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5))
(
    env.from_collection(READINGS, Types.TUPLE([Types.STRING(), Types.LONG(), Types.DOUBLE()]))
    .assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(lambda reading, _: reading[1]))
    .key_by(lambda reading: reading[0], Types.STRING())
    .window(TumblingEventTimeWindows.of(Time.seconds(10)))
    .process(Hottest(), Types.STRING())
    .print()
)
env.execute("event time windows")
