"""Models of a catalog: their definitions, and the methods of Catalog about them.

Promises: PyFlink's names.
Does not know: providers, and how models predict."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from millstream.sql.catalog import catalog as c
from millstream.sql.catalog.models import ModelDefinition
from millstream.sql.errors import CatalogError, SqlValidationError, nearest
from millstream.table.catalog.paths import ObjectPath
from millstream.table.schema import Schema


def to_columns(schema: Schema | None) -> tuple[c.ColumnDefinition, ...]:
    """Return the columns of a schema as the columns of a model, which are physical or metadata."""
    columns: list[c.ColumnDefinition] = []
    for name, data_type, expr, metadata_key, virtual in () if schema is None else schema._columns:
        if expr is not None or data_type is None:
            msg = f"column '{name}' of a model cannot be computed"
            raise SqlValidationError(msg)
        columns.append(c.ColumnDefinition(name, data_type, None, metadata_key, virtual))
    return tuple(columns)


class CatalogModel:
    """The definition of a model of a catalog.

    Example:
        >>> from millstream.table import DataTypes, Schema
        >>> text = Schema.new_builder().column("text", DataTypes.STRING()).build()
        >>> label = Schema.new_builder().column("label", DataTypes.STRING()).build()
        >>> CatalogModel.create_model(text, label, {"provider": "openai"}).get_options()
        {'provider': 'openai'}

    """

    def __init__(self, definition: ModelDefinition) -> None:
        self._definition = definition

    @staticmethod
    def create_model(
        input_schema: Schema,
        output_schema: Schema,
        options: Mapping[str, str] | None = None,
        comment: str | None = None,
    ) -> CatalogModel:
        """Create the definition of a model.

        Args:
            input_schema: The columns that the model takes.
            output_schema: The columns that the model predicts.
            options: The options, among them `provider`.
            comment: A comment.

        """
        return CatalogModel(
            ModelDefinition(to_columns(input_schema), to_columns(output_schema), dict(options or {}), comment)
        )

    def get_options(self) -> dict[str, str]:
        """Return the options."""
        return dict(self._definition.options)

    def get_comment(self) -> str | None:
        """Return the comment."""
        return self._definition.comment

    def copy(self) -> CatalogModel:
        """Return a copy."""
        return CatalogModel(self._definition)


class CatalogModels(ABC):
    """The methods of a catalog about models."""

    @abstractmethod
    def _database(self, name: str) -> c.Database:
        """Return a database of the catalog; raises `CatalogError` if there is none."""

    def list_models(self, database_name: str) -> list[str]:
        """Return the names of all models of a database."""
        return sorted(self._database(database_name).models)

    def model_exists(self, model_path: ObjectPath) -> bool:
        """Return whether there is a model of this path."""
        return model_path.get_object_name() in self._database(model_path.get_database_name()).models

    def get_model(self, model_path: ObjectPath) -> CatalogModel:
        """Return a model.

        Raises:
            CatalogError: If there is no such model.

        """
        models = self._database(model_path.get_database_name()).models
        name = model_path.get_object_name()
        if name not in models:
            msg = f"there is no model '{model_path}'"
            raise CatalogError(msg, hint=nearest(name, models))
        return CatalogModel(models[name])

    def create_model(self, model_path: ObjectPath, model: CatalogModel, ignore_if_exists: bool) -> None:
        """Create a model.

        Args:
            model_path: The database and the name.
            model: The definition, as `CatalogModel.create_model` returns it.
            ignore_if_exists: Whether an existing model is left as it is.

        Raises:
            CatalogError: If the model exists and `ignore_if_exists` is False.

        """
        if self.model_exists(model_path):
            if ignore_if_exists:
                return
            msg = f"the model '{model_path}' already exists"
            raise CatalogError(msg)
        self._database(model_path.get_database_name()).models[model_path.get_object_name()] = model._definition

    def alter_model(self, model_path: ObjectPath, new_model: CatalogModel, ignore_if_not_exists: bool) -> None:
        """Replace the definition of a model.

        Args:
            model_path: The database and the name.
            new_model: The new definition.
            ignore_if_not_exists: Whether a missing model is not an error.

        Raises:
            CatalogError: If the model does not exist and `ignore_if_not_exists` is False.

        """
        if not self.model_exists(model_path) and ignore_if_not_exists:
            return
        self.get_model(model_path)
        self._database(model_path.get_database_name()).models[model_path.get_object_name()] = new_model._definition

    def rename_model(self, model_path: ObjectPath, new_model_name: str, ignore_if_not_exists: bool) -> None:
        """Rename a model.

        Args:
            model_path: The database and the name.
            new_model_name: The new name in the same database.
            ignore_if_not_exists: Whether a missing model is not an error.

        Raises:
            CatalogError: If the model does not exist and `ignore_if_not_exists` is False, or the new name is taken.

        """
        if not self.model_exists(model_path) and ignore_if_not_exists:
            return
        self.create_model(ObjectPath(model_path.get_database_name(), new_model_name), self.get_model(model_path), False)
        self.drop_model(model_path, False)

    def drop_model(self, model_path: ObjectPath, ignore_if_not_exists: bool) -> None:
        """Drop a model.

        Args:
            model_path: The database and the name.
            ignore_if_not_exists: Whether a missing model is not an error.

        Raises:
            CatalogError: If the model does not exist and `ignore_if_not_exists` is False.

        """
        if not self.model_exists(model_path) and ignore_if_not_exists:
            return
        self.get_model(model_path)
        del self._database(model_path.get_database_name()).models[model_path.get_object_name()]
