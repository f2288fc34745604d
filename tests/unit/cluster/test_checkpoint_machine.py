"""One checkpoint every interval, never sooner than the pause after the last, none when nothing happened since."""

from millstream.cluster.checkpoint_machine import Schedule


def test_never_without_an_interval():
    assert not Schedule(None).started(0, 0).due(10**9, 5)


def test_due_after_the_interval():
    schedule = Schedule(100).started(1000, 0)
    assert not schedule.due(1099, 1)
    assert schedule.due(1100, 1)


def test_nothing_new_nothing_due():
    schedule = Schedule(100).started(1000, 7)
    assert not schedule.due(5000, 7)
    assert schedule.completed(5000, 5001, 8).due(5100, 9)
    assert not schedule.completed(5000, 5001, 8).due(9000, 8)


def test_the_pause_begins_when_the_last_one_is_complete():
    schedule = Schedule(100, min_pause=50).started(0, 0).completed(triggered=100, now=190, epoch=1)
    assert not schedule.due(200, 2)
    assert not schedule.due(239, 2)
    assert schedule.due(240, 2)


def test_a_failed_one_is_tried_again_after_the_interval_though_nothing_is_new():
    schedule = Schedule(100).started(0, 0).missed(100)
    assert not schedule.due(199, 1)
    assert schedule.due(200, 1)
