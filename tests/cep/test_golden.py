"""The automaton has the same results as Flink's automaton, in the same order; recorded by record.py."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import cep_running
import pytest

from millstream.errors import UserError

GOLDEN = Path(__file__).parents[1] / "golden" / "cep" / "automaton.jsonl.gz"
PARTS = 4


@pytest.mark.parametrize("part", range(PARTS))
def test_matches_and_timeouts_are_those_of_flink(part: int) -> None:
    lines = gzip.decompress(GOLDEN.read_bytes()).decode().splitlines()
    assert len(lines) >= 1_000
    for line in lines[part::PARTS]:
        case = json.loads(line)
        if "error" in case:
            with pytest.raises(UserError):
                cep_running.run(case)
        else:
            assert cep_running.run(case) == case["out"], line
            assert cep_running.run(case, precomputed=True) == case["out"], line
