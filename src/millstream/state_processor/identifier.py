"""Which operator is meant.

Promises: an operator's id follows from its uid as a job's does.
Does not know: snapshots."""

from __future__ import annotations

from dataclasses import dataclass

from millstream.graph.stream_graph import operator_id


@dataclass(frozen=True)
class OperatorIdentifier:
    """An operator by its uid, or by the hash of one."""

    operator: str
    uid: str | None = None

    @classmethod
    def for_uid(cls, uid: str) -> OperatorIdentifier:
        """The operator that a program calls `.uid(uid)`."""
        return cls(operator_id(uid), uid)

    @classmethod
    def for_uid_hash(cls, uid_hash: str) -> OperatorIdentifier:
        """The operator of that id, as logs and `millstream checkpoints --show` name it."""
        return cls(uid_hash)

    @classmethod
    def of(cls, given: OperatorIdentifier | str) -> OperatorIdentifier:
        """An identifier by itself, or by a uid."""
        return cls.for_uid(given) if isinstance(given, str) else given

    def __str__(self) -> str:
        return f"'{self.uid}'" if self.uid is not None else self.operator
