"""CSV files, whose records may contain line breaks inside quotes.

Promises: a record with line breaks in quotes is read as one record; a header is skipped if there is one.
Does not know: fields; the csv format does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from millstream.connectors.files.formats import StreamFormat
from millstream.connectors.files.lines import blocks
from millstream.connectors.files.ranges import OpenRange, ReadRecords, Rejected
from millstream.formats import Format
from millstream.types.factory import TypeInformation

_BATCH_RECORDS = 10_000


class CsvFiles(StreamFormat):
    """Reads the records of CSV files. A file is one split, because only reading from the beginning shows what is inside
    quotes."""

    def __init__(
        self,
        record_format: Format,
        *,
        quote: str | None = '"',
        escape: str | None = None,
        skip: int = 0,
        comments: bool = False,
    ) -> None:
        self._format = record_format
        self._quote = None if quote is None else quote.encode()
        self._escape = None if escape is None else escape.encode()
        self._skip, self._comments = skip, comments
        self.on_error = record_format.on_error

    def type_info(self) -> TypeInformation:
        """Return the type that the format produces."""
        return self._format.type_info

    def read(self, part: OpenRange, block: int) -> Iterator[ReadRecords]:
        """Yield the records of a file."""
        batch: list[tuple[int, bytes]] = []
        for number, record in enumerate(self._records(part)):
            if number == 0:
                self.check_head(part, record[1])
            if number < self._skip or not record[1]:
                continue
            batch.append(record)
            if len(batch) >= _BATCH_RECORDS:
                yield self._decode(part.path, batch)
                batch = []
        if batch:
            yield self._decode(part.path, batch)

    def check_head(self, part: OpenRange, record: bytes) -> None:
        """Check the first record of a file, which may be a header."""

    def _decode(self, path: str, records: Sequence[tuple[int, bytes]]) -> ReadRecords:
        decoded = self._format.decode([data for _, data in records])
        rejected = [
            Rejected(path, records[invalid.index][0], invalid.data, invalid.reason) for invalid in decoded.errors
        ]
        return self.apply_error_policy(ReadRecords(decoded.values, rejected))

    def _records(self, part: OpenRange) -> Iterator[tuple[int, bytes]]:
        """Yield complete records with their offsets."""
        record, record_offset, is_open = b"", 0, False
        for lines in blocks(part.stream, part.start, part.end, part.size):
            offset = lines.offset
            for line in lines.data.splitlines(keepends=True):
                if not is_open:
                    record, record_offset = b"", offset
                offset += len(line)
                if not is_open and self._comments and line.lstrip(b" ").startswith(b"#"):
                    continue
                record += line
                is_open = self._ends_inside_quotes(record)
                if not is_open:
                    yield record_offset, record.rstrip(b"\r\n")
        if is_open:
            yield record_offset, record.rstrip(b"\r\n")

    def _ends_inside_quotes(self, record: bytes) -> bool:
        if self._quote is None or self._quote not in record:
            return False
        if self._escape is not None and self._escape in record:
            escaped = record.replace(self._escape * 2, b"").replace(self._escape + self._quote, b"")
            return escaped.count(self._quote) % 2 == 1
        return record.count(self._quote) % 2 == 1
