"""Settings of the execution config take effect, or a warning says that they are ignored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from millstream.cluster.job_events import CheckpointDone
from millstream.common import Configuration, Types, WatermarkStrategy
from millstream.datastream import KeyedProcessFunction, ProcessFunction, RuntimeContext, StreamExecutionEnvironment
from millstream.datastream.connectors.blackhole import BlackHoleSink
from millstream.datastream.state import ValueStateDescriptor
from millstream.errors import UserError
from millstream.event_time.watermarks import MIN_WATERMARK


def test_without_generic_types_an_undeclared_type_is_refused(env: StreamExecutionEnvironment) -> None:
    env.get_config().disable_generic_types()
    env.from_collection([1], Types.INT()).map(lambda v: v).name("vague").sink_to(BlackHoleSink())
    with pytest.raises(UserError, match="the records of 'vague' have no declared type"):
        env.execute()


def test_declared_types_pass_without_generic_types(env: StreamExecutionEnvironment) -> None:
    env.get_config().disable_generic_types()
    env.from_collection([1], Types.INT()).map(lambda v: v, Types.INT()).sink_to(BlackHoleSink())
    env.execute()


def test_without_generated_uids_an_operator_needs_a_uid(env: StreamExecutionEnvironment) -> None:
    env.get_config().disable_auto_generated_uids()
    source = env.from_collection([1], Types.INT()).uid("source")
    mapped = source.map(lambda v: v, Types.INT()).name("nameless")
    mapped.sink_to(BlackHoleSink()).uid("sink")
    with pytest.raises(UserError, match="operator 'nameless' has no uid"):
        env.get_execution_plan()
    mapped.uid("map")
    env.execute()


class Watermarks(ProcessFunction):
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
        yield ctx.timer_service().current_watermark()


@pytest.mark.parametrize("at_the_source", [True, False])
@pytest.mark.parametrize(("interval", "expected"), [(0, [MIN_WATERMARK] * 3), (200, [MIN_WATERMARK, 0, 1])])
def test_an_interval_of_zero_disables_periodic_watermarks(
    env: StreamExecutionEnvironment, interval: int, expected: list[int], at_the_source: bool
) -> None:
    env.set_parallelism(1).get_config().set_auto_watermark_interval(interval)
    env._configuration.set_string("millstream.epoch.max-records", "1")
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value)
    stream = env.from_collection([1, 2, 3], Types.INT())
    if at_the_source:
        source = env._program.transformations[stream._id].source
        env._program.clear()
        stream = env.from_source(source, strategy, "numbers")
    else:
        stream = stream.assign_timestamps_and_watermarks(strategy)
    assert list(stream.process(Watermarks(), Types.LONG()).execute_and_collect()) == expected


class Remembers(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.state = runtime_context.get_state(ValueStateDescriptor("text", Types.STRING()))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Any:
        self.state.update((self.state.value() or "") + "x" * 200)
        yield len(self.state.value())


def state_bytes(directory: Path, compressed: bool) -> int:
    configuration = Configuration()
    directory.mkdir()
    configuration.set_string("execution.checkpointing.dir", str(directory))
    configuration.set_string("millstream.epoch.max-records", "100")
    sizes: list[int] = []
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(2)
    env.enable_checkpointing(10)
    env.get_config().set_use_snapshot_compression(compressed)
    env.register_listener(lambda seen: sizes.append(seen.full_bytes) if isinstance(seen, CheckpointDone) else None)
    keyed = env.from_collection(list(range(200)), Types.INT()).key_by(lambda v: v % 100, Types.INT())
    assert sorted(keyed.process(Remembers(), Types.INT()).execute_and_collect()) == [200] * 100 + [400] * 100
    return sizes[-1]


def test_compressed_state_is_smaller_and_restores(tmp_path: Path) -> None:
    assert state_bytes(tmp_path / "small", True) < state_bytes(tmp_path / "large", False) / 2


def test_storage_in_files_needs_a_directory(env: StreamExecutionEnvironment) -> None:
    env._configuration.set_string("execution.checkpointing.storage", "filesystem")
    env.from_collection([1]).sink_to(BlackHoleSink())
    with pytest.raises(UserError, match="but no directory is set; hint: set execution"):
        env.execute()


def test_settings_without_effect_are_logged(
    env: StreamExecutionEnvironment, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("millstream.cluster.entrypoint._warned", set())
    env.get_config().disable_closure_cleaner().enable_force_kryo().enable_force_avro()
    env.get_config().set_latency_tracking_interval(5).set_task_cancellation_interval(5).set_task_cancellation_timeout(5)
    env.get_checkpoint_config().set_max_concurrent_checkpoints(2).enable_unaligned_checkpoints()
    env.from_collection([1]).sink_to(BlackHoleSink())
    env.execute()
    said = {line.split("'")[1] for line in caplog.text.splitlines() if "has no effect" in line}
    assert said == {
        "execution.checkpointing.max-concurrent-checkpoints",
        "execution.checkpointing.unaligned.enabled",
        "metrics.latency.interval",
        "pipeline.closure-cleaner-level",
        "pipeline.force-avro",
        "pipeline.force-kryo",
        "task.cancellation.interval",
    }
