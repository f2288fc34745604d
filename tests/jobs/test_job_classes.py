"""Classes of one job are not known to the next, in the same worker and in the same driver."""

from __future__ import annotations

import dataclasses

import pytest

from millstream.common import Types
from millstream.datastream import StreamExecutionEnvironment
from millstream.engine import epoch_level
from millstream.errors import MillstreamError
from millstream.serialization import codec


@dataclasses.dataclass
class Account:
    """A class that one of two jobs declares."""

    number: int


def _bytes() -> bytes:
    with codec.using(codec.Classes([Account])):
        return codec.encode(Account(7))


def _run(*classes: type) -> list[object]:
    """Decode an account in a task of a job that declares these classes."""
    data = _bytes()
    env = StreamExecutionEnvironment.get_execution_environment()
    env.register_type(*classes)
    stream = env.from_collection([1], type_info=Types.LONG())
    with stream.map(lambda _: codec.decode(data).number, output_type=Types.LONG()).execute_and_collect() as rows:
        return list(rows)


def test_the_next_job_in_the_same_worker_cannot_decode_them(
    inline_engine: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(epoch_level, "dispose_tasks", lambda: None)  # the worker lives on, as Spark's does
    assert _run(Account) == [7]
    with pytest.raises(MillstreamError, match="Account', which this program does not declare"):
        _run()


def test_a_jobs_thread_in_the_driver_knows_its_own_classes_only(inline_engine: None) -> None:
    found: dict[str, frozenset[type]] = {}
    for name, classes in {"one": [Account], "other": []}.items():
        env = StreamExecutionEnvironment.get_execution_environment()
        env.register_type(*classes)
        env.register_listener(lambda _, name=name: found.setdefault(name, codec.declared()))
        env.from_collection([1], type_info=Types.LONG()).print()
        env.execute()
    assert Account in found["one"]
    assert Account not in found["other"]


def test_untyped_values_hold_registered_classes(inline_engine: None) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.register_type(Account)
    stream = env.from_collection([1, 2], type_info=Types.LONG())
    accounts = stream.map(Account).key_by(lambda account: account.number % 2)
    with accounts.map(lambda account: account.number, output_type=Types.LONG()).execute_and_collect() as rows:
        assert sorted(rows) == [1, 2]
