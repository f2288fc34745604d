"""Watermark strategies, and the watermarks of their generators."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.event_time.watermarks import (
    MIN_WATERMARK,
    BoundedOutOfOrderness,
    FieldTimestampAssigner,
    InvalidWatermarkStrategy,
    Monotonous,
    TimestampAssigner,
    Watermark,
    WatermarkGenerator,
    WatermarkStrategy,
)
from millstream.times import Duration
from millstream.types.fields import NoSuchField
from millstream.types.row import Row


class Emitted(list):
    """A watermark output that collects the watermarks."""

    def emit_watermark(self, watermark):
        self.append(watermark.timestamp)


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Punctuated(WatermarkGenerator):
    def on_event(self, event, timestamp, output):
        if event == "end":
            output.emit_watermark(Watermark(timestamp))

    def on_periodic_emit(self, output):
        pass


@given(st.lists(st.integers(-(10**12), 10**12), min_size=1), st.integers(0, 10**6))
def test_bounded_out_of_orderness_is_behind_the_largest_timestamp(timestamps, bound):
    generator = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(bound)).create_watermark_generator()
    output = Emitted()
    for timestamp in timestamps:
        generator.on_event(None, timestamp, output)
        generator.on_periodic_emit(output)
    assert output == [max(timestamps[: i + 1]) - bound - 1 for i in range(len(timestamps))]


def test_a_generator_without_records_emits_the_smallest_watermark():
    output = Emitted()
    WatermarkStrategy.for_bounded_out_of_orderness(
        Duration.of_seconds(5)
    ).create_watermark_generator().on_periodic_emit(output)
    assert output == [MIN_WATERMARK]


def test_setting_a_part_of_a_strategy_keeps_the_others():
    strategy = (
        WatermarkStrategy.for_monotonous_timestamps()
        .with_timestamp_assigner(SecondField())
        .with_idleness(Duration.of_minutes(1))
        .with_watermark_alignment("group", Duration.of_seconds(20))
    )
    assert strategy.generator == Monotonous()
    assert isinstance(strategy.timestamp_assigner, SecondField)
    assert strategy.idle_timeout == 60_000
    assert (strategy.alignment.group, strategy.alignment.max_drift, strategy.alignment.update_interval) == (
        "group",
        20_000,
        1000,
    )


def test_a_strategy_can_be_pickled_and_compares_by_value():
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(timedelta(seconds=2)).with_timestamp_assigner("ts")
    assert pickle.loads(pickle.dumps(strategy)) == strategy
    assert strategy == WatermarkStrategy(BoundedOutOfOrderness(2000), FieldTimestampAssigner("ts"))


@pytest.mark.parametrize(
    ("assigner", "record"),
    [
        ("ts", Row(ts=7)),
        ("ts", {"ts": 7}),
        (1, ("a", 7)),
        ("ts", {"ts": datetime(1970, 1, 1, 0, 0, 0, 7000)}),  # noqa: DTZ001 - means UTC
        ("ts", {"ts": datetime(1970, 1, 1, 0, 0, 0, 7000, UTC)}),
        (lambda record: record + 1, 6),
        (lambda record, timestamp: record + timestamp, 2),
    ],
)
def test_timestamps_are_read_from_fields_and_callables(assigner, record):
    strategy = WatermarkStrategy.no_watermarks().with_timestamp_assigner(assigner)
    assert strategy.timestamp_assigner.extract_timestamp(record, 5) == 7


def test_a_missing_field_is_named():
    with pytest.raises(NoSuchField, match="has no field 'ts'"):
        FieldTimestampAssigner("ts").extract_timestamp(Row(time=7), MIN_WATERMARK)


def test_a_user_defined_generator_is_created_for_each_call():
    strategy = WatermarkStrategy.for_generator(Punctuated)
    output = Emitted()
    generator = strategy.create_watermark_generator()
    for event in ("a", "end"):
        generator.on_event(event, 3, output)
    assert output == [3]
    assert strategy.create_watermark_generator() is not generator


@pytest.mark.parametrize(
    "make",
    [
        lambda: WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(-1)),
        lambda: WatermarkStrategy.no_watermarks().with_idleness(Duration.of_millis(0)),
        lambda: WatermarkStrategy.no_watermarks().with_timestamp_assigner(SecondField),
        lambda: WatermarkStrategy.no_watermarks().with_timestamp_assigner(lambda: 1),
        lambda: WatermarkStrategy.for_generator("nothing"),
    ],
)
def test_invalid_parts_are_refused(make):
    with pytest.raises(InvalidWatermarkStrategy, match="must be"):
        make()
