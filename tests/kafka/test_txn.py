"""`millstream txn` lists the open transactions of a dead job, and aborts them."""

from __future__ import annotations

import confluent_kafka

from millstream.cli.main import main


def test_an_open_transaction_is_listed_and_aborted(broker, topic, capsys):
    servers = ["--bootstrap-servers", broker.bootstrap_servers]
    dead = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": f"{topic}-x"})
    dead.init_transactions(30)
    dead.begin_transaction()
    dead.produce(topic, "never seen")
    dead.flush(30)
    broker.produce(topic, ["held back"])
    assert main(["txn", "list", *servers, "--prefix", topic]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"{topic}-x  Ongoing since ")
    assert f"({topic})" in shown
    assert broker.values(topic) == []
    assert main(["txn", "abort", *servers, f"{topic}-x"]) == 0
    assert main(["txn", "list", *servers, "--prefix", topic]) == 0
    assert capsys.readouterr().out.endswith("no transaction is open\n")
    assert broker.values(topic) == ["held back"]


def test_a_mistake_is_one_sentence(capsys):
    assert main(["txn", "list", "--bootstrap-servers", "x", "--property", "nonsense"]) == 1
    assert "is not name=value" in capsys.readouterr().err
    assert main(["txn", "list", "--bootstrap-servers", "x", "--property", "security.protocol=SASL_SSL"]) == 1
    assert "cannot be listed" in capsys.readouterr().err
