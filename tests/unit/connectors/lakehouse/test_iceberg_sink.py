"""The Iceberg sink: what its builder checks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from millstream.connectors.lakehouse.iceberg_catalog import NoSuchTable, TableLoader
from millstream.connectors.lakehouse.iceberg_sink import CannotAppend, IcebergSink, _partition_by, iceberg_field
from millstream.types.factory import Types

ROWS = Types.ROW_NAMED(["id", "day"], [Types.LONG(), Types.STRING()])


@dataclass(frozen=True)
class EmptyCatalog(TableLoader):
    """A catalog without tables."""

    @contextmanager
    def open_table(self) -> Iterator[tuple[Any, Any]]:
        yield None, None


LOADER = EmptyCatalog("test", (), "shop.items")


def test_a_missing_table_is_refused_unless_its_creation_is_requested() -> None:
    with pytest.raises(NoSuchTable, match=r"no table shop\.items"):
        IcebergSink.for_row(LOADER, ROWS).build()
    sink = IcebergSink.for_row(LOADER, ROWS).create_table_if_missing("day").build()
    assert (sink.seen, sink.by) == (None, ("day",))


def test_a_new_table_is_partitioned_by_columns_of_the_rows() -> None:
    with pytest.raises(CannotAppend, match=r"cannot be partitioned by \['month'\]"):
        IcebergSink.for_row(LOADER, ROWS).create_table_if_missing("month").build()


def test_overwriting_a_table_that_does_not_exist_replaces_nothing() -> None:
    sink = IcebergSink.for_row(LOADER, ROWS).create_table_if_missing().overwrite().build()
    assert (sink.overwrites, sink.replaces) == (True, None)


def table_of(*transforms: str) -> Any:
    """A table with the columns a, b, ... and a partition field of a transform for each."""
    fields = [SimpleNamespace(transform=transform, source_id=i) for i, transform in enumerate(transforms)]
    schema = SimpleNamespace(find_column_name="abc".__getitem__)
    return SimpleNamespace(spec=lambda: SimpleNamespace(fields=fields), schema=lambda: schema)


def test_partitions_by_columns_can_be_written() -> None:
    assert _partition_by(table_of("identity", "identity")) == ("a", "b")
    assert _partition_by(table_of()) == ()


def test_partitions_by_transforms_are_refused() -> None:
    with pytest.raises(CannotAppend, match=r"partitioned by bucket\[4\] of a column"):
        _partition_by(table_of("identity", "bucket[4]"))


@pytest.mark.parametrize(
    ("narrow", "wide"), [(pa.int8(), pa.int32()), (pa.int16(), pa.int32()), (pa.int64(), pa.int64())]
)
def test_small_integers_are_widened(narrow: pa.DataType, wide: pa.DataType) -> None:
    assert iceberg_field(pa.field("n", narrow)).type == wide
