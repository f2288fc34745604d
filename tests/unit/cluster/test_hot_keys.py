"""Keys with many records: shares over all subtasks, bounded, hidden on request."""

from __future__ import annotations

import pytest

from millstream.cluster.hot_keys import HotKey, HotKeys, KeySample


def test_samples_are_weighted_by_the_records_of_their_subtask() -> None:
    keys = HotKeys(hidden=False)
    keys.add({"sums": [KeySample(0, 900, 10, [("a", 5), ("b", 2)]), KeySample(1, 100, 10, [("c", 10)])]})
    assert keys.of("sums") == [
        HotKey("a", 0, pytest.approx(0.45)),
        HotKey("b", 0, pytest.approx(0.18)),
        HotKey("c", 1, pytest.approx(0.1)),
    ]
    assert keys.of("another") == []
    keys.add({"even": [KeySample(0, 900, 256, [("a", 2)])]})
    assert keys.of("even") == [], "less than a hundredth"


def test_old_samples_are_forgotten_and_few_keys_are_shown() -> None:
    keys = HotKeys(hidden=False)
    keys.add({"sums": [KeySample(0, 100, 10, [("old", 10)])]})
    for _ in range(300):
        keys.add({"sums": [KeySample(0, 100, 20, [(f"key {n}", 2) for n in range(20)])]})
    shown = keys.of("sums")
    assert len(shown) == 10
    assert "old" not in {hot.key for hot in shown}


def test_hidden_keys_are_not_kept() -> None:
    keys = HotKeys(hidden=True)
    keys.add({"sums": [KeySample(0, 100, 10, [("secret", 10)])]})
    assert keys.of("sums") == []
