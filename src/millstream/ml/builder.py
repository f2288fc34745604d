"""Pipelines: stages that are applied one after the other.

Promises: an estimator of a pipeline is fitted to the results of the stages before it.
Does not know: what stages do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from millstream.errors import InvalidArgumentType
from millstream.files.locations import join_path
from millstream.ml import persistence
from millstream.ml.api import AlgoOperator, Estimator, Model, Stage
from millstream.table.table import Table
from millstream.table.table_environment import StreamTableEnvironment


def _save_stages(path: str, owner: Stage, stages: Sequence[Stage]) -> None:
    persistence.check_new(path)
    for index, stage in enumerate(stages):
        stage.save(join_path(path, f"stages/{index}"))
    persistence.write_stage(path, type(owner), {}, {}, stages=len(stages))


def _load_stages(t_env: StreamTableEnvironment, path: str, owner: type) -> list[Stage]:
    saved = persistence.read_stage(path)
    persistence.check_class(path, saved, owner)
    paths = [join_path(path, f"stages/{index}") for index in range(saved["stages"])]
    return [persistence.class_of(name, persistence.read_stage(name)).load(t_env, name) for name in paths]


def _check(stages: Sequence[Stage], allowed: type | tuple[type, ...], expected: str) -> list[Stage]:
    for stage in stages:
        if not isinstance(stage, allowed):
            msg = f"{stage!r} cannot be a stage"
            raise InvalidArgumentType(msg, hint=f"use {expected}")
    return list(stages)


class PipelineModel(Model):
    """A fitted pipeline: transformers that are applied one after the other.

    Example:
        >>> from millstream.ml import FeatureHasher, PipelineModel
        >>> model = PipelineModel([FeatureHasher().set_input_cols("city")])

    """

    def __init__(self, stages: Sequence[Stage]) -> None:
        """Create a model of transformers and models."""
        super().__init__()
        self._stages = _check(stages, AlgoOperator, "transformers and models")

    def transform(self, *inputs: Table) -> list[Table]:
        """Apply all stages.

        Args:
            *inputs: The tables.

        Returns:
            The results of the last stage.

        """
        tables = list(inputs)
        for stage in self._stages:
            assert isinstance(stage, AlgoOperator)
            tables = stage.transform(*tables)
        return tables

    def save(self, path: str) -> None:
        """Save all stages in a new directory."""
        _save_stages(path, self, self._stages)

    @classmethod
    def load(cls, t_env: StreamTableEnvironment, path: str) -> Self:
        """Load a fitted pipeline."""
        return cls(_load_stages(t_env, path, cls))


class Pipeline(Estimator):
    """Estimators and transformers that are fitted and applied one after the other.

    Example:
        >>> from millstream.ml import LogisticRegression, Pipeline, StandardScaler
        >>> pipeline = Pipeline(
        ...     [
        ...         StandardScaler().set_input_col("raw").set_output_col("features"),
        ...         LogisticRegression().set_global_batch_size(1000),
        ...     ]
        ... )

    """

    def __init__(self, stages: Sequence[Stage]) -> None:
        """Create a pipeline of estimators, transformers and models."""
        super().__init__()
        self._stages = _check(stages, (AlgoOperator, Estimator), "estimators, transformers and models")

    def fit(self, *inputs: Table) -> PipelineModel:
        """Fit each estimator to the results of the stages before it.

        Args:
            *inputs: The training data.

        Returns:
            The model of all stages.

        """
        tables, fitted = list(inputs), []
        last = max((i for i, stage in enumerate(self._stages) if isinstance(stage, Estimator)), default=-1)
        for index, stage in enumerate(self._stages):
            model = stage.fit(*tables) if isinstance(stage, Estimator) else stage
            assert isinstance(model, AlgoOperator)
            fitted.append(model)
            if index < last:
                tables = model.transform(*tables)
        return PipelineModel(fitted)

    def save(self, path: str) -> None:
        """Save all stages in a new directory."""
        _save_stages(path, self, self._stages)

    @classmethod
    def load(cls, t_env: StreamTableEnvironment, path: str) -> Self:
        """Load a pipeline."""
        return cls(_load_stages(t_env, path, cls))
