"""Nexmark events depend only on index and seed, and have the published proportions."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from benchmarks.nexmark import connector, files, program
from benchmarks.nexmark.generator import BLOCK, TOTAL, Nexmark

from millstream.table import EnvironmentSettings, TableEnvironment

assert connector  # the import registers the connector 'nexmark'


def test_a_block_is_generated_again_with_the_same_events() -> None:
    for column, same_column in zip(Nexmark().block(3), Nexmark().block(3), strict=True):
        assert column.tolist() == same_column.tolist() if isinstance(column, np.ndarray) else column.equals(same_column)
    assert not Nexmark(seed=8).block(3)[3].equals(Nexmark().block(3)[3])


def test_events_have_the_published_proportions_and_distributions() -> None:
    types, persons, auctions, bids = Nexmark().block(20)
    assert [len(persons), len(auctions), len(bids)] == [BLOCK // TOTAL * n for n in (1, 3, 46)]
    assert types[:TOTAL].tolist() == [0, 1, 1, 1, *[2] * 46]
    columns = {name: bids.field(i) for i, name in enumerate(bids.type.names)}
    hottest = pc.value_counts(columns["bidder"]).field("counts")
    assert (
        0.35 < pc.max(hottest).as_py() / len(bids) < 0.80
    )  # three of four bids are of the hot bidder among a hundred persons
    hot = pc.is_in(columns["channel"], pa.array(["Google", "Facebook", "Baidu", "Apple"]))
    assert 0.45 < pc.mean(hot).as_py() < 0.55
    fraction = pc.mean(pc.match_substring(columns["url"].filter(pc.invert(hot)), "&channel_id=")).as_py()
    assert 0.87 < fraction < 0.93
    prices = np.log10(columns["price"].to_numpy())
    assert 1.9 < prices.min() < 2.1 < 4.8 < prices.mean() < 5.2 < 7.9 < prices.max() < 8.1
    assert 80 < pc.mean(pc.utf8_length(columns["extra"])).as_py() + 32 < 120
    seller, first = auctions.field(7).to_numpy(), persons.field(0)[0].as_py()
    assert (seller % 100 == 0).mean() > 0.7
    assert seller.max() <= first + len(persons) + 10


def test_events_are_distributed_round_robin_to_files(tmp_path: Path) -> None:
    lines = (files.written(tmp_path, Nexmark(), 1_000) / "part-0.json").read_text().splitlines()
    parts = files.written(tmp_path, Nexmark(), 1_000, parts=2)
    halves = [(parts / f"part-{i}.json").read_text().splitlines() for i in range(2)]
    assert [line for pair in zip(*halves, strict=True) for line in pair] == lines
    assert [json.loads(line)["event_type"] for line in lines[:5]] == [0, 1, 1, 1, 2]


@pytest.mark.parametrize("parallelism", ["1", "3"])
def test_the_connector_reads_the_events_of_the_files(parallelism: str, tmp_path: Path, inline_engine: None) -> None:
    counted = "SELECT COUNT(*), SUM(price), MIN(url), MAX(`dateTime`), COUNT(DISTINCT extra) FROM bid"
    ids = []
    for options in (
        program.json_files(files.written(tmp_path, Nexmark(), 12_345)),
        {"connector": "nexmark", "events.num": "12345"},
    ):
        env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        env.get_config().set("parallelism.default", parallelism)
        env.get_config().set("table.exec.mini-batch.enabled", "true")
        program.create_tables(env, options)
        with env.execute_sql(counted).collect() as rows:
            ids.append(tuple(list(rows)[-1]))
    assert ids[0] == ids[1]
