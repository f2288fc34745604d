"""Unit tests use no Spark and no network, and do not sleep."""

import socket
import sys
import time
from collections.abc import Iterator

import pytest


def _forbid(what: str):
    def refuse(*arguments: object, **named: object) -> None:
        pytest.fail(f"a unit test may not {what}; use a fake from millstream.testing, or move the test to tests/spark")

    return refuse


# A hook and not a fixture: Hypothesis refuses function-scoped fixtures, and this must hold for its tests too.
@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "sleep", _forbid("sleep"))
        patch.setattr(socket.socket, "connect", _forbid("open a connection"))
        patch.setattr(socket.socket, "bind", _forbid("listen on a socket"))
        patch.setitem(sys.modules, "pyspark", None)
        return (yield)
