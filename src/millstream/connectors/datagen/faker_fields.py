"""Fields of generated records whose values are faker expressions.

Promises: the value of record i depends on the seed, the field's name and i alone.
Does not know: how expressions are evaluated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from millstream.connectors.datagen import random_columns
from millstream.connectors.datagen.faker_expressions import compile_expression
from millstream.connectors.datagen.fields import Field
from millstream.connectors.datagen.random_columns import Hashes
from millstream.connectors.datagen.seeded import SeededRandom
from millstream.types.factory import TypeInformation, Types

_FRACTION = 2.0**64


@dataclass(frozen=True)
class FakerField(Field):
    """Texts of an expression, or lists of `length` such texts. A value is NULL with the probability `null_rate`."""

    expression: str
    null_rate: float = 0.0
    length: int | None = None

    def __post_init__(self) -> None:
        compile_expression(self.expression)

    @property
    def value_type(self) -> TypeInformation:
        """The type of texts, or of lists of texts."""
        return Types.STRING() if self.length is None else Types.LIST(Types.STRING())

    def column(self, key: int, indexes: Hashes, before: Mapping[str, pa.Array]) -> pa.Array:
        """Return the values at `indexes`."""
        draw, rng, length = compile_expression(self.expression), SeededRandom(0), self.length
        values: list[str | list[str] | None] = []
        for seed in random_columns.hash_indexes(key, indexes).tolist():
            if seed < self.null_rate * _FRACTION:
                values.append(None)
                continue
            rng.seed(seed)
            values.append(draw(rng) if length is None else [draw(rng) for _ in range(length)])
        return pa.array(values, pa.string() if length is None else pa.list_(pa.string()))


@dataclass(frozen=True)
class RelativeTime(Field):
    """Milliseconds from `least` to `most`, relative to the processing time; NULL with the probability `null_rate`."""

    least: int
    most: int
    null_rate: float = 0.0

    @property
    def value_type(self) -> TypeInformation:
        """The type of 64-bit integers."""
        return Types.LONG()

    def column(self, key: int, indexes: Hashes, before: Mapping[str, pa.Array]) -> pa.Array:
        """Return the values at `indexes`."""
        words = random_columns.hash_indexes(key, indexes)
        drawn = random_columns.draw_below(self.most - self.least + 1, words).view(np.int64) + np.int64(self.least)
        is_null = random_columns.to_fractions(random_columns.hash_indexes(key ^ 1, indexes)) < self.null_rate
        return pa.array(drawn, mask=is_null)
