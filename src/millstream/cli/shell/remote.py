"""`millstream sql --endpoint HOST:PORT`: statements that a SQL gateway executes.

Promises: results look as in the local shell; the first statement of a script that fails ends it with exit code 1.
Ctrl-C cancels the current statement. Flink's own gateway is understood, too.
Does not know: how the gateway works."""

from __future__ import annotations

import argparse
import json
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Generator, Iterator, Mapping
from contextlib import suppress
from typing import Any

from millstream import options
from millstream.cli.cluster_address import read_token
from millstream.cli.shell.screen import Screen
from millstream.cli.shell.shell import INTERRUPTED, read_script
from millstream.cli.shell.statements import split_statements
from millstream.client import local
from millstream.client.remote import tls_context, to_url
from millstream.config.configuration import Configuration
from millstream.errors import ExternalError, UserError
from millstream.sql import tableau
from millstream.sql.types import data_types as t
from millstream.types.row import RowKind

_ANSWER_SECONDS = 120.0
_PAUSE = 0.05  # seconds, before a result that is not ready is asked for again
_CAUSE, _TRACE = "Caused by: ", "\n\tat "


class GatewayUnreachable(ExternalError):
    """There is no gateway at the address."""

    def __init__(self, address: str, reason: object) -> None:
        super().__init__(f"no SQL gateway answers at {address}: {reason}", hint="start one: millstream gateway start")


class StatementRefused(UserError):
    """The gateway answered with an error."""


class GatewaySession:
    """A session of a gateway."""

    def __init__(
        self,
        address: str,
        token: str | None,
        properties: Mapping[str, str],
        *,
        tls: bool = False,
        ca_file: str | None = None,
    ) -> None:
        self._url = to_url(address, tls=tls)
        self._tls = tls_context(self._url, ca_file)
        self._headers = {"Content-Type": "application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        answer = self._request("POST", "/v2/sessions", {"properties": dict(properties)})
        self._session = f"/v2/sessions/{answer['sessionHandle']}"

    def execute(self, statement: str) -> Generator[dict[str, Any], None, None]:
        """Yield the pages of the result; a statement that is not read to its end is cancelled."""
        handle = self._request("POST", f"{self._session}/statements", {"statement": statement})["operationHandle"]
        operation = f"{self._session}/operations/{handle}"
        path: str | None = f"{operation}/result/0?rowFormat=PLAIN_TEXT"
        try:
            while path is not None:
                page = self._request("GET", path)
                path = page.get("nextResultUri")
                if page["resultType"] == "NOT_READY":
                    time.sleep(_PAUSE)
                else:
                    yield page
        finally:
            with suppress(UserError):  # the first error is the one to show
                if path is not None:
                    self._request("POST", f"{operation}/cancel", {})
                self._request("DELETE", f"{operation}/close", {})

    def close(self) -> None:
        """Close the session; its queries are cancelled."""
        self._request("DELETE", self._session, {})

    def _request(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data, self._headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=_ANSWER_SECONDS, context=self._tls) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as refused:
            raise StatementRefused(_read_problem(refused)) from None
        except OSError as problem:
            raise GatewayUnreachable(self._url, getattr(problem, "reason", problem)) from None


def start(args: argparse.Namespace) -> int:
    """Run a script, or statements of a person at a terminal; returns the exit code."""
    defaults = Configuration.from_dict(local.defaults())
    session = GatewaySession(
        args.endpoint,
        read_token(args, defaults),
        dict(args.define),
        tls=defaults.get(options.REST_TLS),
        ca_file=defaults.get(options.REST_TLS_CA),
    )
    is_interactive = args.file is None and args.execute is None and sys.stdin.isatty()
    screen = Screen(interactive=False)
    try:
        for path in args.init:
            _run(session, screen, read_script(path))
        if is_interactive:
            _interact(session, screen)
        else:
            text = args.execute if args.execute is not None else read_script(args.file) if args.file else None
            _run(session, screen, sys.stdin.read() if text is None else text)
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        session.close()
    return 0


def _interact(session: GatewaySession, screen: Screen) -> None:
    text = ""
    while True:
        try:
            text += input("sql> " if not text else "  -> ") + "\n"
        except EOFError:
            return
        statements = split_statements(text)
        if statements and not statements[-1].is_closed:
            continue
        if any(statement.text.upper() in ("QUIT", "EXIT") for statement in statements):
            return
        try:
            _run(session, screen, text)
        except UserError as problem:
            screen.error(problem, verbose=False)
        except KeyboardInterrupt:
            screen.message("stopped")
        text = ""


def _run(session: GatewaySession, screen: Screen, text: str) -> None:
    for statement in split_statements(text):
        pages = session.execute(statement.text)
        try:
            _show(screen, pages)
        finally:
            pages.close()


def _show(screen: Screen, pages: Iterator[dict[str, Any]]) -> None:
    first = next(pages)
    names = [column["name"] for column in first["results"]["columns"]]
    if first["isQueryResult"]:
        changes = (
            (RowKind[row["kind"]].value, _cells(row))
            for page in _chain(first, pages)
            for row in page["results"]["data"]
        )
        for line in tableau.format_stream(names, [t.STRING] * len(names), changes):
            screen.line(line)
    elif first.get("jobID"):
        screen.message(f"job {first['jobID']} was submitted")
    elif first["resultKind"] == "SUCCESS":
        screen.message("statement executed")
    else:
        rows = [_cells(row) for page in _chain(first, pages) for row in page["results"]["data"]]
        for line in tableau.format_table(names, rows, None):
            screen.line(line)
        return
    for _ in pages:
        pass


def _chain(first: dict[str, Any], pages: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    yield first
    yield from pages


def _cells(row: Mapping[str, Any]) -> list[str]:
    return [tableau.NULL if field is None else field for field in row["fields"]]


def _read_problem(refused: urllib.error.HTTPError) -> str:
    """Return what stands behind the last cause of an error, as Flink's SQL client shows it."""
    try:
        text = str(json.load(refused)["errors"][-1])
    except (ValueError, KeyError, IndexError):
        return f"the gateway answered with status {refused.code}"
    return text.rpartition(_CAUSE)[2].partition(_TRACE)[0].partition(": ")[2] or text
