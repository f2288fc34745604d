"""One checkpoint per interval, with the minimum pause after the last one, and none if nothing happened since."""

from millstream.cluster.checkpoint_schedule import CheckpointSchedule


def test_never_without_an_interval():
    assert not CheckpointSchedule(None).after_start(0, 0).is_due(10**9, 5)


def test_due_after_the_interval():
    schedule = CheckpointSchedule(100).after_start(1000, 0)
    assert not schedule.is_due(1099, 1)
    assert schedule.is_due(1100, 1)


def test_without_new_epochs_no_checkpoint_is_due():
    schedule = CheckpointSchedule(100).after_start(1000, 7)
    assert not schedule.is_due(5000, 7)
    assert schedule.after_checkpoint(5000, 5001, 8).is_due(5100, 9)
    assert not schedule.after_checkpoint(5000, 5001, 8).is_due(9000, 8)


def test_the_pause_begins_when_the_last_one_is_complete():
    schedule = CheckpointSchedule(100, min_pause=50).after_start(0, 0).after_checkpoint(triggered=100, now=190, epoch=1)
    assert not schedule.is_due(200, 2)
    assert not schedule.is_due(239, 2)
    assert schedule.is_due(240, 2)


def test_a_failed_checkpoint_is_repeated_after_the_interval_even_without_new_epochs():
    schedule = CheckpointSchedule(100).after_start(0, 0).after_failure(100)
    assert not schedule.is_due(199, 1)
    assert schedule.is_due(200, 1)
