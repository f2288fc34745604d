"""A generator of random numbers that is always seeded.

Promises: the same seed gives the same numbers in every process.
Does not know: what is drawn."""

from __future__ import annotations

import random


class SeededRandom(random.Random):
    """Python's generator, which Faker needs. It cannot be created without a seed."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
