"""`java.util.Random`, vectorized.

Promises: the sequence of Java's generator with a seed, from any position.
Does not know: the functions that use it."""

from __future__ import annotations

import numpy as np

_MULTIPLIER, _INCREMENT, _MASK = 0x5DEECE66D, 0xB, (1 << 48) - 1


class JavaRandom:
    """A generator at a position, the number of steps after the seed."""

    def __init__(self, seed: int, position: int = 0) -> None:
        self.position = position
        self._state = _jump((seed ^ _MULTIPLIER) & _MASK, position)

    def doubles(self, count: int) -> np.ndarray:
        """Return the next results of `nextDouble`."""
        states = self._steps(2 * count)
        high, low = states[0::2] >> np.uint64(22), states[1::2] >> np.uint64(21)
        return ((high << np.uint64(27)) + low).astype(np.float64) * 2.0**-53

    def integers(self, bound: int, count: int) -> np.ndarray:
        """Return the next results of `nextInt(bound)`."""
        if bound & -bound == bound:
            bits = self._steps(count) >> np.uint64(17)
            return ((bits * np.uint64(bound)) >> np.uint64(31)).astype(np.int64)
        accepted = np.empty(0, dtype=np.int64)
        while len(accepted) < count:
            # Numbers are rarely rejected; only the missing ones are generated, so that the position is that of Java.
            bits = (self._steps(count - len(accepted)) >> np.uint64(17)).astype(np.int64)
            values = bits % bound
            accepted = np.concatenate([accepted, values[bits - values + (bound - 1) < 1 << 31]])
        return accepted

    def _steps(self, count: int) -> np.ndarray:
        """Return the states after each of the next steps. Arithmetic is modulo 2 ** 64; 48 bits are used."""
        if not count:
            return np.empty(0, dtype=np.uint64)
        powers = np.cumprod(np.full(count, _MULTIPLIER, dtype=np.uint64), dtype=np.uint64)
        sums = np.cumsum(np.concatenate([np.ones(1, dtype=np.uint64), powers[:-1]]), dtype=np.uint64)
        states = (powers * np.uint64(self._state) + sums * np.uint64(_INCREMENT)) & np.uint64(_MASK)
        self.position += count
        self._state = int(states[-1])
        return states


def _jump(state: int, steps: int) -> int:
    """Return the state after a number of steps, by repeated squaring."""
    multiplier, increment = _MULTIPLIER, _INCREMENT
    while steps:
        if steps & 1:
            state = (multiplier * state + increment) & _MASK
        increment = (multiplier + 1) * increment & _MASK
        multiplier = multiplier * multiplier & _MASK
        steps >>= 1
    return state
