"""Faker expressions: each value depends on its seed, and has the format of datafaker's values."""

import random
import re

import pytest

from millstream.connectors.datagen.faker_expressions import InvalidExpression, compile_expression, relative_time_range
from millstream.connectors.datagen.faker_words import WORDS
from millstream.connectors.datagen.regexify import InvalidPattern, compile_pattern

SEEDS = range(40)


@pytest.mark.parametrize(
    "pattern",
    [
        "(basic|premium|platinum){1}",
        r"(/search\.html|/login\.html|cart\.html){1}",
        "[a-f0-9]{8}-[A-Z]{2,4}",
        r"\d{3}[\w-]x?y*z+",
        "(?:a|b(c|d)){2,}",
        r"Lawn\ \&\ Order|New York",
        "^[^a-z]$",
        "a.c",
    ],
)
def test_regexify_draws_texts_that_match(pattern: str) -> None:
    draw = compile_pattern(pattern)
    assert all(re.fullmatch(pattern, draw(random.Random(seed))) for seed in SEEDS)


@pytest.mark.parametrize("pattern", ["(a", "a)", "[]", "a{x}", "*a", "[a"])
def test_incomplete_patterns_are_refused(pattern: str) -> None:
    with pytest.raises(InvalidPattern, match="regexify cannot use the pattern"):
        compile_pattern(pattern)


@pytest.mark.parametrize(
    ("expression", "pattern"),
    [
        ("#{number.numberBetween '0','7'}", "[0-6]"),
        ("#{Number.randomDouble '2','10','20'}", r"1\d\.\d\d|20\.00"),
        ("#{number.digits '5'}", r"\d{5}"),
        ("#{number.randomNumber '3'}", r"[1-9]\d\d"),
        ("#{numerify 'A-##'}", r"A-\d\d"),
        ("#{bothify '?#'}", r"[a-z]\d"),
        ("#{letterify '??'}", r"[a-z]{2}"),
        ("#{Options.option 'it''s','b'}", "it's|b"),
        ("#{regexify '(GET|POST){1}'}", "GET|POST"),
        ("#{harry_potter.spell}", "|".join(WORDS["harrypotter.spell"])),
        ("#{commerce.price}", r"\d+\.\d\d"),
        ("plain", "plain"),
        ("<#{number.digit}|#{number.digit}>", r"<\d\|\d>"),
    ],
)
def test_values_have_the_expected_form(expression: str, pattern: str) -> None:
    draw = compile_expression(expression)
    values = [draw(random.Random(seed)) for seed in SEEDS]
    assert all(re.fullmatch(pattern, value) for value in values)
    assert values == [draw(random.Random(seed)) for seed in SEEDS]


@pytest.mark.parametrize(
    ("expression", "pattern"),
    [
        ("#{Internet.publicIpV4Address}", r"\d+\.\d+\.\d+\.\d+"),
        ("#{Internet.uuid}", "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
        ("#{Currency.code}", "[A-Z]{3}"),
        ("#{Name.firstName} #{Name.lastName}", r"\S.* \S.*"),
        ("#{Name.full_name}", ".+ .+"),
        ("#{Address.fullAddress}", ".+"),
        ("#{Internet.userAgentAny}", ".+"),
        ("#{Misc.md5}", "[0-9a-f]{32}"),
    ],
)
def test_values_of_the_package_faker(expression: str, pattern: str) -> None:
    pytest.importorskip("faker")
    draw = compile_expression(expression)
    values = [draw(random.Random(seed)) for seed in SEEDS]
    assert all(re.fullmatch(pattern, value) for value in values)
    assert values == [draw(random.Random(seed)) for seed in SEEDS]
    assert len(set(values)) > 1


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("#{number.numberBetween '1'}", "wrong arguments for number.numberBetween: 1"),
        ("#{number.numberBetween 'a','b'}", "wrong arguments"),
        ("#{no.suchThing}", "calls no.suchThing, which is not known"),
        ("#{Name.firstName", "an incomplete call"),
        ("#{date.past '1','DAYS'}", "a time relative to now"),
    ],
)
def test_wrong_expressions_are_refused(expression: str, message: str) -> None:
    pytest.importorskip("faker")
    with pytest.raises(InvalidExpression, match=message):
        compile_expression(expression)


@pytest.mark.parametrize(
    ("expression", "limits"),
    [
        ("#{date.past '15','SECONDS'}", (-15_000, 0)),
        ("#{date.past '15','5','SECONDS'}", (-15_000, -5_000)),
        ("#{date.future '2','DAYS'}", (0, 172_800_000)),
        ("#{Name.firstName}", None),
    ],
)
def test_times_are_relative_to_now(expression: str, limits: tuple[int, int] | None) -> None:
    assert relative_time_range(expression) == limits


@pytest.mark.parametrize("expression", ["#{date.past '5'}", "#{date.past '5','WEEKS'}", "#{date.past '5','9','DAYS'}"])
def test_wrong_times_are_refused(expression: str) -> None:
    with pytest.raises(InvalidExpression):
        relative_time_range(expression)
