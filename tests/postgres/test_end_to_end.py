"""Changes of one table through keyed state into another, exactly once, while connections and the server die."""

from __future__ import annotations

import random
import time

import pytest

from millstream.common import Configuration, Row, RowKind, Types, WatermarkStrategy
from millstream.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from millstream.datastream.connectors.jdbc import JdbcSink
from millstream.datastream.connectors.postgres_cdc import PostgresSource
from millstream.datastream.state import ValueStateDescriptor

TOTALS = Types.ROW_NAMED(["customer", "total", "changes"], [Types.STRING(), Types.LONG(), Types.LONG()])
EVENTS = Types.ROW_NAMED(["customer", "seq", "total"], [Types.STRING(), Types.LONG(), Types.LONG()])


class Total(KeyedProcessFunction):
    """The sum of a customer's orders, and how many changes it is made of."""

    def open(self, runtime_context):
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))
        self.changes = runtime_context.get_state(ValueStateDescriptor("changes", Types.LONG()))

    def process_element(self, order, ctx):
        sign = -1 if order.get_row_kind() in (RowKind.UPDATE_BEFORE, RowKind.DELETE) else 1
        self.total.update((self.total.value() or 0) + sign * order.amount)
        self.changes.update((self.changes.value() or 0) + 1)
        yield Row(order.customer, self.total.value(), self.changes.value())


def settings(records):
    configuration = Configuration()
    configuration.set_string("execution.checkpointing.interval", "30 ms")
    configuration.set_string("millstream.epoch.max-records", str(records))
    configuration.set_string("millstream.epoch.idle-interval", "5 ms")
    configuration.set_string("restart-strategy.type", "fixed-delay")
    configuration.set_string("restart-strategy.fixed-delay.delay", "20 ms")
    configuration.set_string("restart-strategy.fixed-delay.attempts", "1000")
    return configuration


@pytest.fixture
def orders(database):
    database.execute("CREATE TABLE orders (id int PRIMARY KEY, customer text, amount bigint)")
    database.execute("ALTER TABLE orders REPLICA IDENTITY FULL")
    database.execute("INSERT INTO orders SELECT n, 'c' || n % 5, n FROM generate_series(1, 60) AS n")
    database.execute("CREATE TABLE totals (customer text PRIMARY KEY, total bigint, changes bigint)")
    database.execute("CREATE TABLE events (customer text, seq bigint, total bigint)")
    return database


def change_order(database, chance):
    """One random change of an order."""
    number = chance.randrange(100)
    match chance.randrange(3):
        case 0:
            add = "INSERT INTO orders VALUES (%s, %s, %s) ON CONFLICT (id) DO UPDATE SET amount = EXCLUDED.amount"
            database.execute(add, (number, f"c{chance.randrange(5)}", chance.randrange(1000)))
        case 1:
            database.execute("UPDATE orders SET customer = %s WHERE id = %s", (f"c{chance.randrange(5)}", number))
        case 2:
            database.execute("DELETE FROM orders WHERE id = %s", (number,))


def read_sums(database):
    return dict(database.execute("SELECT customer, sum(amount)::bigint FROM orders GROUP BY customer"))


def test_totals_are_exact_while_connections_and_the_server_die(orders):
    """Upserts by staging, and a log of every step by prepared transactions: no step is missing or repeated."""
    chance = random.Random(17)
    env = StreamExecutionEnvironment.get_execution_environment(settings(20)).set_parallelism(2)
    source = (
        PostgresSource.builder()
        .url(orders.url)
        .table_list("public.orders")
        .slot_name(orders.name)
        .split_size(1)
        .build()
    )
    totals = (
        env.from_source(source, WatermarkStrategy.no_watermarks(), "orders")
        .key_by(lambda order: order.customer, Types.STRING())
        .process(Total(), TOTALS)
    )
    totals.sink_to(JdbcSink.builder().with_table("totals", TOTALS, ["customer"]).build_exactly_once(orders.options))
    insert = "INSERT INTO events (customer, seq, total) VALUES (?, ?, ?)"
    totals.map(lambda row: Row(row.customer, row.changes, row.total), EVENTS).sink_to(
        JdbcSink.exactly_once_sink(insert, EVENTS, orders.options)
    )
    job = env.execute_async()
    kill = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'millstream' "
    kill += "AND datname = current_database() AND random() < 0.5"
    killed = 0
    connected = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'millstream' "
    connected += "AND datname = current_database()"
    deadline = time.monotonic() + 60
    while orders.execute(connected) == [(0,)] and time.monotonic() < deadline:
        time.sleep(0.01)
    for step in range(20):
        for _ in range(10):
            change_order(orders, chance)
        if step == 10:
            orders.server.restart(kill=True)
        killed += orders.execute(kill)[0][0]
        time.sleep(0.05)
    deadline = time.monotonic() + 120
    while _visible(orders) != read_sums(orders) and time.monotonic() < deadline:
        assert not job.get_job_status().result().is_terminal_state()
        time.sleep(0.02)
    job.cancel().result()
    assert _visible(orders) == read_sums(orders)
    assert killed > 1
    steps = orders.execute("SELECT customer, array_agg(seq ORDER BY seq), max(seq) FROM events GROUP BY customer")
    final = dict(orders.execute("SELECT customer, changes FROM totals"))
    assert {customer: list(range(1, most + 1)) for customer, _, most in steps} == {c: seq for c, seq, _ in steps}
    assert {customer: most for customer, _, most in steps} == final


def _visible(database):
    return {customer: total for customer, total in database.execute("SELECT customer, total FROM totals") if total}
