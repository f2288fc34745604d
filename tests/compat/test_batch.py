"""A program ends alike, run as a stream or as a batch; and as a batch it gives what Flink's batch gives."""

from __future__ import annotations

import pytest
from test_golden import NOT_RUN, ORDER_SHOWS, as_millstream

import record
from millstream.datastream import RuntimeExecutionMode, StreamExecutionEnvironment

RUNNING = {
    "aggregations_basic": "sum, min and max after every element",
    "aggregations_row": "sum, min and max after every element",
    "aggregations_tuple": "sum, min and max after every element",
    "key_types": "a sum after every element",
    "reduce_in_place": "a reduce after every element",
    "reduce_rolling": "a reduce after every element",
    "reduce_with_state": "a reduce after every element",
    "word_count": "a count after every element",
}
"""Programs that tell a value again and again: of each key the last one is compared."""

DIFFERENT = {
    "float_collected": "runs its jobs itself, so its mode is not set from outside",
    "end_of_input": "processing-time timers fire at the end of a key, in a stream not at the end of input",
    "timers_each_watermark": "shows watermarks",
    "timers_event_time": "sets timers in timers, which a batch drops",
    "trigger_continuous": "sets timers in timers, which a batch drops",
    "trigger_custom": "fires by the order in which elements of different times come",
    "window_late_dropped": "drops late elements, of which a batch has none",
    "window_lateness": "fires again for late elements, of which a batch has none",
    "window_session_lateness": "fires again for late elements, of which a batch has none",
    "window_tumbling_process": "shows the order of elements, which is that of time in a batch",
}
"""Programs whose results are about what a batch does not have, with the reason."""

NAMES = [
    name
    for name in record.program_names()
    if name not in NOT_RUN
    and name not in DIFFERENT
    and not name.startswith(("batch_", "cases_", "pandas_", "plan_", "table_"))
]
RECORDED = sorted(path.stem for path in record.AS_BATCH.glob("*.txt") if not path.stem.startswith("cases_"))
"""Not among these are programs whose elements have no timestamps and show their order: Flink's sort is not stable, ours
keeps the order of each channel; and what cannot be recorded in BATCH mode."""


@pytest.fixture(autouse=True)
def inline(inline_engine: None) -> None:
    """Run jobs in this process, without Spark."""


def run(name: str, mode: RuntimeExecutionMode, parallelism: int = 1) -> list[str]:
    program = record.load(name, as_millstream)
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    if mode is RuntimeExecutionMode.STREAMING and record.read_golden(name).watermarks == "each":
        env._configuration.set_string("millstream.epoch.max-records", "1")
    stream = program.define(env)
    env.set_runtime_mode(mode)
    return [record.text_of(element) for element in stream.execute_and_collect()]


def final(name: str, lines: list[str]) -> list[str]:
    """What counts of an output: all of it, or of each key the last line."""
    return sorted({record.key_of(line): line for line in lines}.values() if name in RUNNING else lines)


@pytest.mark.parametrize("name", NAMES)
def test_the_batch_ends_as_the_stream_does(name: str) -> None:
    streamed = final(name, run(name, RuntimeExecutionMode.STREAMING))
    assert final(name, run(name, RuntimeExecutionMode.BATCH)) == streamed
    if name not in ORDER_SHOWS:
        assert final(name, run(name, RuntimeExecutionMode.BATCH, 3)) == streamed


@pytest.mark.parametrize("name", RECORDED)
def test_the_batch_gives_what_flinks_batch_gives(name: str) -> None:
    golden = record.read_golden(name, record.AS_BATCH)
    assert record.arranged(golden.order, run(name, RuntimeExecutionMode.BATCH)) == golden.lines


def test_what_differs_is_compared_with_flink() -> None:
    not_recorded = {"end_of_input", "float_collected"}  # one shows the time of day, the other sets its mode itself
    assert {name for name in DIFFERENT if name not in RECORDED} == not_recorded
