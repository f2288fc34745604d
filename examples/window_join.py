"""Window join and co-group of clicks and purchases in the same minute."""

from millstream.common import Duration, Time, Types, WatermarkStrategy
from millstream.datastream import StreamExecutionEnvironment
from millstream.datastream.functions import CoGroupFunction
from millstream.datastream.window import TumblingEventTimeWindows

KIND = Types.TUPLE([Types.STRING(), Types.LONG(), Types.STRING()])  # user, second, what
CLICKS = [("ada", 5, "/tea"), ("ada", 20, "/jam"), ("bob", 30, "/tea"), ("ada", 70, "/tea")]
PURCHASES = [("ada", 40, "tea"), ("bob", 65, "tea")]
MINUTE = TumblingEventTimeWindows.of(Time.minutes(1))


class Unsold(CoGroupFunction):
    """Users who looked and did not buy; a join would not see them."""

    def co_group(self, first, second):
        clicks = list(first)
        if clicks and not list(second):
            yield f"{clicks[0][0]} only looked at {', '.join(click[2] for click in clicks)}"


def timed(env, rows):
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5))
    stream = env.from_collection(rows, KIND)
    return stream.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(lambda row, _: row[1] * 1000))


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    clicks, purchases = timed(env, CLICKS), timed(env, PURCHASES)
    (
        clicks.join(purchases)
        .where(lambda click: click[0])
        .equal_to(lambda purchase: purchase[0])
        .window(MINUTE)
        .apply(lambda click, purchase: f"{click[0]} saw {click[2]} and bought {purchase[2]}")
        .print()
    )
    clicks.co_group(purchases).where(0).equal_to(0).window(MINUTE).apply(Unsold()).print()
    env.execute("window join")


if __name__ == "__main__":
    main()
