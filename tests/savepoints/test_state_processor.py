"""State is read, written and edited outside a job, and restored by jobs."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
import pyarrow as pa
import pytest

from millstream.cli import main
from millstream.common import Types
from millstream.common.watermark_strategy import WatermarkStrategy
from millstream.datastream.functions import (
    BroadcastProcessFunction,
    CheckpointedFunction,
    KeyedProcessFunction,
    MapFunction,
)
from millstream.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from millstream.state_processor import (
    BroadcastStateBootstrapFunction,
    KeyedStateBootstrapFunction,
    KeyedStateReaderFunction,
    OperatorIdentifier,
    OperatorTransformation,
    Savepoint,
    SavepointReader,
    SavepointWriter,
    StateBootstrapFunction,
)
from millstream.state_processor.snapshot import NoSuchOperator, NoSuchState
from millstream.state_processor.writer import OperatorExists
from millstream.testing.feed import Feed
from millstream.times import Time

SEEN: list = []


@dataclass
class Account:
    owner: str
    balance: float = 0.0


TTL = ValueStateDescriptor("short", Types.LONG())
TTL.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
ACCOUNT = ValueStateDescriptor("account", Account)
EVENTS = ListStateDescriptor("events", Types.LONG())
TAGS = MapStateDescriptor("tags", Types.STRING(), Types.LONG())
TOTAL = ReducingStateDescriptor("total", lambda one, other: one + other, Types.LONG())
RULES = MapStateDescriptor("rules", Types.STRING(), Types.LONG())
LISTED = ListStateDescriptor("listed", Types.LONG())


class Bank(KeyedProcessFunction):
    """Adds a number to the account, or emits all state for None."""

    def open(self, runtime_context):
        self.account = runtime_context.get_state(ACCOUNT)
        self.events = runtime_context.get_list_state(EVENTS)
        self.tags = runtime_context.get_map_state(TAGS)
        self.total = runtime_context.get_reducing_state(TOTAL)
        self.short = runtime_context.get_state(TTL)

    def process_element(self, value, ctx):
        key, number = value
        if number is None:
            SEEN.append(
                (
                    key,
                    self.account.value(),
                    list(self.events.get()),
                    dict(self.tags.items()),
                    self.total.get(),
                    self.short.value(),
                )
            )
            return
        before = self.account.value()
        self.account.update(Account(key, (before.balance if before else 0.0) + number))
        self.events.add(number)
        self.tags.put(f"t{number}", number)
        self.total.add(number)
        self.short.update(number)
        ctx.timer_service().register_event_time_timer(10_000 + number)
        yield from ()

    def on_timer(self, timestamp, ctx):
        SEEN.append(("timer", ctx.get_current_key(), timestamp))
        yield from ()


def start(env, feed, path=None):
    if path is not None:
        env._configuration.set_string("execution.state-recovery.path", str(path))
    stream = env.from_source(feed, WatermarkStrategy.no_watermarks(), "feed").uid("feed")
    stream.key_by(lambda value: value[0]).process(Bank()).uid("bank").print()
    return env.execute_async("bank")


@pytest.fixture(params=["CANONICAL", "NATIVE", "checkpoint"])
def saved(request, environment, eventually, tmp_path):
    """A savepoint of either form, or a checkpoint, of a bank with two customers."""
    SEEN.clear()
    feed = Feed.of(("ann", 1), ("bob", 2), ("ann", 3))
    if request.param != "checkpoint":
        return start(environment(), feed).stop_with_savepoint(False, format_type=request.param).result(60)
    client = start(
        environment(execution__checkpointing__externalized_checkpoint_retention="RETAIN_ON_CANCELLATION"), feed
    )
    client.trigger_savepoint().result(60)
    client.cancel().result(60)
    chosen = max((tmp_path / "checkpoints").glob("*/chk-*"), key=lambda each: int(each.name[4:]))
    return str(chosen)


def frame(state, by="key"):
    return state.to_pandas().sort_values(by).reset_index(drop=True)


def test_every_type_of_state_is_a_table(saved):
    bank = Savepoint(saved).operator("bank")
    names = {state.name: state.kind for state in bank.states()}
    assert names == {
        "account": "value",
        "events": "list",
        "tags": "map",
        "total": "reducing",
        "short": "value",
        "timers/event": "",
    }
    account = frame(bank.state("account"))
    assert account["key"].tolist() == ["ann", "bob"]
    assert account["value"].tolist() == [{"owner": "ann", "balance": 4.0}, {"owner": "bob", "balance": 2.0}]
    assert [list(each) for each in frame(bank.state("events"))["value"]] == [[1, 3], [2]]
    assert frame(bank.state("tags"))["value"].tolist() == [{"t1": 1, "t3": 3}, {"t2": 2}]
    assert frame(bank.state("total"))["value"].tolist() == [4, 2]
    short = frame(bank.state("short"))
    assert short["value"].tolist() == [3, 2]
    assert (short["last_update"] > 0).all()
    assert bank.state("total").to_arrow().schema.field("value").type == pa.int64()
    with pytest.raises(NoSuchState, match=r"no state 'nothing'; its states are .*'account'"):
        bank.state("nothing")
    with pytest.raises(NoSuchOperator, match="no operator 'nobody'"):
        Savepoint(saved).operator("nobody")


def test_a_reader_function_sees_key_after_key(saved):
    class Read(KeyedStateReaderFunction):
        def open(self, runtime_context):
            self.total = runtime_context.get_reducing_state(TOTAL)
            self.short = runtime_context.get_state(TTL)

        def read_key(self, key, ctx):
            yield key, self.total.get(), self.short.value(), ctx.registered_event_time_timers()

    found = SavepointReader.read(saved).read_keyed_state(OperatorIdentifier.for_uid("bank"), Read())
    assert sorted(found) == [("ann", 4, 3, {10_001, 10_003}), ("bob", 2, 2, {10_002})]


def read_state(environment, path, *keys):
    SEEN.clear()
    feed = Feed.of(*((key, None) for key in keys))
    feed.close()
    start(environment(parallelism=3), feed, path).get_job_execution_result().result(60)
    return sorted((each for each in SEEN if each[0] != "timer"), key=str)


def test_a_job_continues_from_an_edited_savepoint(saved, environment, tmp_path):
    accounts = frame(Savepoint(saved).operator("bank").state("account"))
    accounts["value"] = [{**each, "balance": each["balance"] * 10} for each in accounts["value"]]
    path = (
        SavepointWriter.from_existing_savepoint(saved)
        .with_state("bank", ACCOUNT, accounts)
        .without_state("bank", "tags")
        .remove_operator("feed")
        .write(str(tmp_path / "edited"))
    )
    found = read_state(environment, path, "ann", "bob")
    assert [each[:5] for each in found] == [
        ("ann", Account("ann", 40.0), [1, 3], {}, 4),
        ("bob", Account("bob", 20.0), [2], {}, 2),
    ]
    assert {each for each in SEEN if each[0] == "timer"} == {
        ("timer", "ann", 10_001),
        ("timer", "ann", 10_003),
        ("timer", "bob", 10_002),
    }


class Fill(KeyedStateBootstrapFunction):
    def open(self, runtime_context):
        self.account = runtime_context.get_state(ACCOUNT)
        self.short = runtime_context.get_state(TTL)
        self.tags = runtime_context.get_map_state(TAGS)

    def process_element(self, value, ctx):
        self.account.update(Account(value["name"], value["balance"]))
        self.short.update(9)
        self.tags.put("made", 1)
        ctx.timer_service().register_event_time_timer(77)


@pytest.mark.parametrize("guise", ["pandas", "arrow", "rows"])
def test_state_is_bootstrapped_from_tables(environment, tmp_path, guise):
    columns = {"name": ["ann", "bob"], "balance": [1.5, 2.5]}
    data = {
        "pandas": lambda: pd.DataFrame(columns),
        "arrow": lambda: pa.table(columns),
        "rows": lambda: [{"name": "ann", "balance": 1.5}, {"name": "bob", "balance": 2.5}],
    }[guise]()
    made = OperatorTransformation.bootstrap_with(data).key_by("name").transform(Fill())
    path = (
        SavepointWriter.new_savepoint()
        .with_operator(OperatorIdentifier.for_uid("bank"), made)
        .write(str(tmp_path / "new"))
    )
    assert read_state(environment, path, "ann", "bob") == [
        ("ann", Account("ann", 1.5), [], {"made": 1}, None, 9),
        ("bob", Account("bob", 2.5), [], {"made": 1}, None, 9),
    ]
    assert ("timer", "ann", 77) in SEEN


def test_the_short_way_to_state(environment, tmp_path):
    writer = SavepointWriter.new_savepoint()
    writer.with_state("bank", TOTAL, {"ann": 5, "bob": 6})
    writer.with_state("bank", EVENTS, pd.DataFrame({"who": ["ann"], "what": [[1, 2]]}), key="who", value="what")
    writer.with_state("bank", TTL, pa.table({"key": ["ann"], "value": [3]}))
    path = writer.write(str(tmp_path / "new"))
    assert read_state(environment, path, "ann", "bob") == [
        ("ann", None, [1, 2], {}, 5, 3),
        ("bob", None, [], {}, 6, None),
    ]


def test_an_operator_gets_another_uid(saved, environment, tmp_path):
    first = SavepointWriter.from_existing_savepoint(saved).change_operator_identifier("bank", "old bank")
    path = first.remove_operator("feed").write(str(tmp_path / "renamed"))
    assert Savepoint(path).operator("old bank").state("total").entries() == {"ann": 4, "bob": 2}
    back = SavepointWriter.from_existing_savepoint(path).change_operator_identifier("old bank", "bank")
    assert [each[4] for each in read_state(environment, back.write(str(tmp_path / "back")), "ann", "bob")] == [4, 2]
    with pytest.raises(OperatorExists):
        SavepointWriter.from_existing_savepoint(saved).change_operator_identifier("bank", "feed")


class Rules(BroadcastStateBootstrapFunction):
    def process_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put(value, len(value))


class Lists(StateBootstrapFunction):
    def initialize_state(self, context):
        self.state = context.get_operator_state_store().get_list_state(LISTED)
        self.taken = []

    def process_element(self, value, ctx):
        self.taken.append(value)

    def snapshot_state(self, context):
        self.state.update(self.taken)


class Apply(BroadcastProcessFunction):
    def process_element(self, value, ctx):
        yield dict(ctx.get_broadcast_state(RULES).items())

    def process_broadcast_element(self, value, ctx):
        yield from ()


class Listing(MapFunction, CheckpointedFunction):
    def initialize_state(self, context):
        self.held = sorted(context.get_operator_state_store().get_list_state(LISTED).get())

    def snapshot_state(self, context):
        pass

    def map(self, value):
        SEEN.append(("listed", tuple(self.held)))
        return value


def test_broadcast_and_list_state_are_bootstrapped_and_read(environment, tmp_path):
    SEEN.clear()
    make = OperatorTransformation.bootstrap_with
    writer = SavepointWriter.new_savepoint()
    writer.with_operator("apply", make(["x", "yy"]).transform(Rules()))
    writer.with_operator("listing", make([3, 1, 2]).transform(Lists()))
    path = writer.write(str(tmp_path / "new"))
    assert SavepointReader.read(path).read_broadcast_state("apply", RULES) == {"x": 1, "yy": 2}
    assert SavepointReader.read(path).read_list_state("listing", LISTED) == [3, 1, 2]
    assert Savepoint(path).operator("listing").state("listed").to_pandas()["value"].tolist() == [3, 1, 2]
    feed, rules = Feed.of(1), Feed.of()
    feed.close()
    rules.close()
    env = environment(parallelism=1)
    env._configuration.set_string("execution.state-recovery.path", path)
    stream = env.from_source(feed, WatermarkStrategy.no_watermarks(), "feed").map(Listing()).uid("listing")
    broadcast = env.from_source(rules, WatermarkStrategy.no_watermarks(), "rules").broadcast(RULES)
    applied = stream.connect(broadcast).process(Apply()).uid("apply")
    with applied.execute_and_collect() as results:
        assert list(results) == [{"x": 1, "yy": 2}]
    assert SEEN == [("listed", (1, 2, 3))]


def test_the_command_line_lists_prints_and_compares(saved, tmp_path, capsys):
    assert main(["state", "ls", saved]) == 0
    assert "reducing" in capsys.readouterr().out
    assert main(["state", "cat", saved, "bank", "total"]) == 0
    assert "ann" in capsys.readouterr().out
    assert main(["state", "cat", saved, "bank", "account", "--json", "--limit", "1"]) == 0
    assert '"owner"' in capsys.readouterr().out
    assert main(["state", "diff", saved, saved]) == 0
    assert "no difference" in capsys.readouterr().out
    other = SavepointWriter.from_existing_savepoint(saved).with_state("bank", TOTAL, {"ann": 4, "eve": 1})
    path = other.write(str(tmp_path / "other"))
    assert main(["state", "diff", saved, path]) == 1
    told = capsys.readouterr().out
    assert "- bob: 2" in told
    assert "+ eve: 1" in told
    assert main(["state", "ls", str(tmp_path)]) == 1
    assert "is not a checkpoint or savepoint" in capsys.readouterr().err
