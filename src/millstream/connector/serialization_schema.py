"""Serialization schemas, encoders and bulk writers: convert records to bytes and bytes to records.

Promises: schemas, encoders and bulk writers are plain Python objects that can be sent to a task; text is what Flink
writes for the same value.
Does not know: formats with a structure of their own, files, or brokers."""

from __future__ import annotations

import codecs
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, BinaryIO

from millstream.errors import UserError
from millstream.types.factory import RowTypeInfo, TypeInformation, Types
from millstream.types.row import Row


class UnknownCharset(UserError, ValueError):
    """A character set that Python does not know."""

    def __init__(self, charset: str) -> None:
        self.charset = charset
        super().__init__(f"unknown charset {charset!r}", hint='use a name such as "UTF-8"')


class NotSerializable(UserError):
    """A record that a schema cannot write."""

    def __init__(self, schema: object, value: object, expected: str) -> None:
        self.value = value
        self.expected = expected
        super().__init__(
            f"{type(schema).__name__} cannot serialize {value!r:.200} ({type(value).__name__})",
            hint=f"it needs {expected}",
        )


class SerializationSchema(ABC):
    """Serializes records to bytes.

    Example:
        >>> class ToText(SerializationSchema):
        ...     def serialize(self, element):
        ...         return str(element).encode()
        >>> ToText().serialize(5)
        b'5'

    """

    @abstractmethod
    def serialize(self, element: Any) -> bytes | None:
        """Return the bytes of a record; None to skip the record.

        Args:
            element: The record.

        """


class DeserializationSchema(ABC):
    """Deserializes records from bytes.

    Example:
        >>> from millstream.common import Types
        >>> class ToInt(DeserializationSchema):
        ...     def deserialize(self, message):
        ...         return int(message)
        ...     def get_produced_type(self):
        ...         return Types.LONG()
        >>> ToInt().deserialize(b"5")
        5

    """

    @abstractmethod
    def deserialize(self, message: bytes) -> Any:
        """Return the record of a message; None to skip the message.

        Args:
            message: The bytes of the message.

        """

    def deserialize_many(self, message: bytes) -> list[Any]:
        """Return all records of a message; by default the one that `deserialize` returns.

        Args:
            message: The bytes of the message.

        """
        record = self.deserialize(message)
        return [] if record is None else [record]

    def is_end_of_stream(self, element: Any) -> bool:
        """Return whether this record marks the end of the stream.

        Args:
            element: A record that `deserialize` has returned.

        """
        return False

    def get_produced_type(self) -> TypeInformation:
        """Return the type of the records."""
        return Types.PICKLED_BYTE_ARRAY()


class SimpleStringSchema(SerializationSchema, DeserializationSchema):
    """Serializes strings in a character set.

    Example:
        >>> SimpleStringSchema().serialize("tea"), SimpleStringSchema().deserialize(b"tea")
        (b'tea', 'tea')

    """

    def __init__(self, charset: str = "UTF-8") -> None:
        super().__init__()
        self.charset = _charset(charset)

    def serialize(self, element: Any) -> bytes:
        """Return the bytes of a string."""
        if not isinstance(element, str):
            raise NotSerializable(self, element, "strings, as by .map(str, Types.STRING())")
        return element.encode(self.charset)

    def deserialize(self, message: bytes) -> str:
        """Return the string; invalid bytes become the replacement character, as in Java."""
        return bytes(message).decode(self.charset, errors="replace")

    def get_produced_type(self) -> TypeInformation:
        """Return the type of strings."""
        return Types.STRING()


class ByteArraySchema(SerializationSchema, DeserializationSchema):
    """Passes bytes unchanged.

    Example:
        >>> ByteArraySchema().deserialize(b"tea")
        b'tea'

    """

    def __init__(self) -> None:
        super().__init__()

    def serialize(self, element: Any) -> bytes:
        """Return the bytes unchanged."""
        if not isinstance(element, (bytes, bytearray)):
            raise NotSerializable(self, element, "bytes")
        return bytes(element)

    def deserialize(self, message: bytes) -> bytes:
        """Return the bytes unchanged."""
        return bytes(message)

    def get_produced_type(self) -> TypeInformation:
        """Return the type of bytes."""
        return Types.PRIMITIVE_ARRAY(Types.BYTE())


class RowFieldExtractorSchema(SerializationSchema):
    """Serializes one field of a row, which contains bytes.

    Example:
        >>> from millstream.common import Row
        >>> RowFieldExtractorSchema(1).serialize(Row("key", b"value"))
        b'value'

    """

    def __init__(self, field_index: int) -> None:
        if field_index < 0:
            msg = f"Field index must be non-negative, got: {field_index}"
            raise ValueError(msg)
        super().__init__()
        self.field_index = field_index

    def serialize(self, element: Any) -> bytes:
        """Return the bytes of the field; empty for None."""
        if not isinstance(element, (Row, tuple)) or len(element) <= self.field_index:
            raise NotSerializable(self, element, f"rows with a field {self.field_index}")
        value = element[self.field_index]
        if value is not None and not isinstance(value, (bytes, bytearray)):
            raise NotSerializable(self, value, "rows whose field holds bytes")
        return b"" if value is None else bytes(value)


class Encoder(ABC):
    r"""Writes records one after another to a file.

    Example:
        >>> from io import BytesIO
        >>> stream = BytesIO()
        >>> Encoder.simple_string_encoder().encode("tea", stream)
        >>> stream.getvalue()
        b'tea\n'

    """

    @abstractmethod
    def encode(self, element: Any, stream: BinaryIO) -> None:
        """Write one record.

        Args:
            element: The record.
            stream: The open file.

        """

    @staticmethod
    def simple_string_encoder(charset_name: str = "UTF-8") -> Encoder:
        """Create an encoder that writes one record per line, as text.

        Args:
            charset_name: The name of the character set.

        """
        return SimpleStringEncoder(charset_name)


class SimpleStringEncoder(Encoder):
    """Writes one record per line, in Flink's text form."""

    def __init__(self, charset: str = "UTF-8") -> None:
        self.charset = _charset(charset)

    def encode(self, element: Any, stream: BinaryIO) -> None:
        """Write the text of the record and a line feed."""
        stream.write(f"{text_of(element)}\n".encode(self.charset))


class BulkWriter(ABC):
    """Writes the records of one file, whose format has an end such as a footer.

    Example:
        >>> from io import BytesIO
        >>> class Lines(BulkWriter):
        ...     def __init__(self, stream):
        ...         self.stream = stream
        ...     def add_elements(self, elements):
        ...         self.stream.writelines(f"{element};".encode() for element in elements)
        ...     def finish(self):
        ...         self.stream.write(b"end")
        >>> stream = BytesIO()
        >>> writer = Lines(stream)
        >>> writer.add_elements([1, 2])
        >>> writer.finish()
        >>> stream.getvalue()
        b'1;2;end'

    """

    @abstractmethod
    def add_elements(self, elements: list[Any]) -> None:
        """Add records.

        Args:
            elements: The records, in order.

        """

    @abstractmethod
    def finish(self) -> None:
        """Write buffered records and the end of the file; the stream stays open."""


class BulkWriterFactory(ABC):
    r"""Creates a bulk writer for each file.

    Example:
        >>> from io import BytesIO
        >>> class Lines(BulkWriter):
        ...     def __init__(self, stream):
        ...         self.stream = stream
        ...     def add_elements(self, elements):
        ...         self.stream.writelines(f"{element}\n".encode() for element in elements)
        ...     def finish(self):
        ...         self.stream.write(b"end\n")
        >>> class LinesFactory(BulkWriterFactory):
        ...     def create(self, stream):
        ...         return Lines(stream)
        >>> stream = BytesIO()
        >>> writer = LinesFactory().create(stream)
        >>> writer.add_elements([1, 2])
        >>> writer.finish()
        >>> stream.getvalue()
        b'1\n2\nend\n'

    """

    @abstractmethod
    def create(self, stream: BinaryIO) -> BulkWriter:
        """Create a writer for a new file.

        Args:
            stream: The open file; the writer does not close it.

        """


class RowDataBulkWriterFactory(BulkWriterFactory):
    """Creates bulk writers of rows of one type.

    Example:
        >>> from millstream.common import Types
        >>> from millstream.datastream.formats.parquet import ParquetBulkWriters
        >>> factory = ParquetBulkWriters.for_row_type(Types.ROW_NAMED(["name"], [Types.STRING()]))
        >>> factory.get_row_type()
        RowTypeInfo(name: String)

    """

    def __init__(self, row_type: RowTypeInfo) -> None:
        self._row_type = row_type

    def get_row_type(self) -> RowTypeInfo:
        """Return the type of the rows."""
        return self._row_type


class InputFormat(ABC):
    """A bounded input that is read in splits.

    Example:
        >>> from millstream.common import Types
        >>> class Ranges(InputFormat):
        ...     def create_input_splits(self, min_num_splits):
        ...         return [(number * 10, number * 10 + 10) for number in range(min_num_splits)]
        ...     def read(self, split):
        ...         yield from range(*split)
        ...     def get_produced_type(self):
        ...         return Types.LONG()
        >>> list(Ranges().read((0, 3)))
        [0, 1, 2]

    """

    @abstractmethod
    def get_produced_type(self) -> TypeInformation:
        """Return the type of the records."""

    @abstractmethod
    def create_input_splits(self, min_num_splits: int) -> list[Any]:
        """Return the splits of the input; each is a value that can be sent to a task.

        Args:
            min_num_splits: How many splits are useful, which is the parallelism; there may be more or fewer.

        """

    @abstractmethod
    def read(self, split: Any) -> Iterator[Any]:
        """Yield the records of one split, in the same order every time.

        Args:
            split: A value that `create_input_splits` has returned.

        """


def text_of(value: Any) -> str:
    """Return Flink's text form of a value: `+I[1, null]` for a row, `(1,a)` for a tuple, `true`."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _text_of_double(value)
    if isinstance(value, Row):
        return f"{value.get_row_kind()}[{', '.join(map(text_of, value))}]"
    if isinstance(value, tuple):
        return f"({','.join(map(text_of, value))})"
    if isinstance(value, list):
        return f"[{', '.join(map(text_of, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{text_of(k)}={text_of(v)}' for k, v in value.items())}}}"
    return str(value)


def _text_of_double(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    figures = "".join(map(str, digits)).rstrip("0")
    return f"{'-' * sign}{figures[0]}.{figures[1:] or '0'}E{len(digits) - 1 + int(exponent)}"


def _charset(name: str) -> str:
    try:
        return codecs.lookup(name).name
    except LookupError:
        raise UnknownCharset(name) from None
