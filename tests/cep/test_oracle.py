"""The automaton finds the same matches as an independent matcher.

MILLSTREAM_CEP_CASES=100000 pytest tests/cep runs more cases."""

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


def _count(matches: list[dict[str, list[int]]]) -> Counter[str]:
    return Counter(json.dumps(match, sort_keys=True) for match in matches)


@pytest.mark.parametrize("part", range(PARTS))
def test_the_automaton_finds_every_match_once(part: int) -> None:
    checked = total_matches = 0
    seed = SEED + part * 10_000_000
    while checked < CASES // PARTS:
        seed += 1
        case = cep_cases.create_case(seed, exotic=False)
        if not cep_oracle.covers(case["pattern"]) or not cep_running.is_valid(case["pattern"]):
            continue
        expected = cep_oracle.find_matches(case)
        if expected is None:
            continue
        checked += 1
        actual = [result[1] for result in cep_running.run(case, precomputed=checked % 2 == 0) if result[0] == "match"]
        total_matches += len(expected)
        assert _count(actual) == _count(expected), json.dumps(case)
    assert total_matches > checked // 2  # enough cases have matches
