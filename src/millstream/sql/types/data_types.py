"""Flink's logical types: frozen values with Flink's names and text.

Promises: two types are equal if they are equal in Flink; nullability is part of equality.
Does not know: Arrow, Python values; common types of operands, which are in `common_types`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeVar

from millstream.errors import InvalidArgument, UserError

MAX_LENGTH = 2**31 - 1
MAX_PRECISION = 38
T = TypeVar("T", bound="DataType")


@dataclass(frozen=True, kw_only=True)
class DataType:
    """A logical type. `null`: whether values can be NULL; `ordered`: whether rows can be sorted by values of it.

    Example:
        >>> from millstream.table import DataTypes
        >>> DataTypes.INT().not_null()
        INT NOT NULL

    """

    root: ClassVar[str] = ""
    ordered: ClassVar[bool] = True
    null: bool = True

    def not_null(self: T) -> T:
        """Return the type as NOT NULL."""
        return replace(self, null=False)

    def nullable(self: T) -> T:
        """Return the type as nullable."""
        return replace(self, null=True)

    def with_null(self: T, null: bool) -> T:
        """Return the type with this nullability.

        Args:
            null: Whether values may be NULL.

        """
        return self if self.null == null else replace(self, null=null)

    def bridged_to(self: T, conversion_cls: object) -> T:
        """Return the type unchanged. Exists for PyFlink programs; there are no Java classes to convert to.

        Args:
            conversion_cls: Ignored.

        """
        return self

    def text(self) -> str:
        """Return Flink's text of the type, without nullability."""
        return self.root

    def __str__(self) -> str:
        return self.text() + ("" if self.null else " NOT NULL")

    def __repr__(self) -> str:
        return str(self)

    def __ne__(self, other: object) -> bool:
        return not self == other

    @classmethod
    def type_name(cls) -> str:
        """Return Flink's name of the type."""
        return cls.root

    def same(self, other: DataType) -> bool:
        """Return whether the types are equal, without regard to nullability.

        Args:
            other: The other type.

        """
        return self.nullable() == other.nullable()


class AtomicType(DataType):
    """A type whose values have no elements or fields.

    Example:
        >>> from millstream.table import DataTypes
        >>> isinstance(DataTypes.INT(), AtomicType), isinstance(DataTypes.ARRAY(DataTypes.INT()), AtomicType)
        (True, False)

    """


class NumericType(AtomicType):
    """A type of numbers.

    Example:
        >>> from millstream.table import DataTypes
        >>> isinstance(DataTypes.DECIMAL(10, 2), NumericType), isinstance(DataTypes.STRING(), NumericType)
        (True, False)

    """


@dataclass(frozen=True, repr=False)
class NullType(AtomicType):
    """The type of an untyped NULL literal.

    Example:
        >>> from millstream.table import DataTypes
        >>> str(DataTypes.NULL())
        'NULL'

    """

    root: ClassVar[str] = "NULL"


@dataclass(frozen=True, repr=False)
class SizedType(AtomicType):
    """A character or byte string type; `unlimited` is the name of the type with the maximum length, if it has one."""

    length: int = 1
    unlimited: ClassVar[str] = ""

    def text(self) -> str:
        """Return Flink's text of the type, such as VARCHAR(10) or STRING."""
        return self.unlimited if self.unlimited and self.length == MAX_LENGTH else f"{self.root}({self.length})"


@dataclass(frozen=True, repr=False)
class CharType(SizedType):
    """CHAR(n): strings of a fixed length.

    Example:
        >>> from millstream.table import DataTypes
        >>> str(DataTypes.CHAR(3)), DataTypes.CHAR(3).length
        ('CHAR(3)', 3)

    """

    root: ClassVar[str] = "CHAR"


@dataclass(frozen=True, repr=False)
class VarCharType(SizedType):
    """VARCHAR(n) and STRING: strings up to a maximum length.

    Example:
        >>> from millstream.table import DataTypes
        >>> str(DataTypes.VARCHAR(20)), str(DataTypes.STRING())
        ('VARCHAR(20)', 'STRING')

    """

    root: ClassVar[str] = "VARCHAR"
    unlimited: ClassVar[str] = "STRING"


@dataclass(frozen=True, repr=False)
class JsonTextType(VarCharType):
    """Strings that contain JSON. JSON functions insert them without quoting them."""

    length: int = MAX_LENGTH


@dataclass(frozen=True, repr=False)
class BooleanType(AtomicType):
    """BOOLEAN.

    Example:
        >>> from millstream.table import DataTypes
        >>> str(DataTypes.BOOLEAN())
        'BOOLEAN'

    """

    root: ClassVar[str] = "BOOLEAN"


@dataclass(frozen=True, repr=False)
class BinaryType(SizedType):
    """BINARY(n): byte strings of a fixed length.

    Example:
        >>> from millstream.table import DataTypes
        >>> str(DataTypes.BINARY(16))
        'BINARY(16)'

    """

    root: ClassVar[str] = "BINARY"


@dataclass(frozen=True, repr=False)
class VarBinaryType(SizedType):
    """VARBINARY(n) and BYTES: byte strings up to a maximum length.

    Example:
        >>> from millstream.table import DataTypes
        >>> str(DataTypes.VARBINARY(16)), str(DataTypes.BYTES())
        ('VARBINARY(16)', 'BYTES')

    """

    root: ClassVar[str] = "VARBINARY"
    unlimited: ClassVar[str] = "BYTES"


class FractionalType(NumericType):
    """Numbers that can have a fraction.

    Example:
        >>> from millstream.table import DataTypes
        >>> isinstance(DataTypes.DOUBLE(), FractionalType), isinstance(DataTypes.INT(), FractionalType)
        (True, False)

    """


@dataclass(frozen=True, repr=False)
class DecimalType(FractionalType):
    """DECIMAL(p, s): exact numbers of p digits, s of them after the decimal point.

    Example:
        >>> from millstream.table import DataTypes
        >>> str(DataTypes.DECIMAL(10, 2)), DataTypes.DECIMAL(10, 2).scale
        ('DECIMAL(10, 2)', 2)

    """

    precision: int = 10
    scale: int = 0
    root: ClassVar[str] = "DECIMAL"

    def text(self) -> str:
        """Return Flink's text of the type, such as DECIMAL(10, 2)."""
        return f"DECIMAL({self.precision}, {self.scale})"


class IntegerType(NumericType):
    """Integers. `digits` is the number of decimal digits of the largest value.

    Example:
        >>> from millstream.table import DataTypes
        >>> isinstance(DataTypes.BIGINT(), IntegerType), isinstance(DataTypes.DOUBLE(), IntegerType)
        (True, False)

    """

    bits: ClassVar[int] = 0
    digits: ClassVar[int] = 0


@dataclass(frozen=True, repr=False)
class TinyIntType(IntegerType):
    """TINYINT: integers of 8 bits.

    Example:
        >>> from millstream.table import DataTypes
        >>> str(DataTypes.TINYINT())
        'TINYINT'

    """

    root: ClassVar[str] = "TINYINT"
    bits: ClassVar[int] = 8
    digits: ClassVar[int] = 3


@dataclass(frozen=True, repr=False)
class SmallIntType(IntegerType):
    """SMALLINT: integers of 16 bits.

    Example:
        >>> from millstream.table import DataTypes
        >>> str(DataTypes.SMALLINT())
        'SMALLINT'

    """

    root: ClassVar[str] = "SMALLINT"
    bits: ClassVar[int] = 16
    digits: ClassVar[int] = 5


@dataclass(frozen=True, repr=False)
class IntType(IntegerType):
    """INT: integers of 32 bits.

    Example:
        >>> from millstream.table import DataTypes
        >>> str(DataTypes.INT())
        'INT'

    """

    root: ClassVar[str] = "INT"
    bits: ClassVar[int] = 32
    digits: ClassVar[int] = 10


@dataclass(frozen=True, repr=False)
class BigIntType(IntegerType):
    """BIGINT: integers of 64 bits.

    Example:
        >>> from millstream.table import DataTypes
        >>> str(DataTypes.BIGINT(False))
        'BIGINT NOT NULL'

    """

    root: ClassVar[str] = "BIGINT"
    bits: ClassVar[int] = 64
    digits: ClassVar[int] = 19


@dataclass(frozen=True, repr=False)
class FloatType(FractionalType):
    """FLOAT: floating-point numbers of 32 bits.

    Example:
        >>> from millstream.table import DataTypes
        >>> str(DataTypes.FLOAT())
        'FLOAT'

    """

    root: ClassVar[str] = "FLOAT"


@dataclass(frozen=True, repr=False)
class DoubleType(FractionalType):
    """DOUBLE: floating-point numbers of 64 bits.

    Example:
        >>> from millstream.table import DataTypes
        >>> str(DataTypes.DOUBLE())
        'DOUBLE'

    """

    root: ClassVar[str] = "DOUBLE"


@dataclass(frozen=True, repr=False)
class DateType(AtomicType):
    """DATE: a year, month and day.

    Example:
        >>> from millstream.table import DataTypes
        >>> str(DataTypes.DATE())
        'DATE'

    """

    root: ClassVar[str] = "DATE"
    EPOCH_ORDINAL: ClassVar[int] = 719163  # date(1970, 1, 1).toordinal()


@dataclass(frozen=True, repr=False)
class TimeType(AtomicType):
    """TIME(p): a time of day. Flink keeps milliseconds, independent of the precision.

    Example:
        >>> from millstream.table import DataTypes
        >>> str(DataTypes.TIME())
        'TIME(0)'

    """

    precision: int = 0
    root: ClassVar[str] = "TIME"
    EPOCH_ORDINAL: ClassVar[int] = 0

    def text(self) -> str:
        """Return Flink's text of the type, such as TIME(0)."""
        return f"TIME({self.precision})"


ROWTIME, PROCTIME = "ROWTIME", "PROCTIME"


@dataclass(frozen=True, repr=False)
class AnyTimestampType(AtomicType):
    """A timestamp type. `attribute` is ROWTIME or PROCTIME for a time attribute; it is not part of equality."""

    precision: int = 6
    attribute: str | None = field(default=None, compare=False)

    def text(self) -> str:
        """Return Flink's text of the type, such as TIMESTAMP(3)."""
        return f"{self.root}({self.precision})"

    def __str__(self) -> str:
        base = super().__str__()
        return base if self.attribute is None else f"{base} *{self.attribute}*"


@dataclass(frozen=True, repr=False)
class TimestampType(AnyTimestampType):
    """TIMESTAMP(p): a date and time without a time zone.

    Example:
        >>> from millstream.table import DataTypes
        >>> str(DataTypes.TIMESTAMP(3)), DataTypes.TIMESTAMP(3).precision
        ('TIMESTAMP(3)', 3)

    """

    root: ClassVar[str] = "TIMESTAMP"


@dataclass(frozen=True, repr=False)
class LocalZonedTimestampType(AnyTimestampType):
    """TIMESTAMP_LTZ(p): a point in time, formatted in the session's time zone.

    Example:
        >>> from millstream.table import DataTypes
        >>> str(DataTypes.TIMESTAMP_LTZ(3))
        'TIMESTAMP_LTZ(3)'

    """

    root: ClassVar[str] = "TIMESTAMP_LTZ"
    EPOCH_ORDINAL: ClassVar[int] = 0


@dataclass(frozen=True, repr=False)
class YearMonthIntervalType(AtomicType):
    """INTERVAL YEAR TO MONTH: a number of months."""

    resolution: str = "YEAR TO MONTH"
    precision: int = 2
    root: ClassVar[str] = "INTERVAL_YEAR_MONTH"
    DEFAULT_PRECISION: ClassVar[int] = 2

    def text(self) -> str:
        """Return Flink's text of the type, such as INTERVAL YEAR(2) TO MONTH."""
        if self.resolution == "MONTH":
            return "INTERVAL MONTH"
        return f"INTERVAL YEAR({self.precision})" + (" TO MONTH" if self.resolution != "YEAR" else "")


@dataclass(frozen=True, repr=False)
class DayTimeIntervalType(AtomicType):
    """INTERVAL DAY TO SECOND: a number of milliseconds."""

    resolution: str = "DAY TO SECOND"
    day_precision: int = 2
    fraction: int = 6
    root: ClassVar[str] = "INTERVAL_DAY_TIME"
    DEFAULT_DAY_PRECISION: ClassVar[int] = 2
    DEFAULT_FRACTIONAL_PRECISION: ClassVar[int] = 6

    @property
    def fractional_precision(self) -> int:
        """The number of digits of the fractional second."""
        return self.fraction

    def text(self) -> str:
        """Return Flink's text of the type, such as INTERVAL DAY(2) TO SECOND(6)."""
        start, _, end = self.resolution.partition(" TO ")
        head = f"DAY({self.day_precision})" if start == "DAY" else start
        if start == "SECOND":
            return f"INTERVAL SECOND({self.fraction})"
        tail = f" TO {end}({self.fraction})" if end == "SECOND" else f" TO {end}" if end else ""
        return f"INTERVAL {head}{tail}"


@dataclass(frozen=True, repr=False)
class ArrayType(DataType):
    """ARRAY<t>: a list of elements of one type.

    Example:
        >>> from millstream.table import DataTypes
        >>> str(DataTypes.ARRAY(DataTypes.INT()))
        'ARRAY<INT>'

    """

    element: DataType
    root: ClassVar[str] = "ARRAY"

    def text(self) -> str:
        """Return Flink's text of the type, such as ARRAY<INT>."""
        return f"ARRAY<{self.element}>"


@dataclass(frozen=True, repr=False)
class MultisetType(DataType):
    """MULTISET<t>: distinct elements with their counts.

    Example:
        >>> from millstream.table import DataTypes
        >>> str(DataTypes.MULTISET(DataTypes.STRING()))
        'MULTISET<STRING>'

    """

    element: DataType
    root: ClassVar[str] = "MULTISET"
    ordered: ClassVar[bool] = False

    def text(self) -> str:
        """Return Flink's text of the type, such as MULTISET<INT>."""
        return f"MULTISET<{self.element}>"


@dataclass(frozen=True, repr=False)
class MapType(DataType):
    """MAP<k, v>: keys with values.

    Example:
        >>> from millstream.table import DataTypes
        >>> str(DataTypes.MAP(DataTypes.STRING(), DataTypes.INT()))
        'MAP<STRING, INT>'

    """

    key: DataType
    value: DataType
    root: ClassVar[str] = "MAP"
    ordered: ClassVar[bool] = False

    def text(self) -> str:
        """Return Flink's text of the type, such as MAP<STRING, INT>."""
        return f"MAP<{self.key}, {self.value}>"


class NoSuchRowField(UserError, KeyError):
    """A row type does not have a field of this name."""

    def __init__(self, name: str, names: Iterable[str]) -> None:
        self.name = name
        super().__init__(f"the row type has no field '{name}'", hint=f"its fields are {', '.join(names)}")

    __str__ = UserError.__str__


@dataclass(frozen=True)
class RowField:
    """A field of a row type.

    Example:
        >>> from millstream.table import DataTypes
        >>> str(DataTypes.FIELD("name", DataTypes.STRING()))
        '`name` STRING'

    """

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
    """ROW<name type, ...>: named fields.

    Example:
        >>> from millstream.table import DataTypes
        >>> row_type = DataTypes.ROW([DataTypes.FIELD("name", DataTypes.STRING())]).add("amount", DataTypes.INT())
        >>> row_type.field_names()
        ['name', 'amount']

    """

    row_fields: tuple[RowField, ...] = ()
    root: ClassVar[str] = "ROW"

    def __post_init__(self) -> None:
        object.__setattr__(self, "row_fields", tuple(self.row_fields))  # PyFlink programs pass a list

    def text(self) -> str:
        """Return Flink's text of the type, such as ROW<`a` INT>."""
        return f"ROW<{', '.join(map(str, self.row_fields))}>"

    @property
    def fields(self) -> list[RowField]:
        """The fields in a list, which is new for each call: changes of it do not change the type."""
        return list(self.row_fields)

    @property
    def names(self) -> list[str]:
        """The names of the fields."""
        return [field.name for field in self.row_fields]

    @property
    def types(self) -> list[DataType]:
        """The types of the fields."""
        return [field.data_type for field in self.row_fields]

    def add(self, field: RowField | str, data_type: DataType | None = None) -> RowType:
        """Return the type with one more field, given as a `RowField` or by name and type.

        Args:
            field: The field, or its name.
            data_type: The type, if `field` is a name.

        """
        if isinstance(field, str):
            if data_type is None:
                message = f"field '{field}' has no type"
                raise InvalidArgument(message, hint=f"add('{field}', DataTypes.STRING())")
            field = RowField(field, data_type)
        return replace(self, row_fields=(*self.row_fields, field))

    def field_names(self) -> list[str]:
        """Return the names of the fields."""
        return self.names

    def field_types(self) -> list[DataType]:
        """Return the types of the fields."""
        return self.types

    def __len__(self) -> int:
        return len(self.row_fields)

    def __iter__(self) -> Iterator[RowField]:
        return iter(self.row_fields)

    def __getitem__(self, key: int | str | slice) -> Any:
        if isinstance(key, str):
            if key not in self.names:
                raise NoSuchRowField(key, self.names)
            return self.row_fields[self.names.index(key)]
        return RowType(self.row_fields[key], null=self.null) if isinstance(key, slice) else self.row_fields[key]


@dataclass(frozen=True, repr=False)
class StructuredType(RowType):
    """STRUCTURED<'class', name type, ...>: the fields of a class. The class need not be importable."""

    class_name: str = ""
    root: ClassVar[str] = "STRUCTURED"

    def text(self) -> str:
        """Return Flink's text of the type, such as STRUCTURED<'app.User', `name` STRING>."""
        quoted = "'" + self.class_name.replace("'", "''") + "'"
        return f"STRUCTURED<{', '.join([quoted, *map(str, self.row_fields)])}>"


@dataclass(frozen=True, repr=False)
class RawType(DataType):
    """RAW: any Python object."""

    root: ClassVar[str] = "RAW"

    def text(self) -> str:
        """Return the text of the type."""
        return "RAW('object')"


@dataclass(frozen=True, repr=False)
class VariantType(DataType):
    """VARIANT: semi-structured values that contain their own type, such as parsed JSON."""

    root: ClassVar[str] = "VARIANT"
    ordered: ClassVar[bool] = False


@dataclass(frozen=True, repr=False)
class BitmapType(DataType):
    """BITMAP: a set of 32-bit integers."""

    root: ClassVar[str] = "BITMAP"
    ordered: ClassVar[bool] = False


@dataclass(frozen=True, repr=False)
class DescriptorType(DataType):
    """The type of DESCRIPTOR(column, ...)."""

    names: tuple[str, ...] = ()
    root: ClassVar[str] = "DESCRIPTOR"


@dataclass(frozen=True, repr=False)
class SymbolType(DataType):
    """The type of a keyword that is an argument, such as YEAR in EXTRACT(YEAR FROM d)."""

    root: ClassVar[str] = "SYMBOL"


STRING = VarCharType(MAX_LENGTH)
BYTES = VarBinaryType(MAX_LENGTH)
BOOLEAN, TINYINT, SMALLINT, INT, BIGINT = BooleanType(), TinyIntType(), SmallIntType(), IntType(), BigIntType()
FLOAT, DOUBLE, DATE, TIME, NULL = FloatType(), DoubleType(), DateType(), TimeType(), NullType()
VARIANT = VariantType()
BITMAP = BitmapType()


def row_of(names: Iterable[str], types: Iterable[DataType], *, null: bool = True) -> RowType:
    """Create a row type from the names and types of its fields."""
    return RowType(tuple(RowField(n, t) for n, t in zip(names, types, strict=True)), null=null)


def is_class_name(text: str) -> bool:
    """Whether a text is a qualified class name: identifiers with dots between them."""
    return all(part.replace("$", "_").isidentifier() for part in text.split("."))


def is_text(data_type: DataType) -> bool:
    """Whether values are strings."""
    return isinstance(data_type, CharType | VarCharType)


def is_bytes(data_type: DataType) -> bool:
    """Whether values are byte strings."""
    return isinstance(data_type, BinaryType | VarBinaryType)


def is_approximate(data_type: DataType) -> bool:
    """Whether values are floating-point numbers."""
    return isinstance(data_type, FloatType | DoubleType)


def is_timestamp(data_type: DataType) -> bool:
    """Whether the type is TIMESTAMP or TIMESTAMP_LTZ."""
    return isinstance(data_type, TimestampType | LocalZonedTimestampType)


def is_interval(data_type: DataType) -> bool:
    """Whether the type is an interval type."""
    return isinstance(data_type, YearMonthIntervalType | DayTimeIntervalType)


def is_comparable(data_type: DataType) -> bool:
    """Whether < and > exist for the type. As in Flink, rows can be sorted by structured types, but not compared."""
    return data_type.ordered and not isinstance(data_type, StructuredType)


def get_time_attribute(data_type: DataType) -> str | None:
    """Return ROWTIME or PROCTIME if the type is a time attribute, else None."""
    return getattr(data_type, "attribute", None)


def strip_time_attribute(data_type: DataType) -> DataType:
    """Return the type; of a time attribute, the regular timestamp type."""
    return replace(data_type, attribute=None) if get_time_attribute(data_type) is not None else data_type  # type: ignore[call-arg]


def as_decimal(data_type: DataType) -> DecimalType:
    """Return the decimal type that can hold every value of an exact numeric type."""
    if isinstance(data_type, DecimalType):
        return data_type
    return DecimalType(data_type.digits if isinstance(data_type, IntegerType) else 10, 0, null=data_type.null)


def create_decimal(precision: int, scale: int, *, null: bool = True) -> DecimalType:
    """Return a decimal type, limited to 38 digits as in Flink: the scale is reduced first, but not below 6."""
    if precision > MAX_PRECISION:
        integer_digits = precision - scale
        scale = max(MAX_PRECISION - integer_digits, min(scale, 6))
        precision = MAX_PRECISION
    return DecimalType(precision, scale, null=null)


def is_any_nullable(data_types: Iterable[DataType]) -> bool:
    """Whether at least one of the types is nullable."""
    return any(data_type.null for data_type in data_types)
