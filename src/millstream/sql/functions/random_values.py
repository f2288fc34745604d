"""RAND, RAND_INTEGER and UUID.

Promises: without a seed, each call has its own random numbers, and a replay of the epoch has the same. With a constant
seed, a call returns the sequence of java.util.Random with that seed, one number per row, continued from epoch to epoch
in each subtask. With a seed from a column, a row has the first number of its seed. Flink does the same.
Does not know: operators; the frame contains the random number generators."""

from __future__ import annotations

import uuid
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.sql.columns import scalar_value
from millstream.sql.expressions.datums import as_array
from millstream.sql.functions.java_random import JavaRandom


def draw_uuids(frame: Any) -> pa.Array:
    """Draw one UUID for each row."""
    drawn = _get_random_numbers(frame).generator().bytes(16 * frame.count)
    result = [str(uuid.UUID(bytes=drawn[i : i + 16], version=4)) for i in range(0, 16 * frame.count, 16)]
    return pa.array(result, pa.string())


def draw_doubles(frame: Any, seed: Any) -> pa.Array:
    """Draw one number from 0 to below 1 for each row."""
    if _is_missing(seed):
        return pa.array(_get_random_numbers(frame).generator().random(frame.count))
    if isinstance(seed, pa.Scalar):
        return pa.array(_continue_sequence(frame, seed, lambda random: random.doubles(frame.count)))
    return pa.array([JavaRandom(int(row_seed)).doubles(1)[0] for row_seed in _fill_nulls(seed, 0)], pa.float64())


def draw_integers(frame: Any, seed: Any, bound: Any) -> pa.Array:
    """Draw one integer of at least 0 and less than the bound for each row; NULL where the bound is NULL."""
    bounds = as_array(bound, frame.count)
    limits = _fill_nulls(bounds, 1)
    if len(limits) and limits.min() <= 0:
        msg = f"the bound must be positive, not {limits.min()}"
        raise ValueError(msg)
    if _is_missing(seed):
        drawn = _get_random_numbers(frame).generator().integers(0, limits)
    elif not isinstance(seed, pa.Scalar):
        pairs = zip(_fill_nulls(seed, 0), limits, strict=True)
        drawn = [JavaRandom(int(row_seed)).integers(int(limit), 1)[0] for row_seed, limit in pairs]
    elif isinstance(bound, pa.Scalar):
        drawn = _continue_sequence(
            frame, seed, lambda random: random.integers(int(limits[0]) if len(limits) else 1, len(limits))
        )
    else:
        drawn = _continue_sequence(frame, seed, lambda random: [random.integers(int(limit), 1)[0] for limit in limits])
    nulls = bounds.is_null().to_numpy(zero_copy_only=False)
    return pa.array(np.asarray(drawn, dtype=np.int32), mask=nulls)


def _get_random_numbers(frame: Any) -> Any:
    if frame.draws is None:
        msg = "a random value can only be computed while the job runs"
        raise ValueError(msg)
    return frame.draws


def _fill_nulls(column: pa.Array, replacement: int) -> np.ndarray:
    return pc.fill_null(column, replacement).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def _is_missing(seed: Any) -> bool:
    return seed is None or (isinstance(seed, pa.Scalar) and not seed.is_valid)


def _continue_sequence(frame: Any, seed: pa.Scalar, draw: Any) -> Any:
    """Draw from the sequence of a seed, continued from the last batch."""
    draws, name = _get_random_numbers(frame), f"{frame.site}/{scalar_value(seed)}"
    random = JavaRandom(scalar_value(seed), draws.position(name))
    drawn = draw(random)
    draws.advance(name, random.position)
    return drawn
