"""Complex event processing (CEP): find patterns in streams of events."""

from millstream.cep.conditions import (
    ConditionRegistry,
    IterativeCondition,
    NotACondition,
    RichIterativeCondition,
    SimpleCondition,
)
from millstream.cep.dynamic import DynamicMatchContext
from millstream.cep.expressions import InvalidExpression, earlier, field
from millstream.cep.functions import (
    PatternFlatSelectFunction,
    PatternFlatTimeoutFunction,
    PatternProcessFunction,
    PatternSelectFunction,
    PatternTimeoutFunction,
    TimedOutPartialMatchHandler,
)
from millstream.cep.pattern import Pattern, WithinType
from millstream.cep.pattern_json import InvalidPatternJson, NotData
from millstream.cep.skip import AfterMatchSkipStrategy
from millstream.cep.stream import CEP, DynamicPatternStream, PatternStream
from millstream.runtime.nfa.match import CouldNotSkip
from millstream.runtime.nfa.pattern import MalformedPatternException

__all__ = [
    "CEP",
    "AfterMatchSkipStrategy",
    "ConditionRegistry",
    "CouldNotSkip",
    "DynamicMatchContext",
    "DynamicPatternStream",
    "InvalidExpression",
    "InvalidPatternJson",
    "IterativeCondition",
    "MalformedPatternException",
    "NotACondition",
    "NotData",
    "Pattern",
    "PatternFlatSelectFunction",
    "PatternFlatTimeoutFunction",
    "PatternProcessFunction",
    "PatternSelectFunction",
    "PatternStream",
    "PatternTimeoutFunction",
    "RichIterativeCondition",
    "SimpleCondition",
    "TimedOutPartialMatchHandler",
    "WithinType",
    "earlier",
    "field",
]
