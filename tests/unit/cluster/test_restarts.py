"""Flink's restart strategies and their defaults, as functions of the failures so far."""

import pytest

from millstream.cluster.restarts import ExponentialDelay, FailureRate, FixedDelay, NoRestart, restart_strategy
from millstream.config.configuration import Configuration


def delays(strategy, *times):
    """The delay after a failure at each time; None where the strategy gives up."""
    found = []
    for at in times:
        strategy, delay = strategy.after_failure(at)
        found.append(delay)
    return found


def configured(checkpointing=True, **options):
    configuration = Configuration()
    for key, value in options.items():
        configuration.set_string("restart-strategy." + key.replace("__", ".").replace("_", "-"), value)
    return restart_strategy(configuration, checkpointing=checkpointing)


def test_the_strategy_none_never_restarts():
    assert delays(NoRestart(), 0, 1) == [None, None]


def test_fixed_delay_has_a_number_of_attempts():
    assert delays(FixedDelay(2, 7), 0, 0, 0) == [7, 7, None]


def test_failure_rate_ignores_failures_older_than_its_interval():
    rate = FailureRate(most=2, interval=100, delay=5)
    assert delays(rate, 0, 50, 101, 151, 200) == [5, 5, 5, 5, None]
    assert delays(rate, 0, 50, 100) == [5, 5, None], "at the interval's very end it still counts"


def test_exponential_delay_grows_to_its_bound_and_is_reset_after_a_quiet_time():
    growing = ExponentialDelay(initial=100, most=400, multiplier=2.0, quiet=1000)
    assert delays(growing, 0, 100, 300, 700, 1100) == [100, 200, 400, 400, 400]
    assert delays(growing, 0, 100, 100 + 1199, 100 + 1199 + 1400) == [100, 200, 400, 100]


def test_exponential_delay_may_have_a_number_of_attempts():
    growing = ExponentialDelay(100, 400, 2.0, 1000, attempts=2)
    assert delays(growing, 0, 1, 2) == [100, 200, None]
    assert delays(growing, 0, 1, 5000, 5001, 5002) == [100, 200, 100, 200, None]


def test_the_defaults_are_flinks():
    assert configured(checkpointing=False) == NoRestart()
    for_ever = 2**31 - 1
    assert configured() == ExponentialDelay(1000, 60_000, 1.5, quiet=3_600_000, attempts=for_ever)
    assert configured(type="fixed-delay") == FixedDelay(1, 1000)
    assert configured(type="failure-rate") == FailureRate(1, 60_000, 1000)


@pytest.mark.parametrize("word", ["none", "off", "disable"])
def test_restarts_can_be_disabled(word):
    assert configured(type=word) == NoRestart()


def test_options_set_the_strategy():
    assert configured(type="fixed-delay", fixed_delay__attempts="4", fixed_delay__delay="2 s") == FixedDelay(4, 2000)
    asked = configured(
        type="exponential-delay",
        exponential_delay__initial_backoff="10 ms",
        exponential_delay__max_backoff="1 s",
        exponential_delay__backoff_multiplier="3",
        exponential_delay__reset_backoff_threshold="5 s",
        exponential_delay__attempts_before_reset_backoff="8",
    )
    assert (asked.initial, asked.most, asked.multiplier, asked.quiet, asked.attempts) == (10, 1000, 3.0, 5000, 8)
