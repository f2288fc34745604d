"""The combiner before an exchange: one record for each key, and bounded memory."""

from __future__ import annotations

from collections import Counter

import pytest

from millstream.runtime import combiner
from millstream.runtime.batch import Batch
from millstream.runtime.keys import KeySelection
from millstream.types.factory import Types

PAIR = Types.TUPLE([Types.STRING(), Types.LONG()])
KEY = KeySelection(Types.STRING(), field=0)


def added(one, other):
    return one[0], one[1] + other[1]


def batches(words, size=10):
    return [Batch(PAIR, rows=[(word, 1) for word in words[at : at + size]]) for at in range(0, len(words), size)]


def combine(words, **options):
    instance = combiner.Combiner("op", KEY, added, **options)
    sent = [part for batch in batches(words) for part in instance.add(batch)]
    return sent, list(instance.flush())


@pytest.fixture
def memory(monkeypatch):
    """Set the memory that the process seems to have; a key costs a hundred bytes."""
    monkeypatch.setattr(combiner, "_CHECK_EVERY", 20)
    seen = []

    def resident():
        seen.append(1)
        return 100 * 20 * len(seen)

    monkeypatch.setattr(combiner, "resident_memory", resident)
    return seen


def totals(made):
    counts = Counter()
    for batch in made:
        for word, count in batch.rows():
            counts[word] += count
    return counts


WORDS = [f"w{(number // 3) ** 2 % 173}" for number in range(1_000)]


def test_without_memory_at_most_one_batch_of_keys_is_kept(memory):
    sent, rest = combine(WORDS, batch_size=30)
    assert sent  # there are more keys than this
    assert all(len(batch) <= 30 for batch in [*sent, *rest])
    assert totals([*sent, *rest]) == Counter(WORDS)


def test_with_enough_memory_every_key_is_sent_once(memory):
    sent, rest = combine(WORDS, batch_size=30, memory_limit=1 << 30)
    assert sent == []
    assert all(len(batch) <= 30 for batch in rest)
    assert sum(map(len, rest)) == len(set(WORDS))
    assert totals(rest) == Counter(WORDS)


def test_the_memory_limit_is_kept(memory):
    sent, rest = combine(WORDS, batch_size=30, memory_limit=2_500)
    assert sent
    assert totals([*sent, *rest]) == Counter(WORDS)


def test_without_a_measure_of_memory_only_one_batch_is_kept(memory, monkeypatch):
    monkeypatch.setattr(combiner, "resident_memory", lambda: None)
    sent, _ = combine(WORDS, batch_size=30, memory_limit=1 << 30)
    assert sent
