"""Changes of one table through keyed state into others, exactly once, while connections and the server die."""

from __future__ import annotations

import contextlib
import random
import time
from typing import Any

import pytest
from mysql_items import builder

from millstream.common import Configuration, Row, RowKind, Types, WatermarkStrategy
from millstream.connectors.jdbc.mysql.driver import pymysql
from millstream.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from millstream.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcSink
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


def settings() -> Configuration:
    configuration = Configuration()
    configuration.set_string("execution.checkpointing.interval", "30 ms")
    configuration.set_string("millstream.epoch.max-records", "20")
    configuration.set_string("millstream.epoch.idle-interval", "5 ms")
    configuration.set_string("restart-strategy.type", "fixed-delay")
    configuration.set_string("restart-strategy.fixed-delay.delay", "20 ms")
    configuration.set_string("restart-strategy.fixed-delay.attempts", "1000")
    return configuration


@pytest.fixture
def orders(database: Any) -> Any:
    database.execute("CREATE TABLE orders (id int PRIMARY KEY, customer varchar(9), amount bigint)")
    database.execute("INSERT INTO orders SELECT seq, CONCAT('c', seq % 5), seq FROM seq_1_to_60")
    database.execute("CREATE TABLE totals (customer varchar(9) PRIMARY KEY, total bigint, changes bigint)")
    database.execute("CREATE TABLE events (customer varchar(9), seq bigint, total bigint)")
    return database


def change(database: Any, chance: random.Random) -> None:
    """Make one random change of an order; the connection may be killed before or after it."""
    number = chance.randrange(100)
    with contextlib.suppress(pymysql().err.OperationalError):
        match chance.randrange(3):
            case 0:
                add = "INSERT INTO orders VALUES (%s, %s, %s) ON DUPLICATE KEY UPDATE amount = VALUES(amount)"
                database.execute(add, (number, f"c{chance.randrange(5)}", chance.randrange(1000)))
            case 1:
                database.execute("UPDATE orders SET customer = %s WHERE id = %s", (f"c{chance.randrange(5)}", number))
            case 2:
                database.execute("DELETE FROM orders WHERE id = %s", (number,))


def read_sums(database: Any) -> dict[str, int]:
    return {name: int(total) for name, total in database.execute(
        "SELECT customer, SUM(amount) FROM orders GROUP BY customer HAVING SUM(amount) <> 0"
    )}  # fmt: skip


def read_totals(database: Any) -> dict[str, int]:
    return dict(database.execute("SELECT customer, total FROM totals WHERE total <> 0"))


def test_totals_are_exact_while_connections_and_the_server_die(orders: Any) -> None:
    """Upserts and a log of every step, both staged: no step is missing or repeated."""
    chance = random.Random(17)
    options = JdbcConnectionOptions(orders.server.jdbc_url_of(orders.name))
    env = StreamExecutionEnvironment.get_execution_environment(settings()).set_parallelism(2)
    totals = (
        env.from_source(builder(orders, f"{orders.name}.orders").build(), WatermarkStrategy.no_watermarks(), "orders")
        .key_by(lambda order: order.customer, Types.STRING())
        .process(Total(), TOTALS)
    )
    totals.sink_to(JdbcSink.builder().with_table("totals", TOTALS, ["customer"]).build_exactly_once(options))
    steps = totals.map(lambda row: Row(row.customer, row.changes, row.total), EVENTS)
    steps.sink_to(JdbcSink.builder().with_table("events", EVENTS).build_exactly_once(options))
    job = env.execute_async()
    deadline = time.monotonic() + 120

    def wait_until(condition: Any) -> None:
        while not condition():
            assert time.monotonic() < deadline
            assert not job.get_job_status().result().is_terminal_state()
            time.sleep(0.02)

    wait_until(lambda: read_totals(orders))
    for step in range(12):
        for _ in range(8):
            change(orders, chance)
        if step == 6:
            orders.server.restart(kill=True)
        elif step % 3 == 1:
            with contextlib.suppress(Exception):  # it kills the connection that asks for it, too
                orders.server.execute(f"KILL USER {orders.server.user}")
        before = orders.execute("SELECT COUNT(*) FROM events")
        change(orders, chance)
        orders.execute("INSERT INTO orders VALUES (%s, 'c1', 1)", (1000 + step,))
        wait_until(lambda before=before: orders.execute("SELECT COUNT(*) FROM events") != before)
    wait_until(lambda: read_totals(orders) == read_sums(orders))
    job.cancel().result()
    counts = dict(orders.execute("SELECT customer, changes FROM totals"))
    sequences: dict[str, list[int]] = {}
    for customer, seq in orders.execute("SELECT customer, seq FROM events ORDER BY seq"):
        sequences.setdefault(customer, []).append(seq)
    assert sequences == {customer: list(range(1, most + 1)) for customer, most in counts.items()}
