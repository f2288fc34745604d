"""What `millstream txn list` prints; tests/kafka lists the transactions of a broker."""

from __future__ import annotations

import json
from typing import Any

import pytest

from millstream.cli import txn
from millstream.cli.main import main
from millstream.connectors.kafka.open_transactions import OpenTransaction


def test_open_transactions_as_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    open_transaction = OpenTransaction("sums-0", "Ongoing", 7, 0, 60_000, 1_700_000_000_000, ("output",))

    def listed(servers: str, properties: dict[str, Any], prefix: str, *, everything: bool) -> list[OpenTransaction]:
        return [open_transaction]

    monkeypatch.setattr(txn, "list_transactions", listed)
    assert main(["txn", "list", "--bootstrap-servers", "localhost:9092", "--json"]) == 0
    (printed,) = json.loads(capsys.readouterr().out)
    assert (printed["id"], printed["state"], printed["topics"]) == ("sums-0", "Ongoing", ["output"])
