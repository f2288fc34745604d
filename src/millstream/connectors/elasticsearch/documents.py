"""Documents from dicts, for the DataStream API.

Promises: a record is a dict, and its JSON document has the same fields. Dates and times are texts of ISO 8601, bytes
are texts in Base64, decimals are numbers.
Does not know: requests."""

from __future__ import annotations

import base64
import datetime
import json
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from millstream.connectors.elasticsearch.bulk import ActionFormat, BulkAction
from millstream.errors import UserError
from millstream.types.row import Row


class NotADocument(UserError):
    """A record cannot be written as a document."""

    def __init__(self, record: object, problem: str, hint: str | None = None) -> None:
        super().__init__(f"Elasticsearch cannot write {record!r}: {problem}", hint=hint)


@dataclass(frozen=True)
class ElasticsearchEmitter:
    """Decides which index and which document a record is written to.

    Example:
        >>> emitter = ElasticsearchEmitter.static_index("users", key_field="id")

    """

    index: str
    is_dynamic: bool = False
    key_field: str | None = None
    doc_type: str | None = None

    @staticmethod
    def static_index(index: str, key_field: str | None = None, doc_type: str | None = None) -> ElasticsearchEmitter:
        """Write all records to one index.

        Args:
            index: The name of the index.
            key_field: The field of a record that is the id of its document; records with the same id change one
                document. Without it, each record is a new document.
            doc_type: The type of documents, for Elasticsearch 6.

        """
        return ElasticsearchEmitter(index, False, key_field, doc_type)

    @staticmethod
    def dynamic_index(
        index_field: str, key_field: str | None = None, doc_type: str | None = None
    ) -> ElasticsearchEmitter:
        """Write each record to the index that one of its fields names.

        Args:
            index_field: The field of a record that has the name of the index.
            key_field: The field of a record that is the id of its document; records with the same id change one
                document. Without it, each record is a new document.
            doc_type: The type of documents, for Elasticsearch 6.

        """
        return ElasticsearchEmitter(index_field, True, key_field, doc_type)


@dataclass(frozen=True)
class DictActions:
    """Turns dicts into actions."""

    emitter: ElasticsearchEmitter
    actions: ActionFormat

    def __call__(self, records: Sequence[Any], _now: int) -> list[BulkAction]:
        """Return the action of each record."""
        return [self._to_action(record) for record in records]

    def _to_action(self, record: Any) -> BulkAction:
        emitter = self.emitter
        if not isinstance(record, dict):
            hint = "map each record to a dict before the sink" + (": row.as_dict()" if isinstance(record, Row) else "")
            raise NotADocument(record, f"it is a {type(record).__name__}, and a document is a dict", hint)
        index = self._field(record, emitter.index) if emitter.is_dynamic else emitter.index
        try:
            source = json.dumps(record, default=_to_json, ensure_ascii=False, allow_nan=False).encode()
        except (TypeError, ValueError) as problem:
            raise NotADocument(record, str(problem)) from None
        if emitter.key_field is None:
            return self.actions.index(index, source)
        return self.actions.upsert(index, self._field(record, emitter.key_field), source)

    def _field(self, record: dict[str, Any], name: str) -> str:
        value = record.get(name)
        if value is None:
            raise NotADocument(record, f"the field '{name}' is {'null' if name in record else 'missing'}")
        return str(value).lower() if isinstance(value, bool) else str(value)


def _to_json(value: Any) -> Any:
    match value:
        case datetime.date() | datetime.time():
            return value.isoformat()
        case Decimal():
            return float(value)
        case bytes() | bytearray():
            return base64.b64encode(value).decode("ascii")
        case Row():
            return value.as_dict()
    if hasattr(value, "item") and hasattr(value, "dtype"):  # a number of numpy
        return value.item()
    message = f"JSON has no {type(value).__name__}"
    raise TypeError(message)
