"""AfterMatchSkipStrategy: which partial matches are discarded after a match.

Promises: Flink's strategies under their names.
Does not know: patterns and matches."""

from __future__ import annotations

import dataclasses

from millstream.errors import UserError
from millstream.runtime.nfa.pattern import Skip, SkipKind


class AfterMatchSkipStrategy:
    """Control which partial matches are discarded after a match; created by its static methods.

    Example:
        >>> AfterMatchSkipStrategy.skip_to_first("start")
        AfterMatchSkipStrategy.skip_to_first('start')

    """

    def __init__(self, skip: Skip) -> None:
        self._skip = skip

    @staticmethod
    def no_skip() -> AfterMatchSkipStrategy:
        """Emit every possible match; the default."""
        return AfterMatchSkipStrategy(Skip(SkipKind.NO_SKIP))

    @staticmethod
    def skip_to_next() -> AfterMatchSkipStrategy:
        """Discard partial matches that started with the same event as the match."""
        return AfterMatchSkipStrategy(Skip(SkipKind.SKIP_TO_NEXT))

    @staticmethod
    def skip_past_last_event() -> AfterMatchSkipStrategy:
        """Discard partial matches that started after the match started but before it ended."""
        return AfterMatchSkipStrategy(Skip(SkipKind.SKIP_PAST_LAST_EVENT))

    @staticmethod
    def skip_to_first(pattern_name: str) -> AfterMatchSkipStrategy:
        """Discard partial matches that started before the first event of the match that a step accepted.

        Args:
            pattern_name: The name of the step.

        """
        return AfterMatchSkipStrategy(Skip(SkipKind.SKIP_TO_FIRST, _check_name(pattern_name)))

    @staticmethod
    def skip_to_last(pattern_name: str) -> AfterMatchSkipStrategy:
        """Discard partial matches that started before the last event of the match that a step accepted.

        Args:
            pattern_name: The name of the step.

        """
        return AfterMatchSkipStrategy(Skip(SkipKind.SKIP_TO_LAST, _check_name(pattern_name)))

    def throw_exception_on_miss(self) -> AfterMatchSkipStrategy:
        """Fail the job if the step has no event in a match, or if the match would be skipped to its own first event.

        Returns:
            The changed strategy.

        Raises:
            UserError: If the strategy has no step.

        """
        if self._skip.name is None:
            msg = f"{self} names no step, so it cannot miss one"
            raise UserError(msg, hint="call throw_exception_on_miss on skip_to_first or skip_to_last")
        return AfterMatchSkipStrategy(dataclasses.replace(self._skip, strict=True))

    def is_skip_strategy(self) -> bool:
        """Return whether a match discards any partial matches."""
        return self._skip.kind is not SkipKind.NO_SKIP

    def get_pattern_name(self) -> str | None:
        """Return the name of the step to skip to; None if the strategy has none."""
        return self._skip.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AfterMatchSkipStrategy) and self._skip == other._skip

    def __hash__(self) -> int:
        return hash(self._skip)

    def __repr__(self) -> str:
        name = "" if self._skip.name is None else f"({self._skip.name!r})"
        return f"AfterMatchSkipStrategy.{self._skip.kind.value.lower()}{name}"


def _check_name(name: str) -> str:
    if not isinstance(name, str) or not name:
        msg = f"a skip strategy needs the name of a step, not {name!r}"
        raise UserError(msg)
    return name
