"""Where matching goes on after a match.

Promises: Flink's strategies by their names.
Does not know: patterns, matches."""

from __future__ import annotations

import dataclasses

from millstream.errors import UserError
from millstream.runtime.nfa.pattern import Skip, SkipKind


class AfterMatchSkipStrategy:
    """What partial matches a match ends. Made by its static methods."""

    def __init__(self, skip: Skip) -> None:
        self._skip = skip

    @staticmethod
    def no_skip() -> AfterMatchSkipStrategy:
        """Every possible match is found."""
        return AfterMatchSkipStrategy(Skip(SkipKind.NO_SKIP))

    @staticmethod
    def skip_to_next() -> AfterMatchSkipStrategy:
        """Partial matches that began with the same event end."""
        return AfterMatchSkipStrategy(Skip(SkipKind.SKIP_TO_NEXT))

    @staticmethod
    def skip_past_last_event() -> AfterMatchSkipStrategy:
        """Partial matches that began within the match end."""
        return AfterMatchSkipStrategy(Skip(SkipKind.SKIP_PAST_LAST_EVENT))

    @staticmethod
    def skip_to_first(pattern_name: str) -> AfterMatchSkipStrategy:
        """Partial matches that began before the match's first event of a step end."""
        return AfterMatchSkipStrategy(Skip(SkipKind.SKIP_TO_FIRST, _name(pattern_name)))

    @staticmethod
    def skip_to_last(pattern_name: str) -> AfterMatchSkipStrategy:
        """Partial matches that began before the match's last event of a step end."""
        return AfterMatchSkipStrategy(Skip(SkipKind.SKIP_TO_LAST, _name(pattern_name)))

    def throw_exception_on_miss(self) -> AfterMatchSkipStrategy:
        """Fail when a match has no event to skip to, or would be skipped to its own beginning."""
        if self._skip.name is None:
            msg = f"{self} cannot miss"
            raise UserError(msg, hint="use it with skip_to_first or skip_to_last")
        return AfterMatchSkipStrategy(dataclasses.replace(self._skip, strict=True))

    def is_skip_strategy(self) -> bool:
        """Whether a match ends anything."""
        return self._skip.kind is not SkipKind.NO_SKIP

    def get_pattern_name(self) -> str | None:
        """The step that matching goes on from."""
        return self._skip.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AfterMatchSkipStrategy) and self._skip == other._skip

    def __hash__(self) -> int:
        return hash(self._skip)

    def __repr__(self) -> str:
        name = "" if self._skip.name is None else f"({self._skip.name!r})"
        return f"AfterMatchSkipStrategy.{self._skip.kind.value.lower()}{name}"


def _name(name: str) -> str:
    if not isinstance(name, str) or not name:
        msg = f"a skip strategy needs the name of a step, not {name!r}"
        raise UserError(msg)
    return name
