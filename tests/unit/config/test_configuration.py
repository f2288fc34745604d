"""Configuration and options: Flink's rules for reading values, and a warning or an error for unknown keys."""

from __future__ import annotations

import copy
from datetime import timedelta

import pytest

from millstream import options
from millstream.common import ExecutionConfig, RestartStrategies, Time
from millstream.config.configuration import ConfigOption, ConfigOptions, Configuration, MalformedValue, MemorySize
from millstream.option_keys import ignored_keys, unknown_keys
from millstream.times import Duration, MalformedDuration, millis


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10 s", 10_000),
        ("500ms", 500),
        ("5", 5),
        ("2 days", 172_800_000),
        ("3 m", 180_000),
        ("5 S", 5_000),
        ("PT10S", 10_000),
        ("P1DT1.5S", 86_401_500),
    ],
)
def test_durations_are_read_as_flink_reads_them(text: str, expected: int) -> None:
    assert Duration.parse(text).to_milliseconds() == expected
    assert Duration.parse(str(Duration.parse(text))) == Duration.parse(text)


@pytest.mark.parametrize("text", ["", "abc", "1.5 s", "-1 s", "10 parsec", "P"])
def test_durations_that_flink_refuses_are_refused(text: str) -> None:
    with pytest.raises(MalformedDuration):
        Duration.parse(text)


def test_every_form_of_a_duration_has_its_milliseconds() -> None:
    forms = (1_500, timedelta(seconds=1.5), Duration.of_millis(1_500), Time.milliseconds(1_500))
    assert {millis(form) for form in forms} == {1_500}
    with pytest.raises(MalformedDuration):
        millis("1 s")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "size", "written"),
    [
        ("64mb", 64 << 20, "64 mb"),
        ("1g", 1 << 30, "1 gb"),
        ("1024", 1024, "1 kb"),
        ("2 kibibytes", 2048, "2 kb"),
        ("5 bytes", 5, "5 bytes"),
    ],
)
def test_memory_sizes_are_read_and_written_as_flink_does(text: str, size: int, written: str) -> None:
    assert MemorySize.parse(text) == size
    assert str(MemorySize.parse(text)) == written


def test_values_keep_the_type_they_were_set_with_and_are_read_from_text() -> None:
    configuration = Configuration()
    configuration.set_string("s", "a b").set_integer("i", 5).set_boolean("b", True)
    configuration.set_float("f", 1).set_bytearray("y", bytearray(b"ab"))
    assert configuration.to_dict() == {"s": "a b", "i": "5", "b": "true", "f": "1.0", "y": "!!binary |-\n  YWI="}
    typed: dict[str, object] = {}
    configuration.add_all_to_dict(typed)
    assert typed == {"s": "a b", "i": 5, "b": True, "f": 1.0, "y": b"ab"}
    read = Configuration.from_dict(configuration.to_dict())
    assert (read.get_integer("i", 0), read.get_boolean("b", False), read.get_float("i", 0.0)) == (5, True, 5.0)
    assert read.get_bytearray("y", bytearray()) == b"ab"
    assert read != configuration
    assert copy.deepcopy(configuration) == configuration == Configuration(configuration)
    assert Configuration().add_all(configuration, "p.").key_set() == {"p.s", "p.i", "p.b", "p.f", "p.y"}
    assert (configuration.remove_config("s"), configuration.remove_config("s")) == (True, False)


@pytest.mark.parametrize(
    ("key", "value", "read"),
    [
        ("k", "yes", lambda c: c.get_boolean("k", False)),
        ("k", " true", lambda c: c.get_boolean("k", False)),
        ("k", "5.5", lambda c: c.get_integer("k", 0)),
        ("k", "1_000", lambda c: c.get_integer("k", 0)),
        ("k", "a", lambda c: c.get_float("k", 0.0)),
        ("k", "a", lambda c: c.get_bytearray("k", bytearray())),
        (options.CHECKPOINT_TIMEOUT.key, "10 parsec", lambda c: c.get(options.CHECKPOINT_TIMEOUT)),
        (options.EPOCH_MAX_BYTES.key, "much", lambda c: c.get(options.EPOCH_MAX_BYTES)),
        (options.STATE_BACKEND.key, "paper", lambda c: c.get(options.STATE_BACKEND)),
    ],
)
def test_a_malformed_value_is_named_with_its_key_and_the_form_expected(key: str, value: str, read: object) -> None:
    with pytest.raises(MalformedValue) as caught:
        read(Configuration.from_dict({key: value}))  # type: ignore[operator]
    assert (caught.value.key, caught.value.value) == (key, value)
    assert "expected" in str(caught.value)


def test_an_option_is_read_under_its_key_its_older_keys_or_by_default() -> None:
    assert Configuration().get(options.CHECKPOINT_TIMEOUT) == Duration.of_minutes(10)
    assert Configuration.from_dict({"state.backend": "RocksDB"}).get(options.STATE_BACKEND) == "rocksdb"
    assert Configuration().set(options.CHECKPOINT_INTERVAL, Duration.of_seconds(3)).to_dict() == {
        "execution.checkpointing.interval": "3 s"
    }
    both = Configuration.from_dict({"state.backend": "rocksdb", "state.backend.type": "hashmap"})
    assert both.get(options.STATE_BACKEND) == "hashmap"
    built = ConfigOptions.key("a").int_type().default_value(5)
    assert (Configuration().get(built), Configuration().set_string("a", "7").get(built)) == (5, 7)


def test_lists_and_maps_survive_their_text() -> None:
    items = ConfigOption("l", [], type=list)
    pairs = ConfigOption("m", {}, type=dict)
    configuration = Configuration().set(items, ["a", "b;c", "", "it's"]).set(pairs, {"k": "v", "x:y": "1,2", "e": ""})
    assert Configuration.from_dict(configuration.to_dict()).get(items) == ["a", "b;c", "", "it's"]
    assert Configuration.from_dict(configuration.to_dict()).get(pairs) == {"k": "v", "x:y": "1,2", "e": ""}
    assert [Configuration.parse_list_value(text) for text in ("a;b", "[a, b]", "- a\n- b", "")] == [["a", "b"]] * 3 + [
        []
    ]


def test_defaults_can_be_read_back_from_their_own_text() -> None:
    for option in options.OPTIONS.values():
        assert option.description.endswith(".")
        if option.default is not None:
            assert (
                Configuration.from_dict(Configuration().set(option, option.default).to_dict()).get(option)
                == option.default
            )


def test_misspelt_options_are_detected_and_foreign_keys_ignored() -> None:
    configuration = Configuration.from_dict(
        dict.fromkeys(
            (
                *("execution.checkpointing.intervall", "exection.checkpointing.interval", "millstream.epoch.zzz"),
                *("execution.checkpointing.interval", "state.backend", "spark.sql.shuffle.partitions", "my.own.key"),
                *("taskmanager.numberOfTaskSlots", "metrics.reporters", "pipeline.jars"),
            ),
            "1",
        )
    )
    unknown = dict(unknown_keys(configuration))
    assert set(unknown) == {
        "execution.checkpointing.intervall",
        "exection.checkpointing.interval",
        "millstream.epoch.zzz",
    }
    assert (
        unknown["execution.checkpointing.intervall"]
        == unknown["exection.checkpointing.interval"]
        == "execution.checkpointing.interval"
    )
    assert [key for key, _ in ignored_keys(configuration)] == ["pipeline.jars"]


def test_execution_config_is_a_view_of_options() -> None:
    configuration = Configuration()
    config = ExecutionConfig(configuration)
    assert (config.get_parallelism(), config.get_max_parallelism(), config.get_auto_watermark_interval()) == (
        -1,
        -1,
        200,
    )
    config.set_parallelism(4).set_max_parallelism(64).set_auto_watermark_interval(50).enable_object_reuse()
    config.set_global_job_parameters({"a": 1, "b": "x,y"})
    assert configuration.get(options.PARALLELISM) == 4
    assert configuration.get(options.AUTO_WATERMARK_INTERVAL) == Duration.of_millis(50)
    assert config.is_object_reuse_enabled()
    assert config.get_global_job_parameters() == {"a": "1", "b": "x,y"}
    assert config.set_parallelism(ExecutionConfig.PARALLELISM_DEFAULT).get_parallelism() == -1
    for wrong in (lambda: config.set_parallelism(0), lambda: config.set_max_parallelism(40_000)):
        with pytest.raises(ValueError, match="parallelism"):
            wrong()


def test_restart_strategies_name_options_that_exist() -> None:
    for strategy in (
        RestartStrategies.no_restart(),
        RestartStrategies.fall_back_restart(),
        RestartStrategies.fixed_delay_restart(3, 1_000),
        RestartStrategies.failure_rate_restart(3, timedelta(minutes=5), 50),
    ):
        configuration = Configuration.from_dict(strategy.to_options())
        assert unknown_keys(configuration) == []
        for key in configuration.key_set():
            configuration.get(options.OPTIONS[key])
    fixed = Configuration.from_dict(RestartStrategies.fixed_delay_restart(3, 1_500).to_options())
    assert (fixed.get(options.FIXED_DELAY_ATTEMPTS), fixed.get(options.FIXED_DELAY_DELAY)) == (
        3,
        Duration.of_millis(1_500),
    )
