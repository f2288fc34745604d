"""Dynamic patterns: patterns that arrive as JSON on a broadcast stream and are kept in broadcast state.

Promises: a new pattern applies to the events that are matched after it arrived. Removing or replacing a pattern
discards its partial matches. An invalid record changes nothing and is counted.
Does not know: the source of the patterns. Nothing in them is executed."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from millstream.cep.conditions import ConditionRegistry
from millstream.cep.pattern import Pattern
from millstream.cep.pattern_json import MAX_BYTES, InvalidPatternJson
from millstream.errors import UserError
from millstream.runtime import rowwise
from millstream.runtime.batch import Batch
from millstream.runtime.nfa.compile import compile_pattern
from millstream.runtime.nfa.events import Events
from millstream.runtime.nfa.matching import Matching
from millstream.runtime.nfa.pattern import PatternPlan
from millstream.runtime.operator import Operator, OperatorContext
from millstream.runtime.operators.cep import CepOperator, CepSpec, MatchContext
from millstream.state.deltas import Redistribution
from millstream.types.factory import Types

REJECTED_METRIC = "numPatternsRejected"
_EMPTY_PLAN = PatternPlan(())


@dataclass(frozen=True)
class DynamicCepSpec(CepSpec):
    """Match the patterns of input 1 in the events of input 0."""

    registry: ConditionRegistry | None = None
    rejected_tag: str | None = None

    @staticmethod
    def of(registry: ConditionRegistry | None) -> Callable[..., CepSpec]:
        """Return a function that creates the spec when the key and the function are known."""
        return functools.partial(DynamicCepSpec, plan=_EMPTY_PLAN, registry=registry)

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return DynamicCepOperator(context, self)


class DynamicMatchContext(MatchContext):
    """The context of a match of a dynamic pattern.

    Example:
        >>> from millstream.cep import PatternProcessFunction
        >>> class WithPattern(PatternProcessFunction):
        ...     def process_match(self, match, ctx):
        ...         yield ctx.get_pattern_id(), ctx.get_pattern_version(), match

    """

    pattern_id = ""
    version = 0

    def get_pattern_id(self) -> str:
        """Return the id of the pattern."""
        return self.pattern_id

    def get_pattern_version(self) -> int:
        """Return the version of the pattern."""
        return self.version


class DynamicCepOperator(CepOperator):
    """Matches events of input 0 with patterns of input 1."""

    def __init__(self, context: OperatorContext, spec: DynamicCepSpec) -> None:
        super().__init__(context, spec)
        self._registry, self._rejected_tag = spec.registry, spec.rejected_tag
        self._pattern_table = context.state.table(
            "cep/patterns", Types.STRING(), Redistribution.BROADCAST, key_type=Types.STRING()
        )
        self._match_context = DynamicMatchContext(self)
        self._calling = self._match_context
        self._texts: dict[str, str] = {}

    def patterns(self) -> dict[str, Matching]:
        """Return no patterns: they are read from state and from input 1."""
        return {}

    def begin_epoch(self) -> None:
        """Load the patterns from state, which may have been restored or changed by another worker."""
        self._update_patterns(dict(self._pattern_table.scan(None)))
        super().begin_epoch()

    def check_patterns(self) -> None:
        """Do nothing: patterns and their partial matches are in state together, so they always fit."""

    def _update_patterns(self, texts: dict[str, str]) -> None:
        if texts == self._texts:
            return
        unchanged = {name: self._patterns[name] for name in self._texts if texts.get(name) == self._texts[name]}
        self._patterns = {
            name: unchanged.get(name) or self._create_matching(name, text) for name, text in sorted(texts.items())
        }
        self._texts = texts

    def _create_matching(self, name: str, text: str) -> Matching:
        record = json.loads(text)
        plan = Pattern.from_json(record["pattern"], self._registry).plan()
        return _VersionedMatching(self, plan, name, record["version"])

    def on_batch(self, batch: Batch, side: int) -> None:
        """Match events, or add and remove patterns."""
        if side == 0:
            super().on_batch(batch, side)
            return
        rowwise.map_rows(self.context.name, self._apply_record, batch.rows())
        self._update_patterns(dict(self._pattern_table.scan(None)))
        self._collector.flush()

    def _apply_record(self, record: Any) -> None:
        try:
            name, new_text = self._read(record)
        except (UserError, RecursionError) as problem:
            self.context.metrics.count(REJECTED_METRIC)
            if self._rejected_tag is not None and self.context.subtask == 0:  # every subtask receives the record
                self._collector.side(self._rejected_tag, str(problem), self.watermark)
            return
        old_text = self._pattern_table.get(None, name)
        if new_text is None:
            self._pattern_table.delete(None, name)
        elif new_text != old_text:
            self._pattern_table.put(None, name, new_text)
        else:
            return
        self.matches.clear_namespace(name)

    def _read(self, record: Any) -> tuple[str, str | None]:
        """Return the id, and the pattern with its version as JSON text, or None if the pattern is removed."""
        if isinstance(record, str | bytes):
            if len(record) > MAX_BYTES:
                raise InvalidPatternJson(where="record", problem=f"{len(record)} bytes are more than {MAX_BYTES}")
            try:
                record = json.loads(record)
            except (ValueError, RecursionError) as problem:
                raise InvalidPatternJson(where="record", problem=f"this is not JSON ({problem})") from None
        if not isinstance(record, dict) or not isinstance(record.get("id"), str) or not record["id"]:
            raise InvalidPatternJson(where="record.id", problem="a pattern needs an id, a text that is not empty")
        if set(record) == {"id", "remove"} and record["remove"] is True:
            return record["id"], None
        version = record.get("version", 1)
        if set(record) - {"version"} != {"id", "pattern"} or isinstance(version, bool) or not isinstance(version, int):
            raise InvalidPatternJson(
                where="record", problem="id, version (an int) and pattern, or id and remove, were expected"
            )
        pattern = Pattern.from_json(record["pattern"], self._registry)
        compile_pattern(pattern.plan())
        return record["id"], json.dumps({"version": version, "pattern": pattern.to_json()}, sort_keys=True)

    def set_current_pattern(self, name: str, version: int) -> None:
        """Set the id and the version that the context returns for the following matches."""
        self._match_context.pattern_id, self._match_context.version = name, version


class _VersionedMatching(Matching):
    """The matching of one pattern, which sets its id and version in the context."""

    def __init__(self, operator: DynamicCepOperator, plan: PatternPlan, name: str, version: int) -> None:
        super().__init__(operator, operator.matches, plan, operator.spec.input_type, name)
        self._dynamic, self._name, self._version = operator, name, version

    def run(self, events: Events | None, woken: Iterable[Any], until: int) -> Iterator[tuple[Any, int]]:
        """Set the id and the version of the pattern, then match as usual."""
        self._dynamic.set_current_pattern(self._name, self._version)
        return super().run(events, woken, until)
