"""Identifiers of operators.

Promises: the id of an operator is computed from its uid in the same way as in a job.
Does not know: savepoints."""

from __future__ import annotations

from dataclasses import dataclass

from millstream.graph.stream_graph import operator_id


@dataclass(frozen=True)
class OperatorIdentifier:
    """Identifies an operator by its uid, or by the hash of its uid.

    Wherever an identifier is expected, a string is accepted too and means a uid.

    Attributes:
        operator: The id of the operator, which is the hash of its uid.
        uid: The uid, or None if only the hash is known.

    Example:
        >>> print(OperatorIdentifier.for_uid("counts"))
        'counts'

    """

    operator: str
    uid: str | None = None

    @classmethod
    def for_uid(cls, uid: str) -> OperatorIdentifier:
        """Return the identifier of the operator for which a program calls `.uid(uid)`.

        Args:
            uid: The uid of the operator.

        Returns:
            The identifier.

        """
        return cls(operator_id(uid), uid)

    @classmethod
    def for_uid_hash(cls, uid_hash: str) -> OperatorIdentifier:
        """Return the identifier of the operator with this id.

        Args:
            uid_hash: The id of the operator, as logs and `millstream checkpoints --show` print it.

        Returns:
            The identifier.

        """
        return cls(uid_hash)

    @classmethod
    def of(cls, identifier: OperatorIdentifier | str) -> OperatorIdentifier:
        """Return an identifier as it is, or the identifier of a uid.

        Args:
            identifier: An identifier, or a uid.

        Returns:
            The identifier.

        """
        return cls.for_uid(identifier) if isinstance(identifier, str) else identifier

    def __str__(self) -> str:
        return f"'{self.uid}'" if self.uid is not None else self.operator
