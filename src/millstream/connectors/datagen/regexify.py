r"""Random texts that match a regular expression, for faker's `regexify`.

Promises: groups, alternatives, character classes, `.`, the escapes \d \w \s, and the quantifiers ? * + {n} {n,m}.
Unlimited quantifiers repeat at most ten times. Anchors match nothing.
Does not know: where the text is used."""

from __future__ import annotations

import string
from collections.abc import Callable

from millstream.connectors.datagen.seeded import SeededRandom
from millstream.errors import UserError

Draw = Callable[[SeededRandom], str]

_MOST_REPETITIONS = 10
_CLASSES = {"d": string.digits, "w": string.ascii_letters + string.digits + "_", "s": " "}
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r"}


class InvalidPattern(UserError):
    """A pattern that cannot be generated from."""

    def __init__(self, pattern: str, problem: str) -> None:
        self.pattern = pattern
        super().__init__(f"regexify cannot use the pattern '{pattern}': {problem}")


def compile_pattern(pattern: str) -> Draw:
    """Return a function that draws a text which matches the pattern."""
    parser = _Parser(pattern)
    draw = parser.parse_alternatives()
    if not parser.is_at_end:
        raise InvalidPattern(pattern, "a closing parenthesis has no opening one")
    return draw


class _Parser:
    def __init__(self, pattern: str) -> None:
        self._pattern, self._offset = pattern, 0

    @property
    def is_at_end(self) -> bool:
        return self._offset >= len(self._pattern)

    def _peek(self) -> str:
        return "" if self.is_at_end else self._pattern[self._offset]

    def _advance(self) -> str:
        if self.is_at_end:
            raise InvalidPattern(self._pattern, "it ends unexpectedly")
        self._offset += 1
        return self._pattern[self._offset - 1]

    def parse_alternatives(self) -> Draw:
        alternatives = [self._parse_sequence()]
        while self._peek() == "|":
            self._advance()
            alternatives.append(self._parse_sequence())
        if len(alternatives) == 1:
            return alternatives[0]
        return lambda rng: rng.choice(alternatives)(rng)

    def _parse_sequence(self) -> Draw:
        items: list[Draw] = []
        while not self.is_at_end and self._peek() not in "|)":
            item = self._parse_item()
            least, most = self._parse_quantifier()
            items.append(item if (least, most) == (1, 1) else _repeat(item, least, most))
        return lambda rng: "".join([item(rng) for item in items])

    def _parse_item(self) -> Draw:
        character = self._advance()
        match character:
            case "(":
                if self._pattern.startswith("?:", self._offset):
                    self._offset += 2
                draw = self.parse_alternatives()
                if self._advance() != ")":
                    raise InvalidPattern(self._pattern, "a parenthesis is not closed")
                return draw
            case "[":
                return _choose(self._parse_class())
            case ".":
                return _choose(string.ascii_letters + string.digits)
            case "^" | "$":
                return lambda _rng: ""
            case "\\":
                return _choose(self._parse_escape())
            case "?" | "*" | "+":
                raise InvalidPattern(self._pattern, f"there is nothing to repeat before '{character}'")
        return _choose(character)

    def _parse_escape(self) -> str:
        character = self._advance()
        return _CLASSES.get(character) or _CONTROLS.get(character, character)

    def _parse_class(self) -> str:
        is_negated = self._peek() == "^"
        if is_negated:
            self._advance()
        characters = ""
        while (character := self._advance()) != "]":
            if character == "\\":
                characters += self._parse_escape()
                continue
            if self._peek() == "-" and not self._pattern.startswith("-]", self._offset):
                self._advance()
                characters += "".join(map(chr, range(ord(character), ord(self._advance()) + 1)))
                continue
            characters += character
        if is_negated:
            characters = "".join(c for c in string.ascii_letters + string.digits if c not in characters)
        if not characters:
            raise InvalidPattern(self._pattern, "a character class is empty")
        return characters

    def _parse_quantifier(self) -> tuple[int, int]:
        simple = {"?": (0, 1), "*": (0, _MOST_REPETITIONS), "+": (1, _MOST_REPETITIONS)}.get(self._peek())
        if simple is not None:
            self._advance()
            return simple
        if self._peek() != "{":
            return 1, 1
        closing = self._pattern.find("}", self._offset)
        least, comma, most = self._pattern[self._offset + 1 : closing].partition(",")
        if closing < 0 or not least.isdigit() or not (most.isdigit() or not most):
            raise InvalidPattern(self._pattern, "a quantifier must be {n} or {n,m}")
        self._offset = closing + 1
        if not comma:
            return int(least), int(least)
        return int(least), int(most) if most else int(least) + _MOST_REPETITIONS


def _choose(characters: str) -> Draw:
    return (lambda _rng: characters) if len(characters) == 1 else (lambda rng: rng.choice(characters))


def _repeat(item: Draw, least: int, most: int) -> Draw:
    return lambda rng: "".join([item(rng) for _ in range(rng.randint(least, most))])
