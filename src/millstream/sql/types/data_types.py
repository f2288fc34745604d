"""Flink's logical types: frozen values with Flink's names and text.

Promises: two types are equal when Flink says so, nullability included.
Does not know: Arrow, Python values; what two types have in common (`common_types`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeVar

MAX_LENGTH = 2**31 - 1
MAX_PRECISION = 38
T = TypeVar("T", bound="DataType")


@dataclass(frozen=True, kw_only=True)
class DataType:
    """A logical type. `null` says whether NULL is a value of it; `ordered` whether rows can be sorted by its values."""

    root: ClassVar[str] = ""
    ordered: ClassVar[bool] = True
    null: bool = True

    def not_null(self: T) -> T:
        """The same type without NULL."""
        return replace(self, null=False)

    def nullable(self: T) -> T:
        """The same type with NULL."""
        return replace(self, null=True)

    def with_null(self: T, null: bool) -> T:
        """The same type with or without NULL."""
        return self if self.null == null else replace(self, null=null)

    def bridged_to(self: T, conversion_cls: object) -> T:
        """Accepted for PyFlink programs: there are no Java classes to bridge to."""
        return self

    def text(self) -> str:
        """The type as Flink writes it, without its nullability."""
        return self.root

    def __str__(self) -> str:
        return self.text() + ("" if self.null else " NOT NULL")

    def __repr__(self) -> str:
        return str(self)

    def __ne__(self, other: object) -> bool:
        return not self == other

    @classmethod
    def type_name(cls) -> str:
        """Flink's word for the type."""
        return cls.root

    def same(self, other: DataType) -> bool:
        """Whether both are equal but for nullability."""
        return self.nullable() == other.nullable()


class AtomicType(DataType):
    """A type of single values."""


class NumericType(AtomicType):
    """Numbers."""


@dataclass(frozen=True, repr=False)
class NullType(AtomicType):
    """The type of NULL itself."""

    root: ClassVar[str] = "NULL"


@dataclass(frozen=True, repr=False)
class SizedType(AtomicType):
    """Characters or bytes, so many of them; `unlimited` names the type of any number, where it has a name."""

    length: int = 1
    unlimited: ClassVar[str] = ""

    def text(self) -> str:
        """As DataType promises."""
        return self.unlimited if self.unlimited and self.length == MAX_LENGTH else f"{self.root}({self.length})"


@dataclass(frozen=True, repr=False)
class CharType(SizedType):
    """Strings of a fixed number of characters."""

    root: ClassVar[str] = "CHAR"


@dataclass(frozen=True, repr=False)
class VarCharType(SizedType):
    """Strings up to a number of characters."""

    root: ClassVar[str] = "VARCHAR"
    unlimited: ClassVar[str] = "STRING"


@dataclass(frozen=True, repr=False)
class JsonTextType(VarCharType):
    """Strings that are JSON: they are not quoted again inside JSON."""

    length: int = MAX_LENGTH


@dataclass(frozen=True, repr=False)
class BooleanType(AtomicType):
    """TRUE and FALSE."""

    root: ClassVar[str] = "BOOLEAN"


@dataclass(frozen=True, repr=False)
class BinaryType(SizedType):
    """A fixed number of bytes."""

    root: ClassVar[str] = "BINARY"


@dataclass(frozen=True, repr=False)
class VarBinaryType(SizedType):
    """Up to a number of bytes."""

    root: ClassVar[str] = "VARBINARY"
    unlimited: ClassVar[str] = "BYTES"


class FractionalType(NumericType):
    """Numbers with a point in them."""


@dataclass(frozen=True, repr=False)
class DecimalType(FractionalType):
    """Numbers with a fixed number of digits before and after the point."""

    precision: int = 10
    scale: int = 0
    root: ClassVar[str] = "DECIMAL"

    def text(self) -> str:
        """As DataType promises."""
        return f"DECIMAL({self.precision}, {self.scale})"


class IntegerType(NumericType):
    """Whole numbers of a fixed number of bits."""

    bits: ClassVar[int] = 0
    digits: ClassVar[int] = 0


@dataclass(frozen=True, repr=False)
class TinyIntType(IntegerType):
    """8 bits."""

    root: ClassVar[str] = "TINYINT"
    bits: ClassVar[int] = 8
    digits: ClassVar[int] = 3


@dataclass(frozen=True, repr=False)
class SmallIntType(IntegerType):
    """16 bits."""

    root: ClassVar[str] = "SMALLINT"
    bits: ClassVar[int] = 16
    digits: ClassVar[int] = 5


@dataclass(frozen=True, repr=False)
class IntType(IntegerType):
    """32 bits."""

    root: ClassVar[str] = "INT"
    bits: ClassVar[int] = 32
    digits: ClassVar[int] = 10


@dataclass(frozen=True, repr=False)
class BigIntType(IntegerType):
    """64 bits."""

    root: ClassVar[str] = "BIGINT"
    bits: ClassVar[int] = 64
    digits: ClassVar[int] = 19


@dataclass(frozen=True, repr=False)
class FloatType(FractionalType):
    """Floating point numbers of 32 bits."""

    root: ClassVar[str] = "FLOAT"


@dataclass(frozen=True, repr=False)
class DoubleType(FractionalType):
    """Floating point numbers of 64 bits."""

    root: ClassVar[str] = "DOUBLE"


@dataclass(frozen=True, repr=False)
class DateType(AtomicType):
    """Days."""

    root: ClassVar[str] = "DATE"
    EPOCH_ORDINAL: ClassVar[int] = 719163  # of 1970-01-01, as date.toordinal() counts


@dataclass(frozen=True, repr=False)
class TimeType(AtomicType):
    """Times of day; Flink computes with milliseconds."""

    precision: int = 0
    root: ClassVar[str] = "TIME"
    EPOCH_ORDINAL: ClassVar[int] = 0

    def text(self) -> str:
        """As DataType promises."""
        return f"TIME({self.precision})"


ROWTIME, PROCTIME = "ROWTIME", "PROCTIME"


@dataclass(frozen=True, repr=False)
class MomentType(AtomicType):
    """Date and time. `attribute` is ROWTIME or PROCTIME for a time attribute, which takes no part in comparisons."""

    precision: int = 6
    attribute: str | None = field(default=None, compare=False)

    def text(self) -> str:
        """As DataType promises."""
        return f"{self.root}({self.precision})"

    def __str__(self) -> str:
        base = super().__str__()
        return base if self.attribute is None else f"{base} *{self.attribute}*"


@dataclass(frozen=True, repr=False)
class TimestampType(MomentType):
    """Date and time without a zone."""

    root: ClassVar[str] = "TIMESTAMP"


@dataclass(frozen=True, repr=False)
class LocalZonedTimestampType(MomentType):
    """Points in time, shown in the session's time zone."""

    root: ClassVar[str] = "TIMESTAMP_LTZ"
    EPOCH_ORDINAL: ClassVar[int] = 0


@dataclass(frozen=True, repr=False)
class YearMonthIntervalType(AtomicType):
    """Spans of months."""

    resolution: str = "YEAR TO MONTH"
    precision: int = 2
    root: ClassVar[str] = "INTERVAL_YEAR_MONTH"
    DEFAULT_PRECISION: ClassVar[int] = 2

    def text(self) -> str:
        """As DataType promises."""
        if self.resolution == "MONTH":
            return "INTERVAL MONTH"
        return f"INTERVAL YEAR({self.precision})" + (" TO MONTH" if self.resolution != "YEAR" else "")


@dataclass(frozen=True, repr=False)
class DayTimeIntervalType(AtomicType):
    """Spans of milliseconds."""

    resolution: str = "DAY TO SECOND"
    day_precision: int = 2
    fraction: int = 6
    root: ClassVar[str] = "INTERVAL_DAY_TIME"
    DEFAULT_DAY_PRECISION: ClassVar[int] = 2
    DEFAULT_FRACTIONAL_PRECISION: ClassVar[int] = 6

    @property
    def fractional_precision(self) -> int:
        """The digits of seconds behind the point."""
        return self.fraction

    def text(self) -> str:
        """As DataType promises."""
        start, _, end = self.resolution.partition(" TO ")
        head = f"DAY({self.day_precision})" if start == "DAY" else start
        if start == "SECOND":
            return f"INTERVAL SECOND({self.fraction})"
        tail = f" TO {end}({self.fraction})" if end == "SECOND" else f" TO {end}" if end else ""
        return f"INTERVAL {head}{tail}"


@dataclass(frozen=True, repr=False)
class ArrayType(DataType):
    """Lists of one type."""

    element: DataType
    root: ClassVar[str] = "ARRAY"

    def text(self) -> str:
        """As DataType promises."""
        return f"ARRAY<{self.element}>"


@dataclass(frozen=True, repr=False)
class MultisetType(DataType):
    """Bags of one type: values with how often they are there."""

    element: DataType
    root: ClassVar[str] = "MULTISET"
    ordered: ClassVar[bool] = False

    def text(self) -> str:
        """As DataType promises."""
        return f"MULTISET<{self.element}>"


@dataclass(frozen=True, repr=False)
class MapType(DataType):
    """Keys with values."""

    key: DataType
    value: DataType
    root: ClassVar[str] = "MAP"
    ordered: ClassVar[bool] = False

    def text(self) -> str:
        """As DataType promises."""
        return f"MAP<{self.key}, {self.value}>"


@dataclass(frozen=True)
class RowField:
    """A field of a row type."""

    name: str
    data_type: DataType
    description: str | None = None

    def __str__(self) -> str:
        base = f"`{self.name.replace('`', '``')}` {self.data_type}"
        if self.description is None:
            return base
        quoted = "'" + self.description.replace("'", "''") + "'"
        return f"{base} {quoted}"


@dataclass(frozen=True, repr=False)
class RowType(DataType):
    """Named fields."""

    fields: tuple[RowField, ...] = ()
    root: ClassVar[str] = "ROW"

    def text(self) -> str:
        """As DataType promises."""
        return f"ROW<{', '.join(map(str, self.fields))}>"

    @property
    def names(self) -> list[str]:
        """The names of the fields."""
        return [each.name for each in self.fields]

    @property
    def types(self) -> list[DataType]:
        """The types of the fields."""
        return [each.data_type for each in self.fields]

    def add(self, field: RowField | str, data_type: DataType | None = None) -> RowType:
        """The type with one more field, given as it is or by name and type."""
        if isinstance(field, str):
            if data_type is None:
                message = f"field '{field}' has no type"
                raise TypeError(message)
            field = RowField(field, data_type)
        return replace(self, fields=(*self.fields, field))

    def field_names(self) -> list[str]:
        """The names of the fields."""
        return self.names

    def field_types(self) -> list[DataType]:
        """The types of the fields."""
        return self.types

    def __len__(self) -> int:
        return len(self.fields)

    def __iter__(self) -> Iterator[RowField]:
        return iter(self.fields)

    def __getitem__(self, key: int | str | slice) -> Any:
        if isinstance(key, str):
            return self.fields[self.names.index(key)]
        return RowType(self.fields[key], null=self.null) if isinstance(key, slice) else self.fields[key]


@dataclass(frozen=True, repr=False)
class StructuredType(RowType):
    """Named fields of the objects of a class; the class need not be there, the values are those of a row."""

    class_name: str = ""
    root: ClassVar[str] = "STRUCTURED"

    def text(self) -> str:
        """As DataType promises."""
        quoted = "'" + self.class_name.replace("'", "''") + "'"
        return f"STRUCTURED<{', '.join([quoted, *map(str, self.fields)])}>"


@dataclass(frozen=True, repr=False)
class RawType(DataType):
    """Any Python object."""

    root: ClassVar[str] = "RAW"

    def text(self) -> str:
        """As DataType promises."""
        return "RAW('object')"


@dataclass(frozen=True, repr=False)
class VariantType(DataType):
    """Values that say themselves what they are, as JSON does."""

    root: ClassVar[str] = "VARIANT"
    ordered: ClassVar[bool] = False


@dataclass(frozen=True, repr=False)
class BitmapType(DataType):
    """Sets of unsigned 32-bit numbers."""

    root: ClassVar[str] = "BITMAP"
    ordered: ClassVar[bool] = False


@dataclass(frozen=True, repr=False)
class DescriptorType(DataType):
    """Columns named by DESCRIPTOR."""

    names: tuple[str, ...] = ()
    root: ClassVar[str] = "DESCRIPTOR"


@dataclass(frozen=True, repr=False)
class SymbolType(DataType):
    """A word that only a function understands, as in EXTRACT(YEAR FROM d)."""

    root: ClassVar[str] = "SYMBOL"


STRING = VarCharType(MAX_LENGTH)
BYTES = VarBinaryType(MAX_LENGTH)
BOOLEAN, TINYINT, SMALLINT, INT, BIGINT = BooleanType(), TinyIntType(), SmallIntType(), IntType(), BigIntType()
FLOAT, DOUBLE, DATE, TIME, NULL = FloatType(), DoubleType(), DateType(), TimeType(), NullType()
VARIANT = VariantType()
BITMAP = BitmapType()


def row_of(names: Iterable[str], types: Iterable[DataType], *, null: bool = True) -> RowType:
    """A row type of names and types."""
    return RowType(tuple(RowField(n, t) for n, t in zip(names, types, strict=True)), null=null)


def is_class_name(text: str) -> bool:
    """Whether a structured type can name its class so: words with dots between them."""
    return all(part.replace("$", "_").isidentifier() for part in text.split("."))


def is_text(kind: DataType) -> bool:
    """Whether values are strings."""
    return isinstance(kind, CharType | VarCharType)


def is_bytes(kind: DataType) -> bool:
    """Whether values are bytes."""
    return isinstance(kind, BinaryType | VarBinaryType)


def is_approximate(kind: DataType) -> bool:
    """Whether values are floating point numbers."""
    return isinstance(kind, FloatType | DoubleType)


def is_timestamp(kind: DataType) -> bool:
    """Whether values are points or places in time."""
    return isinstance(kind, TimestampType | LocalZonedTimestampType)


def is_interval(kind: DataType) -> bool:
    """Whether values are spans."""
    return isinstance(kind, YearMonthIntervalType | DayTimeIntervalType)


def is_compared(kind: DataType) -> bool:
    """Whether one value can be less than another; rows can be sorted by objects, as Flink does, but not compared."""
    return kind.ordered and not isinstance(kind, StructuredType)


def attribute_of(kind: DataType) -> str | None:
    """ROWTIME, PROCTIME or None."""
    return getattr(kind, "attribute", None)


def plain(kind: DataType) -> DataType:
    """The type without its being a time attribute."""
    return replace(kind, attribute=None) if attribute_of(kind) is not None else kind  # type: ignore[call-arg]


def as_decimal(kind: DataType) -> DecimalType:
    """The decimal type that holds every value of an exact number type."""
    if isinstance(kind, DecimalType):
        return kind
    return DecimalType(kind.digits if isinstance(kind, IntegerType) else 10, 0, null=kind.null)


def decimal(precision: int, scale: int, *, null: bool = True) -> DecimalType:
    """A decimal type, cut to 38 digits as Flink cuts: fraction digits go first, but at least 6 of them stay."""
    if precision > MAX_PRECISION:
        whole = precision - scale
        scale = max(MAX_PRECISION - whole, min(scale, 6))
        precision = MAX_PRECISION
    return DecimalType(precision, scale, null=null)


def nullable_all(kinds: Iterable[DataType]) -> bool:
    """Whether any of the types has NULL."""
    return any(kind.null for kind in kinds)
