"""Operators behave as their transcripts record, however rows are cut into epochs, moved and stored."""

from pathlib import Path

import pytest

from millstream.testing.transcript import WAYS, Disagreement, MalformedTranscript, Transcript, load, parse, replay
from millstream.testing.vocabulary import UnknownWord, Word

FOLDER = Path(__file__).parents[2] / "transcripts"
TRANSCRIPTS = [each for path in sorted(FOLDER.glob("*.yaml")) for each in load(path)]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("transcript", TRANSCRIPTS, ids=lambda each: each.name)
def test_an_operator_agrees_with_its_transcript(transcript, way):
    replay(transcript, {way: WAYS[way]})


def test_a_wrong_transcript_is_refused_with_the_step():
    wrong = Transcript("wrong", ("reduce(sum)",), ({"rows": [["a", 1, 2]], "emits": [["a", 1, 3]]},))
    with pytest.raises(Disagreement, match=r"step 1 .*\nemits \[\['a', 1, 2\]\]\n not \[\['a', 1, 3\]\]"):
        replay(wrong)


def test_the_order_counts_within_a_key_only():
    steps = ({"rows": [["a", 1, 2], ["b", 1, 3], ["a", 1, 4]], "emits": [["b", 1, 3], ["a", 1, 2], ["a", 1, 6]]},)
    replay(Transcript("order", ("reduce(sum)",), steps))
    turned = ({**steps[0], "emits": [["b", 1, 3], ["a", 1, 6], ["a", 1, 2]]},)
    with pytest.raises(Disagreement):
        replay(Transcript("order", ("reduce(sum)",), turned))


def test_operator_calls_are_parsed_and_never_executed():
    assert parse("window(tumbling=10, trigger=purging(count(3)))") == Word(
        "window", (), (("tumbling", 10), ("trigger", Word("purging", (Word("count", (3,)),))))
    )
    for text in ("__import__('os').system('true')", "window(x=1 + 1)", "[x for x in y]", "window("):
        with pytest.raises(MalformedTranscript):
            parse(text)


def test_an_unknown_word_is_named():
    with pytest.raises(UnknownWord, match="transcripts have no 'windo'"):
        replay(Transcript("unknown", ("windo(tumbling=1)",), ()))
