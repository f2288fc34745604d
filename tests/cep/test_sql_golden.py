"""Patterns have the same matches as MATCH_RECOGNIZE with the same clause in Flink; recorded by record.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import cep_sql
import pytest

from millstream.cep import AfterMatchSkipStrategy, Pattern
from millstream.runtime.nfa.compile import compile_pattern
from millstream.runtime.nfa.match import Matcher

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "cep" / "sql.json").read_text())


def _create_row(match: dict[str, list[Any]], variables: str) -> list[Any]:
    row: list[Any] = []
    for name in variables:
        ids = [event["id"] for event in match.get(name, [])]
        row += [ids[0], ids[-1], len(ids)] if ids else [None, None, 0]
    return row


@pytest.mark.parametrize("case", cep_sql.CASES, ids=lambda case: case.name)
def test_a_pattern_has_the_matches_of_match_recognize(case: cep_sql.SqlCase) -> None:
    matcher = Matcher(compile_pattern(case.build(Pattern, AfterMatchSkipStrategy).plan()))
    live = matcher.initial()
    matches = []
    for number, letter, price, seconds in cep_sql.EVENTS:
        time = seconds * 1_000
        matches += matcher.advance(live, time)[0]
        matches += matcher.process(live, {"id": number, "k": letter, "price": price}, time)
    matches += matcher.advance(live, 1 << 60)[0]
    assert [_create_row(match, case.variables) for match in matches] == GOLDEN[case.name]
