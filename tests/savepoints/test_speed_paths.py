"""The fast paths for many keys give the results of the general path."""

from __future__ import annotations

import numpy as np
import pytest

from millstream.state.key_groups import KeyGrouper

LARGE = 1 << 17


@pytest.mark.parametrize("odd", [None, 1 << 70, -(1 << 70), True, 1.5], ids=repr)
def test_integers_have_the_same_key_groups_in_bulk_as_one_by_one(odd):
    keys = [number * 7919 - (1 << 62) for number in range(LARGE)]
    keys[LARGE // 2] = keys[LARGE // 2] if odd is None else odd
    found = KeyGrouper(128).of_many(keys)
    one = KeyGrouper(128)
    places = [*range(0, LARGE, 1009), LARGE // 2]
    assert np.array_equal(found[places], [one.of(keys[place]) for place in places])
