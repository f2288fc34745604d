"""TableDescriptor and FormatDescriptor: a table as CREATE TABLE describes it, built in Python.

Promises: PyFlink's builders.
Does not know: catalogs and connectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from millstream.config.configuration import ConfigOption
from millstream.config.secrets import mask_secrets
from millstream.table.catalog.columns import quote
from millstream.table.schema import Schema


def option_key(key: str | ConfigOption[Any]) -> str:
    """Return the key of an option, which can be given as text."""
    return key if isinstance(key, str) else key.key


def option_value(value: Any) -> str:
    """Return the value of an option as text."""
    return str(value).lower() if isinstance(value, bool) else str(value)


class FormatDescriptor:
    """A format and its options.

    Example:
        >>> descriptor = FormatDescriptor.for_format("json").option("ignore-parse-errors", True).build()
        >>> descriptor.get_options()
        {'ignore-parse-errors': 'true'}

    """

    class Builder:
        """Build a format descriptor."""

        def __init__(self, format: str) -> None:
            self._format = format
            self._options: dict[str, str] = {}

        def option(self, key: str | ConfigOption[Any], value: Any) -> FormatDescriptor.Builder:
            """Set an option of the format.

            Args:
                key: The key without the name of the format as prefix.
                value: The value.

            """
            self._options[option_key(key)] = option_value(value)
            return self

        def build(self) -> FormatDescriptor:
            """Return the descriptor."""
            return FormatDescriptor(self._format, self._options)

    def __init__(self, format: str, options: Mapping[str, str]) -> None:
        self._format, self._options = format, dict(options)

    @staticmethod
    def for_format(format: str) -> FormatDescriptor.Builder:
        """Return a builder for a format, such as `json`.

        Args:
            format: The name of the format.

        """
        return FormatDescriptor.Builder(format)

    def get_format(self) -> str:
        """Return the name of the format."""
        return self._format

    def get_options(self) -> dict[str, str]:
        """Return the options of the format."""
        return dict(self._options)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FormatDescriptor) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(self._format)

    def __str__(self) -> str:
        options = ", ".join(f"{key}={value}" for key, value in mask_secrets(self._options).items())
        return f"{self._format}[{{{options}}}]"


class TableDescriptor:
    """The connector, schema, options, partition keys and comment of a table.

    Example:
        >>> from millstream.table import DataTypes, Schema
        >>> descriptor = (
        ...     TableDescriptor.for_connector("datagen")
        ...     .schema(Schema.new_builder().column("n", DataTypes.INT()).build())
        ...     .option("number-of-rows", 10)
        ...     .build()
        ... )
        >>> descriptor.get_options()
        {'connector': 'datagen', 'number-of-rows': '10'}

    """

    class Builder:
        """Build a table descriptor."""

        def __init__(self, connector: str) -> None:
            self._options: dict[str, str] = {"connector": connector}
            self._schema: Schema | None = None
            self._partitions: tuple[str, ...] = ()
            self._comment: str | None = None

        def schema(self, schema: Schema) -> TableDescriptor.Builder:
            """Set the schema.

            Args:
                schema: The columns, the watermark and the primary key.

            """
            self._schema = schema
            return self

        def option(self, key: str | ConfigOption[Any], value: Any) -> TableDescriptor.Builder:
            """Set an option of the connector.

            Args:
                key: The key.
                value: The value.

            """
            self._options[option_key(key)] = option_value(value)
            return self

        def format(self, format: str | FormatDescriptor, format_option: Any = None) -> TableDescriptor.Builder:
            """Set the format.

            Args:
                format: The name of a format, or a descriptor with its options.
                format_option: The option that names the format, such as `key.format`; by default `format`.

            """
            key = "format" if format_option is None else option_key(format_option)
            if isinstance(format, str):
                self._options[key] = format
                return self
            self._options[key] = format.get_format()
            prefix = key.removesuffix("format")
            for name, value in format.get_options().items():
                self._options[f"{prefix}{format.get_format()}.{name}"] = value
            return self

        def partitioned_by(self, *partition_keys: str) -> TableDescriptor.Builder:
            """Set the partition keys.

            Args:
                *partition_keys: The names of columns.

            """
            self._partitions = partition_keys
            return self

        def comment(self, comment: str) -> TableDescriptor.Builder:
            """Set the comment.

            Args:
                comment: The comment.

            """
            self._comment = comment
            return self

        def build(self) -> TableDescriptor:
            """Return the descriptor."""
            return TableDescriptor(self._schema, self._options, self._partitions, self._comment)

    def __init__(
        self, schema: Schema | None, options: Mapping[str, str], partitions: tuple[str, ...], comment: str | None
    ) -> None:
        self._schema, self._options, self._partitions, self._comment = schema, dict(options), partitions, comment

    @staticmethod
    def for_connector(connector: str) -> TableDescriptor.Builder:
        """Return a builder for a connector, such as `kafka`.

        Args:
            connector: The name of the connector.

        """
        return TableDescriptor.Builder(connector)

    def get_schema(self) -> Schema | None:
        """Return the schema; None if it is derived from the query that is inserted."""
        return self._schema

    def get_options(self) -> dict[str, str]:
        """Return the options of the connector."""
        return dict(self._options)

    def get_partition_keys(self) -> list[str]:
        """Return the partition keys."""
        return list(self._partitions)

    def get_comment(self) -> str | None:
        """Return the comment."""
        return self._comment

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TableDescriptor) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(tuple(sorted(self._options.items())))

    def __str__(self) -> str:
        options = ",\n  ".join(f"'{key}' = '{value}'" for key, value in sorted(mask_secrets(self._options).items()))
        comment = "" if self._comment is None else f"\nCOMMENT '{self._comment}'"
        partitions = f"\nPARTITIONED BY ({', '.join(map(quote, self._partitions))})" if self._partitions else ""
        return f"{self._schema or '()'}{comment}{partitions}\nWITH (\n  {options}\n)"
