"""The models of a session, as methods of a table environment.

Promises: PyFlink's methods. A temporary model hides a permanent one of the same name.
Does not know: how models predict."""

from __future__ import annotations

from millstream.sql.catalog.catalog import Catalogs
from millstream.sql.catalog.models import Models
from millstream.table.model import Model, define_model
from millstream.table.model_descriptor import ModelDescriptor
from millstream.table.object_paths import parse_object_path


class NamedModels:
    """Manage the models of a session."""

    _catalogs: Catalogs

    @property
    def _models(self) -> Models:
        return self._catalogs.models

    def create_model(
        self, model_path: str, model_descriptor: ModelDescriptor, ignore_if_exists: bool | None = False
    ) -> None:
        """Register a model in a catalog, like CREATE MODEL.

        Args:
            model_path: A name, `database.name` or `catalog.database.name`.
            model_descriptor: The provider, the columns and the options of the model.
            ignore_if_exists: Whether a model of this name is left as it is.

        Raises:
            SqlError: If there is a model of this name and `ignore_if_exists` is False.

        """
        self._models.add(
            parse_object_path(model_path),
            define_model(model_descriptor),
            temporary=False,
            if_not_exists=bool(ignore_if_exists),
        )

    def create_temporary_model(
        self, model_path: str, model_descriptor: ModelDescriptor, ignore_if_exists: bool | None = False
    ) -> None:
        """Register a model for the duration of this session; it hides a permanent model of the same name.

        Args:
            model_path: A name, `database.name` or `catalog.database.name`.
            model_descriptor: The provider, the columns and the options of the model.
            ignore_if_exists: Whether a temporary model of this name is left as it is.

        """
        self._models.add(
            parse_object_path(model_path),
            define_model(model_descriptor),
            temporary=True,
            if_not_exists=bool(ignore_if_exists),
        )

    def from_model(self, model: str | ModelDescriptor) -> Model:
        """Return a model that can predict, as `fromModel` of Flink's Java API does.

        Args:
            model: The path of a registered model, or a descriptor.

        Raises:
            SqlError: If there is no such model.

        """
        if isinstance(model, ModelDescriptor):
            return Model(("*anonymous*",), define_model(model), self)
        path = parse_object_path(model)
        return Model(path, self._models.get(path), self)

    def drop_model(self, model_path: str, ignore_if_not_exists: bool | None = True) -> bool:
        """Drop a model of a catalog.

        Args:
            model_path: The path of the model.
            ignore_if_not_exists: Whether a missing model is not an error.

        Returns:
            Whether there was such a model.

        """
        return self._models.drop(parse_object_path(model_path), temporary=False, if_exists=bool(ignore_if_not_exists))

    def drop_temporary_model(self, model_path: str) -> bool:
        """Drop a temporary model; return whether there was one of this path."""
        return self._models.drop(parse_object_path(model_path), temporary=True, if_exists=True)

    def list_models(self) -> list[str]:
        """Return the names of all models of the current database, temporary ones included."""
        return self._models.names(*self._catalogs.home())

    def list_temporary_models(self) -> list[str]:
        """Return the names of the temporary models of the current database."""
        return self._models.names(*self._catalogs.home(), only_temporary=True)
