"""The result of a statement, page by page.

Promises: the last page that was read can be read again. Rows of a running query are buffered in bounded memory, so that
a client that does not read slows down only its own query.
Does not know: HTTP, formats of rows."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from millstream.gateway.errors import WrongToken
from millstream.sql.types import data_types as t
from millstream.types.row import Row

_PAGE_ROWS = 5_000
_BUFFERED_ROWS = 10_000
_WAIT_SECONDS = 0.1  # seconds to wait for rows before an empty page is returned


@dataclass(frozen=True)
class ResultInfo:
    """What all pages of a result have in common. `job_id` is None if the statement has no job."""

    schema: t.RowType
    is_query: bool
    kind: str
    job_id: str | None
    zone: str


@dataclass(frozen=True)
class Page:
    """Rows; `next_token` is None on the last page, which has no rows."""

    rows: Sequence[Row]
    next_token: int | None


class ResultPages:
    """The pages of one result. The methods may be called from any thread."""

    def __init__(self, info: ResultInfo) -> None:
        self.info = info
        self._changed = threading.Condition()
        self._rows: deque[Row] = deque()
        self._is_complete = self._is_closed = False
        self._failure: Exception | None = None
        self._token = 0
        self._last_page: Page | None = None
        self._close: Callable[[], None] = lambda: None

    @classmethod
    def of_rows(cls, info: ResultInfo, rows: Iterable[Row]) -> ResultPages:
        """Return a result that is complete."""
        pages = cls(info)
        pages._rows.extend(rows)
        pages._is_complete = True
        return pages

    @classmethod
    def of_query(cls, info: ResultInfo, rows: Iterable[Row], close: Callable[[], None]) -> ResultPages:
        """Return the result of a running query, whose rows a thread reads until `close` cancels it."""
        pages = cls(info)
        pages._close = close
        threading.Thread(target=pages._read, args=(rows,), name="gateway-result", daemon=True).start()
        return pages

    def fetch(self, token: int) -> Page:
        """Return a page. A running query without new rows has an empty one.

        Raises:
            WrongToken: The page was forgotten, or does not exist yet.

        """
        with self._changed:
            if self._last_page is not None and token == self._token - 1:
                return self._last_page
            if token != self._token:
                raise WrongToken(token, self._token)
            self._changed.wait_for(lambda: self._rows or self._is_complete or self._is_closed, _WAIT_SECONDS)
            if not self._rows and self._failure is not None:
                raise self._failure
            if not self._rows and self._is_complete:
                return Page((), None)
            rows = [self._rows.popleft() for _ in range(min(len(self._rows), _PAGE_ROWS))]
            self._changed.notify_all()
            self._token += 1
            self._last_page = Page(rows, self._token)
            return self._last_page

    def close(self) -> None:
        """Cancel the query if it is running, and drop its rows."""
        with self._changed:
            if self._is_closed:
                return
            self._is_closed = self._is_complete = True
            self._rows.clear()
            self._changed.notify_all()
        with suppress(Exception):  # the failure of a job whose rows are no longer read
            self._close()

    def _read(self, rows: Iterable[Row]) -> None:
        try:
            for row in rows:
                with self._changed:
                    self._changed.wait_for(lambda: len(self._rows) < _BUFFERED_ROWS or self._is_closed)
                    if self._is_closed:
                        return
                    self._rows.append(row)
                    self._changed.notify_all()
        except Exception as problem:
            self._failure = problem
        finally:
            with self._changed:
                self._is_complete = True
                self._changed.notify_all()
