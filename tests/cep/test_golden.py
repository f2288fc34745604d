"""The automaton makes of patterns what Flink's makes of them, in the same order; recorded by record.py."""

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
def test_matches_and_timeouts_come_as_in_flink(part: int) -> None:
    lines = gzip.decompress(GOLDEN.read_bytes()).decode().splitlines()
    assert len(lines) >= 1_000
    for line in lines[part::PARTS]:
        given = json.loads(line)
        if "error" in given:
            with pytest.raises(UserError):
                cep_running.run(given)
        else:
            assert cep_running.run(given) == given["out"], line
            assert cep_running.run(given, answered=True) == given["out"], line
