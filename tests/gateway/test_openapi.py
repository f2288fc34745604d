"""Any request to the gateway is answered without an internal error, and none without the token has an effect."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
import schemathesis
from openapi_requests import REQUESTS, send_again, send_requests

from millstream.cluster import entrypoint
from millstream.config.configuration import Configuration
from millstream.gateway.application import create_application
from millstream.gateway.context import GatewayContext
from millstream.gateway.errors import NoSuchOperation, NoSuchSession
from millstream.gateway.session import Session
from millstream.gateway.sessions import SessionLimits, Sessions

TOKEN = "a token of the test"
WITH_TOKEN = {"Authorization": f"Bearer {TOKEN}"}
STATEMENTS = ("SHOW TABLES", "SET 'pipeline.name' = 'mine'", "SELECT 1", "DROP TABLE missing", "SELECT 'ä", "")


class OpenSession:
    """A session with an operation; another one takes its place when it is closed."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._session = self._open()
        self._operation = self._session.submit("SHOW CATALOGS")

    def _open(self) -> Session:
        return self._sessions.open(None, {})

    def path_parameters(self) -> dict[str, str]:
        try:
            self._sessions.get(self._session.handle)
        except NoSuchSession:
            self._session = self._open()
        try:
            self._session.operation(self._operation.handle)
        except NoSuchOperation:
            self._operation = self._session.submit("SHOW CATALOGS")
        return {
            "session_handle": self._session.handle,
            "operation_handle": self._operation.handle,
            "token": "0",
            "identifier": "`default_catalog`.`default_database`.`t`",
        }


@pytest.fixture
def sessions(inline_engine: None) -> Iterator[Sessions]:
    sessions = Sessions(Configuration(), SessionLimits(), entrypoint.SystemClock(), entrypoint.new_uuid)
    yield sessions
    sessions.close_all()


def test_requests_to_the_gateway(sessions: Sessions) -> None:
    statements = itertools.cycle((*STATEMENTS, None))

    def change(case: schemathesis.Case) -> None:
        statement = next(statements)
        if statement is not None and isinstance(case.body, dict) and isinstance(case.body.get("statement"), str):
            case.body["statement"] = statement

    context = GatewayContext(sessions, entrypoint.SystemClock(), lambda statement, position, catalogs: [], TOKEN)
    session = OpenSession(sessions)
    requests = send_requests(
        create_application(context),
        session.path_parameters,
        headers=WITH_TOKEN,
        change=change,
        only="" if REQUESTS else "/v4/",
    )
    assert all(requests.statuses[status] > 0 for status in (200, 400)), requests.statuses

    before = dict(sessions._sessions), session.path_parameters()
    assert list(send_again(requests, {})) == [401]
    assert (sessions._sessions, session.path_parameters()) == before
