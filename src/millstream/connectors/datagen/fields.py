"""Fields of generated records.

Promises: a field is a frozen value; the cell of record i depends on the seed, the field's name and i alone, however
the records are cut into ranges. Columns are generated as a whole, never cell by cell.
Does not know: how many records there are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from collections.abc import Sequence as Many
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.connectors.datagen import random_columns
from millstream.connectors.datagen.random_columns import Hashes, Integers
from millstream.errors import UserError
from millstream.types.factory import TypeInformation, Types

_DICTIONARY = 1 << 16  # up to this many distinct strings are generated once and then looked up


class InvalidField(UserError, ValueError):
    """A field with invalid parameters."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)


class Field(ABC):
    """A column of generated values.

    Example:
        >>> import numpy as np
        >>> import pyarrow as pa
        >>> from millstream.common import Types
        >>> class Squares(Field):
        ...     @property
        ...     def value_type(self):
        ...         return Types.LONG()
        ...
        ...     def column(self, key, indexes, before):
        ...         return pa.array(indexes.view(np.int64) ** 2)
        >>> Squares().column(0, np.arange(4, dtype=np.uint64), {}).to_pylist()
        [0, 1, 4, 9]

    """

    @property
    @abstractmethod
    def value_type(self) -> TypeInformation:
        """Return the type of the values."""

    @abstractmethod
    def column(self, key: int, indexes: Hashes, before: Mapping[str, pa.Array]) -> pa.Array:
        """Return the values at `indexes`. `key` is derived from seed and name; `before` holds the earlier columns.

        Args:
            key: The seed of the column, derived from the seed of the source and the name of the field.
            indexes: The indexes of the records.
            before: The columns of the fields before this one, by name.

        """

    def at_time(self, now: int) -> Field:
        """Return the field for a processing time in milliseconds; only fields of current times depend on it.

        Args:
            now: Milliseconds since 1970-01-01 UTC.

        """
        return self


@dataclass(frozen=True)
class Sequence(Field):
    """start, start + step, start + 2 * step, ...

    Example:
        >>> import numpy as np
        >>> Sequence(start=100, step=10).column(0, np.arange(3, dtype=np.uint64), {}).to_pylist()
        [100, 110, 120]

    """

    start: int = 0
    step: int = 1

    @property
    def value_type(self) -> TypeInformation:
        """The type of 64-bit integers."""
        return Types.LONG()

    def column(self, key: int, indexes: Hashes, before: Mapping[str, pa.Array]) -> pa.Array:
        """Return the values at `indexes`."""
        return pa.array(indexes.view(np.int64) * np.int64(self.step) + np.int64(self.start))


@dataclass(frozen=True)
class RandomInt(Field):
    """Whole numbers from `low` to `high`, both included. With `skew`, low numbers are more frequent, by Zipf's law
    with that exponent: a column of keys with a few hot keys.

    Example:
        >>> customer = RandomInt(1, 1_000, skew=1.0)

    """

    low: int
    high: int
    skew: float = 0.0

    def __post_init__(self) -> None:
        if not -(1 << 63) <= self.low <= self.high < 1 << 63:
            msg = f"there are no 64-bit integers from {self.low} to {self.high}"
            raise InvalidField(msg)
        if self.skew < 0:
            msg = f"the skew {self.skew} is negative"
            raise InvalidField(msg, hint="0 is no skew, 1 is Zipf's law")

    @property
    def value_type(self) -> TypeInformation:
        """The type of 64-bit integers."""
        return Types.LONG()

    def column(self, key: int, indexes: Hashes, before: Mapping[str, pa.Array]) -> pa.Array:
        """Return the values at `indexes`."""
        drawn = random_columns.draw_skewed(
            self.high - self.low + 1, self.skew, random_columns.hash_indexes(key, indexes)
        )
        return pa.array(drawn.view(np.int64) + np.int64(self.low))


@dataclass(frozen=True)
class RandomFloat(Field):
    """Numbers from `low` to below `high`.

    Example:
        >>> price = RandomFloat(0.5, 99.5)

    """

    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            msg = f"there are no numbers from {self.low} to {self.high}"
            raise InvalidField(msg)

    @property
    def value_type(self) -> TypeInformation:
        """The type of 64-bit floating point numbers."""
        return Types.DOUBLE()

    def column(self, key: int, indexes: Hashes, before: Mapping[str, pa.Array]) -> pa.Array:
        """Return the values at `indexes`."""
        drawn = random_columns.to_fractions(random_columns.hash_indexes(key, indexes))
        drawn *= self.high - self.low
        drawn += self.low
        return pa.array(drawn)


@dataclass(frozen=True)
class RandomBoolean(Field):
    """True with the given probability.

    Example:
        >>> is_returned = RandomBoolean(probability=0.02)

    """

    probability: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.probability <= 1:
            msg = f"the probability {self.probability} is not between 0 and 1"
            raise InvalidField(msg, hint="use a number from 0 to 1")

    @property
    def value_type(self) -> TypeInformation:
        """The type of booleans."""
        return Types.BOOLEAN()

    def column(self, key: int, indexes: Hashes, before: Mapping[str, pa.Array]) -> pa.Array:
        """Return the values at `indexes`."""
        return pa.array(random_columns.to_fractions(random_columns.hash_indexes(key, indexes)) < self.probability)


@dataclass(frozen=True)
class RandomString(Field):
    """Strings that begin with `prefix`; at most `cardinality` of them are distinct (None for no limit).

    With `length`, as many random letters follow the prefix; without, a number below the cardinality. `skew` is that of
    RandomInt.

    Example:
        >>> customer = RandomString("customer-", cardinality=1_000)
        >>> token = RandomString(length=16)

    """

    prefix: str = ""
    cardinality: int | None = None
    length: int | None = None
    skew: float = 0.0

    def __post_init__(self) -> None:
        if self.cardinality is None and self.length is None:
            msg = "random strings need a cardinality or a length"
            raise InvalidField(msg, hint="as in RandomString(length=8)")
        if self.cardinality is not None and not 0 < self.cardinality <= 1 << 63:
            msg = f"the cardinality {self.cardinality} is not between 1 and 2**63"
            raise InvalidField(msg, hint="use an integer greater than 0")
        if self.length is not None and self.length < 0:
            msg = f"the length {self.length} is negative"
            raise InvalidField(msg)
        if self.skew < 0 or (self.skew and self.cardinality is None):
            msg = f"the skew {self.skew} is negative, or there is no cardinality"
            raise InvalidField(msg, hint="a skew is at least 0 and needs a cardinality")

    @property
    def value_type(self) -> TypeInformation:
        """The type of strings."""
        return Types.STRING()

    def column(self, key: int, indexes: Hashes, before: Mapping[str, pa.Array]) -> pa.Array:
        """Return the values at `indexes`."""
        if self.cardinality is None:
            return self._texts(key, indexes)
        drawn = random_columns.draw_skewed(self.cardinality, self.skew, random_columns.hash_indexes(key, indexes))
        if self.cardinality > min(_DICTIONARY, 4 * len(indexes)):
            return self._texts(key, drawn)
        return self._texts(key, np.arange(self.cardinality, dtype=np.uint64)).take(pa.array(drawn))

    def _texts(self, key: int, numbers: Hashes) -> pa.Array:
        if self.length is not None:
            return random_columns.draw_letters(
                random_columns.derive_key(key, "letters"), numbers, self.length, self.prefix
            )
        return pc.binary_join_element_wise(self.prefix, pa.array(numbers).cast(pa.string()), "")


@dataclass(frozen=True)
class Choice(Field):
    """One of the values, with a frequency in proportion to its weight; without weights, all are equally frequent.

    Example:
        >>> country = Choice(["de", "fr", "it"], weights=[5, 3, 2])

    """

    values: Many[Any]
    weights: Many[float] | None = None
    type_info: TypeInformation | None = None

    def __post_init__(self) -> None:
        if not len(self.values):
            msg = "a choice needs at least one value"
            raise InvalidField(msg)
        if self.weights is not None:
            if len(self.weights) != len(self.values):
                msg = f"{len(self.weights)} weights for {len(self.values)} values"
                raise InvalidField(msg)
            if min(self.weights) < 0 or not sum(self.weights) > 0:
                msg = f"the weights {list(self.weights)} cannot be used"
                raise InvalidField(msg, hint="no weight is negative, and not all are 0")
        self.value_type.conform(list(self.values))

    @property
    def value_type(self) -> TypeInformation:
        """The declared type, or the common type of the values."""
        if self.type_info is not None:
            return self.type_info
        value_classes = {type(value) for value in self.values} - {type(None)}
        common_type = _TYPES.get(next(iter(value_classes))) if len(value_classes) == 1 else None
        if common_type is None:
            msg = f"the values {list(self.values)} have no common type"
            raise InvalidField(msg, hint="pass type_info=Types...")
        return common_type

    def column(self, key: int, indexes: Hashes, before: Mapping[str, pa.Array]) -> pa.Array:
        """Return the values at `indexes`."""
        hashes = random_columns.hash_indexes(key, indexes)
        if self.weights is None:
            drawn: Any = random_columns.draw_below(len(self.values), hashes)
        else:
            bounds = np.cumsum(np.asarray(self.weights, dtype=np.float64))
            drawn = np.searchsorted(bounds / bounds[-1], random_columns.to_fractions(hashes), side="right")
        return self.value_type.to_arrow(list(self.values)).take(pa.array(drawn))


_TYPES: dict[type, TypeInformation] = {
    str: Types.STRING(),
    int: Types.LONG(),
    float: Types.DOUBLE(),
    bool: Types.BOOLEAN(),
    bytes: Types.PRIMITIVE_ARRAY(Types.BYTE()),
}


def _check_time_type(time_type: TypeInformation) -> None:
    if time_type not in (Types.LONG(), Types.SQL_TIMESTAMP()):
        msg = f"times cannot be of type {time_type}"
        raise InvalidField(msg, hint="use Types.LONG() or Types.SQL_TIMESTAMP()")


@dataclass(frozen=True)
class RandomTimestamp(Field):
    """Times from `low` to `high`, both included, in milliseconds since 1970; as numbers or as SQL timestamps.

    Example:
        >>> from millstream.common import Types
        >>> ordered_at = RandomTimestamp(1_700_000_000_000, 1_700_086_400_000, Types.SQL_TIMESTAMP())

    """

    low: int
    high: int
    type_info: TypeInformation = field(default_factory=Types.LONG)

    def __post_init__(self) -> None:
        _check_time_type(self.type_info)
        RandomInt(self.low, self.high)

    @property
    def value_type(self) -> TypeInformation:
        """The type of integers or timestamps."""
        return self.type_info

    def column(self, key: int, indexes: Hashes, before: Mapping[str, pa.Array]) -> pa.Array:
        """Return the values at `indexes`."""
        return RandomInt(self.low, self.high).column(key, indexes, before).cast(self.value_type.arrow_type)


@dataclass(frozen=True)
class EventTime(Field):
    """Times that increase by `step_ms` from record to record, minus a random delay of at most `disorder_ms`.

    A watermark that allows `disorder_ms` of disorder makes none of them late. Milliseconds since 1970, as numbers or as
    SQL timestamps.

    Example:
        >>> import numpy as np
        >>> EventTime(start=1_000, step_ms=250).column(0, np.arange(3, dtype=np.uint64), {}).to_pylist()
        [1000, 1250, 1500]

    """

    start: int = 0
    step_ms: float = 1
    disorder_ms: int = 0
    type_info: TypeInformation = field(default_factory=Types.LONG)

    def __post_init__(self) -> None:
        _check_time_type(self.type_info)
        if self.step_ms < 0 or self.disorder_ms < 0:
            msg = f"the step of {self.step_ms} ms or the disorder of {self.disorder_ms} ms is negative"
            raise InvalidField(msg, hint="both are at least 0")

    @property
    def value_type(self) -> TypeInformation:
        """The type of integers or timestamps."""
        return self.type_info

    def times(self, key: int, indexes: Hashes) -> Integers:
        """Return the times as integers.

        Args:
            key: The seed of the column, derived from the seed of the source and the name of the field.
            indexes: The indexes of the records.

        """
        if isinstance(self.step_ms, int):
            times = indexes.view(np.int64) * np.int64(self.step_ms)
        else:
            times = np.floor(indexes * float(self.step_ms)).astype(np.int64)
        times += np.int64(self.start)
        if self.disorder_ms:
            times -= random_columns.draw_below(self.disorder_ms + 1, random_columns.hash_indexes(key, indexes)).view(
                np.int64
            )
        return times

    def column(self, key: int, indexes: Hashes, before: Mapping[str, pa.Array]) -> pa.Array:
        """Return the values at `indexes`."""
        return pa.array(self.times(key, indexes)).cast(self.value_type.arrow_type)


@dataclass(frozen=True)
class Computed(Field):
    """The result of a function of the columns before it, given as Arrow arrays by name; rows must be independent.

    Example:
        >>> import pyarrow.compute as pc
        >>> from millstream.common import Types
        >>> total = Computed(lambda columns: pc.multiply(columns["price"], columns["quantity"]), Types.DOUBLE())

    """

    function: Callable[[Mapping[str, pa.Array]], Any]
    type_info: TypeInformation

    @property
    def value_type(self) -> TypeInformation:
        """The declared type."""
        return self.type_info

    def column(self, key: int, indexes: Hashes, before: Mapping[str, pa.Array]) -> pa.Array:
        """Return the values at `indexes`."""
        result = self.function(before)
        array = result.combine_chunks() if isinstance(result, pa.ChunkedArray) else result
        array = array if isinstance(array, pa.Array) else pa.array(array)
        if len(array) != len(indexes):
            msg = f"a computed column has {len(array)} values for {len(indexes)} records"
            raise InvalidField(msg)
        return array.cast(self.value_type.arrow_type)
