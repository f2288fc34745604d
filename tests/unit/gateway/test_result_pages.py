"""Pages of a result: repeated reads, bounded buffers, failures, closing."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from millstream.gateway import result_pages
from millstream.gateway.errors import WrongToken
from millstream.gateway.result_pages import ResultInfo, ResultPages
from millstream.sql.types import data_types as t
from millstream.types.row import Row

INFO = ResultInfo(t.row_of(["n"], [t.INT]), True, "SUCCESS_WITH_CONTENT", "job", "UTC")


def test_the_next_and_the_last_page_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_pages, "_PAGE_ROWS", 2)
    pages = ResultPages.of_rows(INFO, [Row(n) for n in range(3)])
    first = pages.fetch(0)
    assert (list(first.rows), first.next_token) == ([Row(0), Row(1)], 1)
    assert pages.fetch(0) is first
    second = pages.fetch(1)
    assert pages.fetch(1) is second
    with pytest.raises(WrongToken):
        pages.fetch(0)
    assert pages.fetch(2).next_token is None
    assert pages.fetch(1) is second


def test_a_query_waits_for_its_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_pages, "_BUFFERED_ROWS", 3)
    emitted: list[int] = []
    is_closed = threading.Event()

    def rows() -> Iterator[Row]:
        for n in range(100):
            emitted.append(n)
            yield Row(n)

    pages = ResultPages.of_query(INFO, rows(), is_closed.set)
    read = [row[0] for row in pages.fetch(0).rows]
    assert read == list(range(len(read)))
    assert len(emitted) <= len(read) + 4  # the buffer, and the row that waits for it
    pages.close()
    assert is_closed.is_set()
    assert pages.fetch(1).next_token is None


def test_a_failure_is_raised_after_the_rows_before_it() -> None:
    def rows() -> Iterator[Row]:
        yield Row(1)
        msg = "on purpose"
        raise ValueError(msg)

    pages = ResultPages.of_query(INFO, rows(), lambda: None)
    read: list[int] = []

    def read_all() -> None:
        for token in range(100):
            read.extend(row[0] for row in pages.fetch(token).rows)

    with pytest.raises(ValueError, match="on purpose"):
        read_all()
    assert read == [1]


def test_closing_hides_the_failure_of_an_unread_job() -> None:
    def fail() -> None:
        msg = "on purpose"
        raise ValueError(msg)

    ResultPages.of_query(INFO, iter(()), fail).close()
