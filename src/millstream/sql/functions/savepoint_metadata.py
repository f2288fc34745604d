"""The table function SAVEPOINT_METADATA of the module `state`: the operators of a checkpoint or savepoint.

Promises: Flink's name and columns.
Does not know: modules."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from millstream.checkpoint.savepoint import open_snapshot
from millstream.sql.functions.user_functions import TABLE, UserFunction
from millstream.sql.types import data_types as t

_COLUMNS: dict[str, t.DataType] = {
    "checkpoint-id": t.BIGINT.not_null(),
    "operator-name": t.STRING,
    "operator-uid": t.STRING,
    "operator-uid-hash": t.STRING.not_null(),
    "operator-parallelism": t.INT.not_null(),
    "operator-max-parallelism": t.INT.not_null(),
    "operator-subtask-state-count": t.INT.not_null(),
    "operator-coordinator-state-size-in-bytes": t.BIGINT.not_null(),
    "operator-total-size-in-bytes": t.BIGINT.not_null(),
}


class _SavepointMetadata:
    def eval(self, path: str) -> Iterator[tuple[Any, ...]]:
        """Yield a row for each operator."""
        metadata = open_snapshot(path).metadata
        for operator in metadata.operators:
            position = metadata.sources.get(operator.operator)
            coordinator = 0 if position is None else len(json.dumps(position))
            states = sum(handle.size for lineage in operator.lineages for handle in lineage.handles)
            yield (
                metadata.checkpoint,
                operator.name,
                operator.uid,
                operator.operator,
                operator.parallelism,
                operator.max_parallelism,
                sum(1 for lineage in operator.lineages if lineage.handles),
                coordinator,
                states + coordinator,
            )


def create_savepoint_metadata() -> UserFunction:
    """Return the function."""
    result = t.row_of(list(_COLUMNS), list(_COLUMNS.values()))
    return UserFunction("savepoint_metadata", TABLE, _SavepointMetadata(), result, (t.STRING,), deterministic=False)
