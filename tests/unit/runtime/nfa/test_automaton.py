"""Laws of the automaton: state is plain and small, and has only what is needed."""

from __future__ import annotations

import random

from millstream.runtime.nfa import heap
from millstream.runtime.nfa.compile import compile_pattern
from millstream.runtime.nfa.conditions import ALWAYS, Both, Either, Negation, Predicate, compile_check, is_simple
from millstream.runtime.nfa.match import Live, Matcher
from millstream.runtime.nfa.pattern import Contiguity, PatternPlan, Step, Times
from millstream.serialization import codec


def _is(letter: str) -> Predicate:
    return Predicate(lambda event: event == letter)


def _plan(*, within: int | None = None) -> PatternPlan:
    loop = Times(1, None)
    return PatternPlan(
        (
            Step("a", condition=_is("a")),
            Step("b", Contiguity.ANY, _is("b"), times=loop, inner=Contiguity.ANY),
            Step("c", Contiguity.RELAXED, _is("c"), within=within),
        )
    )


def _held(live: Live) -> int:
    return len(live[0]) + len(live[1]) + len(live[2]) + len(live[3])


def test_state_survives_the_codec_at_any_point() -> None:
    chance = random.Random(3)
    events = [(time, chance.choice("abc")) for time in range(40)]
    matcher = Matcher(compile_pattern(_plan(within=8)))
    whole, cut = matcher.initial(), matcher.initial()
    for time, event in events:
        expected = (matcher.advance(whole, time), matcher.process(whole, event, time))
        cut = codec.decode(codec.encode(cut))
        assert (matcher.advance(cut, time), matcher.process(cut, event, time)) == expected


def test_only_events_inside_the_window_are_kept() -> None:
    matcher = Matcher(compile_pattern(_plan(within=6)))
    live = matcher.initial()
    sizes = []
    for time in range(600):
        matcher.advance(live, time)
        matcher.process(live, "ab"[time % 2], time)
        sizes.append(_held(live))
        assert all(start > time - 6 for _, _, start, _, rank in live[0] if rank < 1 << 62)
        assert len(live[2]) <= 6
    assert max(sizes) == max(sizes[:20])
    matcher.advance(live, 10_000)
    assert matcher.is_initial(live)
    assert _held(live) == 1


def test_every_node_is_reached_from_a_partial_match() -> None:
    chance = random.Random(5)
    matcher = Matcher(compile_pattern(_plan(within=9)))
    live = matcher.initial()
    for time in range(300):
        matcher.advance(live, time)
        matcher.process(live, chance.choice("abcx"), time)
        reached = set()
        for _, node, *_ in (*live[0], *live[1]):
            while node != -1:
                reached.add(node)
                node = live[3][node][2]
        assert reached == set(live[3])
        assert {entry[0] for entry in live[3].values()} == set(live[2])


def test_a_simple_condition_is_evaluated_once_per_event() -> None:
    evaluated: list[str] = []

    def is_b(event: str) -> bool:
        evaluated.append(event)
        return event == "b"

    steps = (Step("a", condition=_is("a")), Step("b", Contiguity.ANY, Predicate(is_b)))
    matcher = Matcher(compile_pattern(PatternPlan(steps)))
    live = matcher.initial()
    for time, event in enumerate("aaaaab"):
        matcher.process(live, event, time)
    assert evaluated == list("aaaab")


def test_a_deadline_is_the_first_of_all_partial_matches() -> None:
    steps = (Step("a", condition=_is("a")), Step("b", Contiguity.RELAXED, _is("b"), within=10, within_previous=4))
    matcher = Matcher(compile_pattern(PatternPlan(steps)))
    live = matcher.initial()
    assert matcher.deadline(live) is None
    matcher.process(live, "a", 3)
    matcher.process(live, "a", 5)
    assert matcher.deadline(live) == 7
    assert [end for _, end in matcher.advance(live, 7)[1]] == [7]
    assert matcher.deadline(live) == 9


def test_the_heap_returns_ranks_in_order() -> None:
    chance = random.Random(1)
    for _ in range(200):
        entries = [(number, chance.randint(0, 9)) for number in range(chance.randint(1, 20))]
        queue: heap.Heap = []
        heap.add_all(queue, entries)
        gone = heap.remove(queue, lambda entry: entry[-1] == 4)
        assert sorted(gone) == sorted(entry for entry in entries if entry[1] == 4)
        ranks = [heap.poll(queue)[-1] for _ in range(len(queue))]
        assert ranks == sorted(rank for _, rank in entries if rank != 4)


def test_conditions_combine() -> None:
    class Context:
        def __init__(self) -> None:
            self.results: dict[int, bool] = {}

    yes, no = Predicate(lambda event: True), Predicate(lambda event: False)
    for condition, expected in (
        (Both(yes, no), False),
        (Either(no, yes), True),
        (Negation(no), True),
        (Negation(ALWAYS), False),
        (Both(ALWAYS, yes), True),
    ):
        Context.results = {}
        check = compile_check(condition)
        assert check is not None
        assert check(1, Context()) is expected  # type: ignore[arg-type]
        assert is_simple(condition)
    assert compile_check(Either(no, ALWAYS)) is None
    assert not is_simple(Both(yes, Predicate(lambda event, context: True, iterative=True)))
