"""Keyed state read with SQL: the connector `savepoint` and the module `state`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from millstream.common import Types
from millstream.datastream.functions import KeyedProcessFunction
from millstream.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from millstream.errors import UserError
from millstream.sql.errors import SqlValidationError
from millstream.state_processor import OperatorIdentifier, Savepoint
from millstream.table import EnvironmentSettings, TableEnvironment
from millstream.times import Time


@dataclass
class Account:
    owner: str
    balance: float = 0.0


ACCOUNT = ValueStateDescriptor("account", Account)
EVENTS = ListStateDescriptor("events", Types.LONG())
TAGS = MapStateDescriptor("tags", Types.STRING(), Types.LONG())
TOTAL = ReducingStateDescriptor("the total", lambda one, other: one + other, Types.LONG())
UNTYPED = ValueStateDescriptor("untyped", Types.PICKLED_BYTE_ARRAY())
SHORT = ListStateDescriptor("short", Types.LONG())
SHORT.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
TIMED = MapStateDescriptor("timed", Types.STRING(), Types.LONG())
TIMED.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())


class Bank(KeyedProcessFunction):
    def open(self, runtime_context):
        self.account = runtime_context.get_state(ACCOUNT)
        self.events = runtime_context.get_list_state(EVENTS)
        self.tags = runtime_context.get_map_state(TAGS)
        self.total = runtime_context.get_reducing_state(TOTAL)
        self.untyped = runtime_context.get_state(UNTYPED)
        self.short = runtime_context.get_list_state(SHORT)
        self.timed = runtime_context.get_map_state(TIMED)

    def process_element(self, value, ctx):
        key, number = value
        self.total.add(number)
        self.short.add(number)
        self.timed.put("last", number)
        if key != "cid":  # a key that some states do not have
            self.account.update(Account(key, float(number)))
            self.events.add(number)
            self.tags.put(f"t{number}", number)
            self.untyped.update((key, number))
        ctx.timer_service().register_event_time_timer(10_000 + number)
        yield from ()


@pytest.fixture(params=["CANONICAL", "NATIVE"])
def saved(request, environment):
    from millstream.common.watermark_strategy import WatermarkStrategy
    from millstream.testing.feed import Feed

    env = environment()
    feed = Feed.of(("ann", 1), ("bob", 2), ("ann", 3), ("cid", 4))
    stream = env.from_source(feed, WatermarkStrategy.no_watermarks(), "feed").uid("feed")
    stream.key_by(lambda value: value[0], Types.STRING()).process(Bank()).uid("bank").print()
    return env.execute_async("bank").stop_with_savepoint(False, format_type=request.param).result(60)


def table_environment(path: str, columns: str, options: str = "", *, streaming: bool = False) -> TableEnvironment:
    mode = EnvironmentSettings.in_streaming_mode() if streaming else EnvironmentSettings.in_batch_mode()
    env = TableEnvironment.create(mode)
    env.execute_sql(
        f"CREATE TABLE bank (k STRING, {columns}, PRIMARY KEY (k) NOT ENFORCED) WITH "
        f"('connector' = 'savepoint', 'state.path' = '{path}'{options or OF_BANK})"
    )
    return env


OF_BANK = ", 'operator.uid' = 'bank'"


def rows_of(env: TableEnvironment, query: str) -> list[tuple]:
    with env.execute_sql(query).collect() as rows:
        return [tuple(row) for row in rows]


def test_each_key_is_a_row_with_its_state_of_every_kind(saved: str) -> None:
    columns = (
        "account ROW<owner STRING, balance DOUBLE>, events ARRAY<BIGINT>, tags MAP<STRING, BIGINT>, sum_of BIGINT, "
        "untyped ROW<a STRING, b INT>, short ARRAY<BIGINT>, timed MAP<STRING, BIGINT>"
    )
    options = f"{OF_BANK}, 'fields.sum_of.state-name' = 'the total', 'state.backend.type' = 'rocksdb'"
    found = rows_of(table_environment(saved, columns, options), "SELECT * FROM bank ORDER BY k")
    assert [(k, a and tuple(a), e, t, s, u and tuple(u), x, m) for k, a, e, t, s, u, x, m in found] == [
        ("ann", ("ann", 3.0), [1, 3], {"t1": 1, "t3": 3}, 4, ("ann", 3), [1, 3], {"last": 3}),
        ("bob", ("bob", 2.0), [2], {"t2": 2}, 2, ("bob", 2), [2], {"last": 2}),
        ("cid", None, None, None, 4, None, [4], {"last": 4}),
    ]
    # text shows any value, columns have any order, and a stream reads the same rows
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    env.execute_sql(
        "CREATE TABLE bank (events STRING, k STRING, untyped STRING, PRIMARY KEY (k) NOT ENFORCED) WITH ("
        f"'connector' = 'savepoint', 'state.path' = 'file://{saved}', "
        f"'operator.uid.hash' = '{OperatorIdentifier.for_uid('bank').operator}')"
    )
    assert sorted(rows_of(env, "SELECT * FROM bank WHERE k <> 'cid'")) == [
        ("[1, 3]", "ann", "('ann', 3)"),
        ("[2]", "bob", "('bob', 2)"),
    ]


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ("events ARRAY<BIGINT>", ", 'operator.uid' = 'nobody'", "no operator with the uid 'nobody'.*'bank'"),
        ("events ARRAY<BIGINT>", ", 'sink.parallelism' = '1'", "unknown option 'sink.parallelism'"),
        ("events ARRAY<BIGINT>", f"{OF_BANK}, 'operator.uid.hash' = 'a'", "either 'operator.uid' or"),
        ("event ARRAY<BIGINT>", OF_BANK, "no keyed state 'event'.*events.*fields.event.state-name"),
        ("events BIGINT", OF_BANK, "column 'events' reads a value state, but 'events' is a list state"),
        ("events BIGINT", f"{OF_BANK}, 'fields.events.state-type' = 'set'", "must be value, list, map"),
        ("tags ROW<a INT>", f"{OF_BANK}, 'fields.tags.state-type' = 'map'", "value of column 'tags' for the key 'ann'"),
        ("account INT", OF_BANK, "value of column 'account' for the key .* which is not INT"),
    ],
)
def test_a_table_that_does_not_fit_the_state_is_refused(written: str, columns: str, options: str, message: str) -> None:
    with pytest.raises(UserError, match=f"(?s){message}"):
        rows_of(table_environment(written, columns, options), "SELECT * FROM bank")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> str:
    from millstream.state_processor import SavepointWriter

    writer = SavepointWriter.new_savepoint()
    writer = writer.with_state("bank", EVENTS, {"ann": [1, 3], "bob": [2]})
    writer = writer.with_state("bank", ACCOUNT, {"ann": Account("ann", 3.0)})
    writer = writer.with_state("bank", TAGS, {"ann": {"t1": 1}})
    writer = writer.with_state("other", TOTAL, {"ann": 5})
    return writer.write(str(tmp_path_factory.mktemp("state") / "written"))


def test_a_key_is_one_column(written: str) -> None:
    env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    env.execute_sql(
        "CREATE TABLE bank (k STRING, events ARRAY<BIGINT>) WITH "
        f"('connector' = 'savepoint', 'state.path' = '{written}', 'operator.uid' = 'bank')"
    )
    with pytest.raises(SqlValidationError, match="needs a primary key of one column"):
        env.execute_sql("SELECT * FROM bank")


def test_the_module_state_lists_operators(written: str, tmp_path: Path) -> None:
    env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    with pytest.raises(SqlValidationError, match="SAVEPOINT_METADATA"):
        env.execute_sql(f"SELECT * FROM savepoint_metadata('{written}')")
    env.execute_sql("LOAD MODULE state")
    result = env.execute_sql(f"SELECT * FROM savepoint_metadata('{written}')")
    assert result.get_table_schema().get_field_names()[:4] == [
        "checkpoint-id", "operator-name", "operator-uid", "operator-uid-hash",
    ]  # fmt: skip
    with result.collect() as rows:
        found = {row[2]: tuple(row) for row in rows}
    operators = {operator.uid: operator.snapshot for operator in Savepoint(written).operators()}
    assert found.keys() == operators.keys() == {"bank", "other"}
    for uid, (_, name, _, uid_hash, parallelism, most, parts, coordinator, size) in found.items():
        snapshot = operators[uid]
        files = [handle for lineage in snapshot.lineages for handle in lineage.handles]
        assert (name, uid_hash, parallelism, most) == (snapshot.name, snapshot.operator, snapshot.parallelism, 128)
        assert (parts, coordinator, size) == (1, 0, sum(file.size for file in files))
    with pytest.raises(UserError, match="is not a checkpoint or savepoint"):
        rows_of(env, f"SELECT * FROM savepoint_metadata('{tmp_path}')")
