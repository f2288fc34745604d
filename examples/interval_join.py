"""Interval join: each order is joined with the payments of its customer within ten seconds."""

from dataclasses import dataclass

from millstream.common import Duration, WatermarkStrategy
from millstream.datastream import StreamExecutionEnvironment
from millstream.datastream.functions import ProcessJoinFunction


@dataclass
class Order:
    customer: str
    at: int
    what: str


@dataclass
class Payment:
    customer: str
    at: int
    cents: int


ORDERS = [Order("ada", 1_000, "tea"), Order("bob", 2_000, "jam"), Order("ada", 30_000, "bread")]
PAYMENTS = [Payment("ada", 4_000, 300), Payment("bob", 13_000, 450), Payment("ada", 31_500, 280)]


class Receipt(ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        wait = (ctx.get_right_timestamp() - ctx.get_left_timestamp()) / 1000
        yield f"{left.customer} paid {right.cents} cents for {left.what} after {wait:g} s"


def timed(stream):
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5))
    return stream.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(lambda event, _: event.at))


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    orders = timed(env.from_collection(ORDERS)).key_by("customer")
    payments = timed(env.from_collection(PAYMENTS)).key_by("customer")
    orders.interval_join(payments).between(Duration.of_millis(0), Duration.of_seconds(10)).process(Receipt()).print()
    env.execute("interval join")


if __name__ == "__main__":
    main()
