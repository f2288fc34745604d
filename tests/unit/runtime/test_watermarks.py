"""The watermark of an operator is the minimum of its channels that are not idle, and never decreases."""

import pickle

from hypothesis import given
from hypothesis import strategies as st

from millstream.event_time.watermarks import MIN_WATERMARK
from millstream.runtime.watermarks import CombinedWatermark, SentWatermarks, channel_watermarks

CHANNELS = [(0, 0), (0, 1), (1, 0)]
news = st.lists(st.tuples(st.sampled_from(CHANNELS), st.none() | st.integers(-5, 30)), max_size=30)


@given(news, st.data())
def test_the_watermark_is_the_least_of_active_channels_and_monotone_across_epochs(steps, data):
    marks = dict.fromkeys(CHANNELS, MIN_WATERMARK)
    combined = CombinedWatermark(channel_watermarks(CHANNELS, {}, MIN_WATERMARK), MIN_WATERMARK)
    best, idle = MIN_WATERMARK, False
    for channel, mark in steps:
        known = marks[channel]
        marks[channel] = mark if mark is None or known is None else max(mark, known)
        active = [each for each in marks.values() if each is not None]
        expected, now_idle = max([best, min(active)]) if active else best, not active
        assert combined.update(channel, mark) is (expected != best or now_idle != idle)
        best, idle = expected, now_idle
        assert (combined.watermark, combined.idle) == (best, idle)
        if data.draw(st.booleans()):  # the epoch ends; the next may be run elsewhere
            sent = {
                0: SentWatermarks.of([marks[0, 0], marks[0, 1]]),
                1: SentWatermarks.of([marks[1, 0], None]),  # the second subtask does not reach this one
            }
            channels = channel_watermarks(CHANNELS, pickle.loads(pickle.dumps(sent)), combined.watermark)
            combined = CombinedWatermark(channels, combined.watermark)
            assert combined.idle is idle


def test_a_channel_cannot_move_its_watermark_back():
    combined = CombinedWatermark({(0, 0): MIN_WATERMARK, (0, 1): MIN_WATERMARK}, MIN_WATERMARK)
    combined.update((0, 0), 30)
    combined.update((0, 0), 10)
    combined.update((0, 1), 25)
    assert combined.watermark == 25


def test_an_unknown_channel_holds_the_watermark_back():
    combined = CombinedWatermark({(0, 0): MIN_WATERMARK, (0, 1): MIN_WATERMARK}, MIN_WATERMARK)
    assert not combined.update((0, 0), 30)
    assert combined.watermark == MIN_WATERMARK
    assert combined.update((0, 1), None)
    assert combined.watermark == 30
