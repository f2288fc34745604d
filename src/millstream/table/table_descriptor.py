"""TableDescriptor: a table as CREATE TABLE says it, written in Python.

Promises: PyFlink's builders.
Does not know: catalogs, connectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from millstream.config.configuration import ConfigOption
from millstream.config.secrets import shown_all
from millstream.table.schema import Schema


def _key(key: str | ConfigOption[Any]) -> str:
    return key if isinstance(key, str) else key.key


def _value(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class FormatDescriptor:
    """A format with its options."""

    class Builder:
        """Makes a format."""

        def __init__(self, format: str) -> None:
            self._format = format
            self._options: dict[str, str] = {}

        def option(self, key: str | ConfigOption[Any], value: Any) -> FormatDescriptor.Builder:
            """Set an option."""
            self._options[_key(key)] = _value(value)
            return self

        def build(self) -> FormatDescriptor:
            """The format."""
            return FormatDescriptor(self._format, self._options)

    def __init__(self, format: str, options: Mapping[str, str]) -> None:
        self._format, self._options = format, dict(options)

    @staticmethod
    def for_format(format: str) -> FormatDescriptor.Builder:
        """A builder."""
        return FormatDescriptor.Builder(format)

    def get_format(self) -> str:
        """The name of the format."""
        return self._format

    def get_options(self) -> dict[str, str]:
        """The options."""
        return dict(self._options)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FormatDescriptor) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(self._format)

    def __str__(self) -> str:
        return f"{self._format}[{shown_all(self._options)}]"


class TableDescriptor:
    """A table: schema, options, partitions, comment."""

    class Builder:
        """Makes a table."""

        def __init__(self, connector: str) -> None:
            self._options: dict[str, str] = {"connector": connector}
            self._schema: Schema | None = None
            self._partitions: tuple[str, ...] = ()
            self._comment: str | None = None

        def schema(self, schema: Schema) -> TableDescriptor.Builder:
            """The columns."""
            self._schema = schema
            return self

        def option(self, key: str | ConfigOption[Any], value: Any) -> TableDescriptor.Builder:
            """Set an option."""
            self._options[_key(key)] = _value(value)
            return self

        def format(self, format: str | FormatDescriptor, format_option: Any = None) -> TableDescriptor.Builder:
            """The format, by name or with its options."""
            key = "format" if format_option is None else _key(format_option)
            if isinstance(format, str):
                self._options[key] = format
                return self
            self._options[key] = format.get_format()
            prefix = key.removesuffix("format")
            for name, value in format.get_options().items():
                self._options[f"{prefix}{format.get_format()}.{name}"] = value
            return self

        def partitioned_by(self, *partition_keys: str) -> TableDescriptor.Builder:
            """The columns of the partitions."""
            self._partitions = partition_keys
            return self

        def comment(self, comment: str) -> TableDescriptor.Builder:
            """A sentence for people."""
            self._comment = comment
            return self

        def build(self) -> TableDescriptor:
            """The table."""
            return TableDescriptor(self._schema, self._options, self._partitions, self._comment)

    def __init__(
        self, schema: Schema | None, options: Mapping[str, str], partitions: tuple[str, ...], comment: str | None
    ) -> None:
        self._schema, self._options, self._partitions, self._comment = schema, dict(options), partitions, comment

    @staticmethod
    def for_connector(connector: str) -> TableDescriptor.Builder:
        """A builder."""
        return TableDescriptor.Builder(connector)

    def get_schema(self) -> Schema | None:
        """The columns."""
        return self._schema

    def get_options(self) -> dict[str, str]:
        """The options."""
        return dict(self._options)

    def get_partition_keys(self) -> list[str]:
        """The columns of the partitions."""
        return list(self._partitions)

    def get_comment(self) -> str | None:
        """A sentence for people."""
        return self._comment

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TableDescriptor) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(tuple(sorted(self._options.items())))

    def __str__(self) -> str:
        options = ",\n  ".join(f"'{key}' = '{value}'" for key, value in sorted(shown_all(self._options).items()))
        return f"{self._schema or '()'}\nWITH (\n  {options}\n)"
