"""ModelDescriptor: a model as CREATE MODEL describes it, built in Python.

Promises: PyFlink's builder.
Does not know: catalogs and providers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from millstream.config.configuration import ConfigOption
from millstream.config.secrets import mask_secrets
from millstream.table.schema import Schema
from millstream.table.table_descriptor import option_key, option_value


class ModelDescriptor:
    """The provider, the input and output columns, the options and the comment of a model.

    Example:
        >>> from millstream.table import DataTypes, Schema
        >>> descriptor = (
        ...     ModelDescriptor.for_provider("python")
        ...     .input_schema(Schema.new_builder().column("text", DataTypes.STRING()).build())
        ...     .output_schema(Schema.new_builder().column("label", DataTypes.STRING()).build())
        ...     .option("object", "my_models.classify")
        ...     .build()
        ... )
        >>> descriptor.get_options()
        {'provider': 'python', 'object': 'my_models.classify'}

    """

    class Builder:
        """Build a model descriptor."""

        def __init__(self, provider: str) -> None:
            self._options: dict[str, str] = {"provider": provider}
            self._input_schema: Schema | None = None
            self._output_schema: Schema | None = None
            self._comment: str | None = None

        def input_schema(self, input_schema: Schema) -> ModelDescriptor.Builder:
            """Set the columns that the model takes.

            Args:
                input_schema: The columns.

            """
            self._input_schema = input_schema
            return self

        def output_schema(self, output_schema: Schema) -> ModelDescriptor.Builder:
            """Set the columns that the model predicts.

            Args:
                output_schema: The columns.

            """
            self._output_schema = output_schema
            return self

        def option(self, key: str | ConfigOption[Any], value: Any) -> ModelDescriptor.Builder:
            """Set an option of the provider.

            Args:
                key: The key.
                value: The value.

            """
            self._options[option_key(key)] = option_value(value)
            return self

        def comment(self, comment: str) -> ModelDescriptor.Builder:
            """Set the comment.

            Args:
                comment: The comment.

            """
            self._comment = comment
            return self

        def build(self) -> ModelDescriptor:
            """Return the descriptor."""
            return ModelDescriptor(self._options, self._input_schema, self._output_schema, self._comment)

    def __init__(
        self,
        options: Mapping[str, str],
        input_schema: Schema | None,
        output_schema: Schema | None,
        comment: str | None,
    ) -> None:
        self._options, self._comment = dict(options), comment
        self._input_schema, self._output_schema = input_schema, output_schema

    @staticmethod
    def for_provider(provider: str) -> ModelDescriptor.Builder:
        """Return a builder for a model of a provider, such as `openai` or `python`.

        Args:
            provider: The name of the provider.

        """
        return ModelDescriptor.Builder(provider)

    def get_options(self) -> dict[str, str]:
        """Return the options, the provider included."""
        return dict(self._options)

    def get_input_schema(self) -> Schema | None:
        """Return the columns that the model takes."""
        return self._input_schema

    def get_output_schema(self) -> Schema | None:
        """Return the columns that the model predicts."""
        return self._output_schema

    def get_comment(self) -> str | None:
        """Return the comment."""
        return self._comment

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ModelDescriptor) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(tuple(sorted(self._options.items())))

    def __str__(self) -> str:
        options = ", ".join(f"{key}={value}" for key, value in mask_secrets(self._options).items())
        return f"{self._input_schema or '()'} -> {self._output_schema or '()'} {{{options}}}"
