"""Marks in their topic: an unreadable mark is an error, and waiting for the topic has a timeout."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from millstream.connector.sink import OutputRefused
from millstream.connectors.kafka import marks
from millstream.connectors.kafka.mark import JobMark, Mark
from millstream.connectors.kafka.marks import TOPIC, Marks, MarkUnreadable, TopicNotDescribed

kafka = pytest.importorskip("confluent_kafka")

CONNECTION = {"bootstrap.servers": "broker:9092"}


def answer(result: Callable[[], Any]) -> Any:
    return SimpleNamespace(result=lambda _: result())


class Brokers:
    """The admin client and the consumer of a topic with one partition and one message."""

    def __init__(self, value: bytes | None = None) -> None:
        self.value, self.created = value, 0
        self.described = {TOPIC: SimpleNamespace(partitions={0: None}, error=None)}

    def list_topics(self, timeout: float) -> Any:
        return SimpleNamespace(topics=self.described)

    def create_topics(self, topics: list[Any], operation_timeout: float) -> dict[str, Any]:
        def refuse() -> None:
            raise kafka.KafkaException(kafka.KafkaError(kafka.KafkaError.TOPIC_ALREADY_EXISTS))

        self.created += 1
        return {TOPIC: answer(refuse)}

    def list_offsets(self, asked: dict[Any, Any], **_: Any) -> dict[Any, Any]:
        return {where: answer(lambda: SimpleNamespace(offset=1)) for where in asked}

    def assign(self, partitions: list[Any]) -> None: ...

    def consume(self, most: int, timeout: float) -> list[Any]:
        message = {"error": None, "offset": 0, "key": b"id", "value": self.value}
        return [SimpleNamespace(**{name: lambda value=value: value for name, value in message.items()})]


def marks_of(brokers: Brokers, monkeypatch: pytest.MonkeyPatch) -> Marks:
    monkeypatch.setattr(marks, "create_client", lambda *_: brokers)
    return Marks("id", CONNECTION)


def test_a_mark_that_cannot_be_read_is_an_error_with_a_remedy(monkeypatch):
    for value in (b"?", b'{"owner": "", "jobs": {}, "form": 2}'):
        with pytest.raises(MarkUnreadable, match=f"the mark of 'id' in the topic '{TOPIC}' cannot be read") as raised:
            marks_of(Brokers(value), monkeypatch).read()
        assert isinstance(raised.value, OutputRefused)  # a retry would not help
        assert "a message with this key and no value" in str(raised.value.hint)


def test_a_discarded_mark_is_empty(monkeypatch):
    assert marks_of(Brokers(None), monkeypatch).read() == Mark()
    assert marks_of(Brokers(b'{"job": 7}'), monkeypatch).read() == Mark("", {"job": JobMark(7)})


@pytest.mark.parametrize("error", [None, "Topic authorization failed"])
def test_waiting_for_a_topic_that_exists_and_is_not_described_ends(monkeypatch, error):
    brokers, now = Brokers(), [0.0]
    brokers.described = {TOPIC: SimpleNamespace(partitions={}, error=error)} if error else {}

    def sleep(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(marks, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=sleep))
    with pytest.raises(
        TopicNotDescribed, match=rf"'{TOPIC}' failed: .* not described .* 30 s{f': {error}' if error else ''}"
    ):
        marks_of(brokers, monkeypatch)
    assert 30 <= now[0] < 31
    assert 100 < brokers.created < 200
