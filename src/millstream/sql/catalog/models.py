"""Models of a session: their definitions, and the registry of models in catalogs.

Promises: a temporary model hides a permanent one of the same name; a statement that fails changes nothing.
Does not know: providers, and how a model predicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millstream.sql.errors import CatalogError, nearest
from millstream.sql.types import data_types as t

if TYPE_CHECKING:
    from millstream.sql.catalog.catalog import Catalogs, ColumnDefinition


@dataclass(frozen=True)
class ModelDefinition:
    """A model as declared by CREATE MODEL: the features it takes, the columns it predicts, and its options."""

    input: tuple[ColumnDefinition, ...] = ()
    output: tuple[ColumnDefinition, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    comment: str | None = None

    @property
    def output_schema(self) -> t.RowType:
        """Return the row type of a prediction."""
        return t.row_of([column.name for column in self.output], [column.type for column in self.output], null=False)


class Models:
    """Find, add and drop the models of a session."""

    def __init__(self, catalogs: Catalogs) -> None:
        self._catalogs = catalogs

    def names(self, catalog: str, database: str, *, only_temporary: bool = False) -> list[str]:
        """Return the names of the models of a database, with temporary ones, sorted."""
        names = {name for c, d, name in self._catalogs.temporary_models if (c, d) == (catalog, database)}
        stored = self._catalogs.all.get(catalog)
        if not only_temporary and stored is not None and database in stored.databases:
            names.update(stored.databases[database].models)
        return sorted(names)

    def find(self, path: tuple[str, ...], at: int | None = None) -> ModelDefinition | None:
        """Return the model of that name; None if there is none."""
        full_name = self._catalogs.full_name(path, at)
        if full_name in self._catalogs.temporary_models:
            return self._catalogs.temporary_models[full_name]
        catalog = self._catalogs.all.get(full_name[0])
        database = None if catalog is None else catalog.databases.get(full_name[1])
        return None if database is None else database.models.get(full_name[2])

    def get(self, path: tuple[str, ...], at: int | None = None) -> ModelDefinition:
        """Return the model of that name; an unknown one is an error."""
        model = self.find(path, at)
        if model is None:
            raise self._missing(path, at)
        return model

    def add(
        self,
        path: tuple[str, ...],
        model: ModelDefinition,
        *,
        temporary: bool,
        if_not_exists: bool = False,
        at: int | None = None,
    ) -> bool:
        """Add a model; return False if it exists and `if_not_exists` is set."""
        full_name = self._catalogs.full_name(path, at)
        database = self._catalogs.database(full_name[0], full_name[1], at)
        exists = full_name in self._catalogs.temporary_models if temporary else full_name[2] in database.models
        if exists:
            if if_not_exists:
                return False
            message = f"there is a model '{'.'.join(full_name)}' already"
            raise CatalogError(message, at=at, hint="drop it first, or write IF NOT EXISTS")
        self._put(full_name, model, temporary=temporary)
        return True

    def drop(self, path: tuple[str, ...], *, temporary: bool, if_exists: bool, at: int | None = None) -> bool:
        """Remove a model; return False if it does not exist and `if_exists` is set."""
        full_name = self._catalogs.full_name(path, at)
        if full_name in self._catalogs.temporary_models:
            if not temporary:
                message = f"'{'.'.join(full_name)}' is a temporary model"
                raise CatalogError(message, at=at, hint="write DROP TEMPORARY MODEL")
            del self._catalogs.temporary_models[full_name]
            return True
        if temporary or self.find(path, at) is None:
            if if_exists:
                return False
            raise self._missing(path, at, "temporary model" if temporary else "model")
        del self._catalogs.database(full_name[0], full_name[1]).models[full_name[2]]
        return True

    def replace(self, path: tuple[str, ...], model: ModelDefinition) -> None:
        """Replace the definition of an existing model."""
        full_name = self._catalogs.full_name(path)
        self._put(full_name, model, temporary=full_name in self._catalogs.temporary_models)

    def _put(self, full_name: tuple[str, str, str], model: ModelDefinition, *, temporary: bool) -> None:
        if temporary:
            self._catalogs.temporary_models[full_name] = model
        else:
            self._catalogs.database(full_name[0], full_name[1]).models[full_name[2]] = model

    def _missing(self, path: tuple[str, ...], at: int | None, word: str = "model") -> CatalogError:
        full_name = self._catalogs.full_name(path, at)
        self._catalogs.database(full_name[0], full_name[1], at)
        hint = nearest(path[-1], self.names(full_name[0], full_name[1])) or "create it, or see SHOW MODELS"
        return CatalogError(f"there is no {word} '{'.'.join(path)}'", at=at, hint=hint)
