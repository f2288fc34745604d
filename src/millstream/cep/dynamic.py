"""Patterns that change while the job runs: they come as JSON, by broadcast, and are kept in broadcast state.

Promises: a new pattern begins with the events matched after it came; one that is removed, or comes again in another
version, takes its partial matches with it; a record that makes no sense changes nothing and is counted.
Does not know: where patterns come from. Nothing in them is executed."""

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
from millstream.runtime.nfa.compile import automaton
from millstream.runtime.nfa.events import Events
from millstream.runtime.nfa.matching import Matching
from millstream.runtime.nfa.pattern import PatternPlan
from millstream.runtime.operator import Operator, OperatorContext
from millstream.runtime.operators.cep import CepOperator, CepSpec, MatchContext
from millstream.state.deltas import Redistribution
from millstream.types.factory import Types

REJECTED = "numPatternsRejected"
_NO_PLAN = PatternPlan(())


@dataclass(frozen=True)
class DynamicCepSpec(CepSpec):
    """Patterns from input 1 over the events of input 0."""

    registry: ConditionRegistry | None = None
    rejected_tag: str | None = None

    @staticmethod
    def of(registry: ConditionRegistry | None) -> Callable[..., CepSpec]:
        """What makes the description, once key and function are known."""
        return functools.partial(DynamicCepSpec, plan=_NO_PLAN, registry=registry)

    def build(self, context: OperatorContext) -> Operator:
        """The operator."""
        return DynamicCepOperator(context, self)


class DynamicMatchContext(MatchContext):
    """What functions are given with a match of one of several patterns."""

    pattern_id = ""
    version = 0

    def get_pattern_id(self) -> str:
        """The id the pattern came with."""
        return self.pattern_id

    def get_pattern_version(self) -> int:
        """The version the pattern came with."""
        return self.version


class DynamicCepOperator(CepOperator):
    """Events on side 0, patterns on side 1."""

    def __init__(self, context: OperatorContext, spec: DynamicCepSpec) -> None:
        super().__init__(context, spec)
        self._registry, self._rejected_tag = spec.registry, spec.rejected_tag
        self._known = context.state.table(
            "cep/patterns", Types.STRING(), Redistribution.BROADCAST, key_type=Types.STRING()
        )
        self._naming = DynamicMatchContext(self)
        self._calling = self._naming
        self._texts: dict[str, str] = {}

    def patterns(self) -> dict[str, Matching]:
        """None: they come from state and from input 1."""
        return {}

    def begin_epoch(self) -> None:
        """State may have been restored, or changed by another worker: have the patterns that are in it."""
        self._take_over(dict(self._known.scan(None)))
        super().begin_epoch()

    def check_patterns(self) -> None:
        """Patterns come from state, together with their partial matches."""

    def _take_over(self, texts: dict[str, str]) -> None:
        if texts == self._texts:
            return
        kept = {name: self._patterns[name] for name in self._texts if texts.get(name) == self._texts[name]}
        self._patterns = {name: kept.get(name) or self._matching(name, text) for name, text in sorted(texts.items())}
        self._texts = texts

    def _matching(self, name: str, text: str) -> Matching:
        given = json.loads(text)
        plan = Pattern.from_json(given["pattern"], self._registry).plan()
        return _Named(self, plan, name, given["version"])

    def on_batch(self, batch: Batch, side: int) -> None:
        """Match events, or take patterns in."""
        if side == 0:
            super().on_batch(batch, side)
            return
        rowwise.map_rows(self.context.name, self._change, batch.rows())
        self._take_over(dict(self._known.scan(None)))
        self._collector.flush(self.context)

    def _change(self, record: Any) -> None:
        try:
            name, change = self._read(record)
        except (UserError, RecursionError) as problem:
            self.context.metrics.count(REJECTED)
            if self._rejected_tag is not None and self.context.subtask == 0:  # every subtask sees the record
                self._collector.side(self._rejected_tag, str(problem), self.watermark)
            return
        before = self._known.get(None, name)
        if change is None:
            self._known.delete(None, name)
        elif change != before:
            self._known.put(None, name, change)
        else:
            return
        self.matches.clear_namespace(name)

    def _read(self, record: Any) -> tuple[str, str | None]:
        """The id, and the pattern with its version as text, None when it is to go."""
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
        automaton(pattern.plan())
        return record["id"], json.dumps({"version": version, "pattern": pattern.to_json()}, sort_keys=True)

    def matched_by(self, name: str, version: int) -> None:
        """The matches that follow are of this pattern."""
        self._naming.pattern_id, self._naming.version = name, version


class _Named(Matching):
    """A pattern that says whose matches it hands on."""

    def __init__(self, operator: DynamicCepOperator, plan: PatternPlan, name: str, version: int) -> None:
        super().__init__(operator, operator.matches, plan, operator.spec.input_type, name)
        self._dynamic, self._name, self._version = operator, name, version

    def run(self, events: Events | None, woken: Iterable[Any], until: int) -> Iterator[tuple[Any, int]]:
        """As for one pattern, with its id and version at hand."""
        self._dynamic.matched_by(self._name, self._version)
        return super().run(events, woken, until)
