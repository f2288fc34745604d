"""Fraud patterns: small payments that test a card, then a large one; and rules that change while the job runs."""

import json
from typing import Any

from millstream.cep import CEP, AfterMatchSkipStrategy, Pattern, PatternProcessFunction, earlier, field
from millstream.common import Duration, Types, WatermarkStrategy
from millstream.datastream import StreamExecutionEnvironment

PAYMENTS = [
    {"card": "ada", "amount": 2, "at": 1_000},
    {"card": "bob", "amount": 700, "at": 2_000},
    {"card": "ada", "amount": 1, "at": 3_000},
    {"card": "ada", "amount": 900, "at": 4_000},
    {"card": "eve", "amount": 40, "at": 5_000},
    {"card": "eve", "amount": 450, "at": 6_000},
    {"card": "bob", "amount": 3, "at": 7_000},
    {"card": "bob", "amount": 950, "at": 90_000},  # too late after the small one
]

tested = (
    Pattern.begin("small", AfterMatchSkipStrategy.skip_past_last_event())
    .where(field("amount") < 5)
    .one_or_more()
    .greedy()
    .followed_by("large")
    .where(field("amount") > 500)
    .within(Duration.of_minutes(1))
)
jump = (  # a rule that only uses the earlier payments of the card
    Pattern.begin("usual").followed_by("jump").where(field("amount") > earlier("usual", "amount", factor=10))
).within(Duration.of_seconds(2))

CHANGES = [
    {"id": "tested card", "version": 1, "pattern": tested.to_json()},
    {"id": "jump", "version": 1, "pattern": jump.to_json()},
    {"id": "old rule", "version": 1, "pattern": {"steps": [{"name": "any"}]}},
    {"id": "old rule", "remove": True},
]


class Alert(PatternProcessFunction):
    def process_match(self, match: dict[str, list[Any]], ctx: Any) -> Any:
        amounts = [payment["amount"] for payments in match.values() for payment in payments]
        yield f"{ctx.get_current_key()}: {ctx.get_pattern_id()} {amounts}"


env = StreamExecutionEnvironment.get_execution_environment()
strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda payment, _: payment["at"])
payments = env.from_collection(PAYMENTS).assign_timestamps_and_watermarks(strategy)
rules = env.from_collection([json.dumps(change) for change in CHANGES], Types.STRING())

cards = payments.key_by(lambda payment: payment["card"], Types.STRING())
CEP.dynamic_patterns(cards, rules).process(Alert(), Types.STRING()).print()
env.execute("fraud")
