"""Changes of a Delta table by primary key: one MERGE for each checkpoint.

Promises: the merge is one commit with the transaction identifiers of its checkpoint, so that it is applied once,
however often and wherever it is attempted.
Does not know: who runs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from millstream.connectors.lakehouse.changes import DELETED, read_changes
from millstream.connectors.lakehouse.delta_commits import commit_properties, deltalake, is_committed
from millstream.connectors.lakehouse.staging import StagedDataFile
from millstream.files.errors import ConnectorStorageFailure


@dataclass(frozen=True)
class MergeTask:
    """Merges staged changes into the table; it runs in a worker of the job."""

    location: str
    storage_options: tuple[tuple[str, str], ...] = field(repr=False)
    key: tuple[str, ...]

    def run(self, checkpoint: int, owner: str, files: Sequence[StagedDataFile]) -> None:
        """Merge the changes, if no other attempt has done so."""
        package, staged = deltalake(), list(files)
        options = dict(self.storage_options) or None
        try:
            table = package.DeltaTable(self.location, storage_options=options)
            if is_committed(self.location, table, owner, staged):
                return
            properties = commit_properties(package, checkpoint, owner, staged)
            changes, version = read_changes(self.location, staged, self.key), table.version()
            condition = " AND ".join(f"target.{_quote(name)} = source.{_quote(name)}" for name in self.key)
            merge = table.merge(
                changes, condition, source_alias="source", target_alias="target", commit_properties=properties
            )
            merge = merge.when_matched_delete(f"source.{DELETED}").when_matched_update_all(except_cols=[DELETED])
            merge.when_not_matched_insert_all(f"NOT source.{DELETED}", except_cols=[DELETED]).execute()
            if table.version() == version:  # no row changed, so no commit records that the changes were applied
                table.create_write_transaction([], "append", table.schema(), commit_properties=properties)
        except (package.exceptions.DeltaError, OSError, ConnectorStorageFailure) as problem:
            # another attempt may have been faster
            if is_committed(self.location, package.DeltaTable(self.location, storage_options=options), owner, staged):
                return
            raise ConnectorStorageFailure(self.location, f"merge checkpoint {checkpoint} into", problem) from problem


def _quote(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
