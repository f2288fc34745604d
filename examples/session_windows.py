"""Session windows: the clicks of each user, where a session ends after half a minute without a click."""

from collections.abc import Iterable, Iterator

from millstream.common import Time, Types, WatermarkStrategy
from millstream.datastream import StreamExecutionEnvironment, WindowFunction
from millstream.datastream.window import EventTimeSessionWindows, TimeWindow

CLICKS = [("ada", 0), ("bob", 4_000), ("ada", 10_000), ("ada", 35_000), ("bob", 50_000), ("ada", 90_000)]


class Session(WindowFunction):
    def apply(self, key: str, window: TimeWindow, inputs: Iterable[tuple[str, int]]) -> Iterator[str]:
        yield f"{key}: {len(list(inputs))} clicks from {window.start // 1000} to {window.end // 1000} s"


env = StreamExecutionEnvironment.get_execution_environment()
strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda click, _: click[1])
(
    env.from_collection(CLICKS)
    .assign_timestamps_and_watermarks(strategy)
    .key_by(lambda click: click[0], Types.STRING())
    .window(EventTimeSessionWindows.with_gap(Time.seconds(30)))
    .apply(Session(), Types.STRING())
    .print()
)
env.execute("session windows")
