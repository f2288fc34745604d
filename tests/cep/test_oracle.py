"""The automaton finds what the definitions say. More cases: MILLSTREAM_CEP_CASES=100000 pytest tests/cep"""

from __future__ import annotations

import json
import os
from collections import Counter

import cep_cases
import cep_oracle
import cep_running
import pytest

CASES = int(os.environ.get("MILLSTREAM_CEP_CASES", "2400"))
SEED = int(os.environ.get("MILLSTREAM_SEED", "0"))
PARTS = 8


def _counted(matches: list[dict[str, list[int]]]) -> Counter[str]:
    return Counter(json.dumps(match, sort_keys=True) for match in matches)


@pytest.mark.parametrize("part", range(PARTS))
def test_the_automaton_finds_every_match_once(part: int) -> None:
    checked = found = 0
    seed = SEED + part * 10_000_000
    while checked < CASES // PARTS:
        seed += 1
        given = cep_cases.case(seed, exotic=False)
        if not cep_oracle.covers(given["pattern"]) or not cep_running.makes_sense(given["pattern"]):
            continue
        expected = cep_oracle.find(given)
        if expected is None:
            continue
        checked += 1
        mine = [out[1] for out in cep_running.run(given, answered=checked % 2 == 0) if out[0] == "match"]
        found += len(expected)
        assert _counted(mine) == _counted(expected), json.dumps(given)
    assert found > checked // 2  # the cases are worth something
