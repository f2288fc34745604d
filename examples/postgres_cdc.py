"""Change data capture: read a PostgreSQL table, then its changes, and keep a total for each customer up to date.

Needs the programs of a PostgreSQL server on this machine; the example starts a server of its own."""

from itertools import islice

from millstream.common import RowKind, Types, WatermarkStrategy
from millstream.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from millstream.datastream.connectors.postgres_cdc import PostgresSource, StartupOptions
from millstream.datastream.state import ValueStateDescriptor
from millstream.testing.postgres import postgres_server

REMOVES = {RowKind.UPDATE_BEFORE, RowKind.DELETE}


class Total(KeyedProcessFunction):
    """A change that removes a row takes its amount away; one that adds a row adds it."""

    def open(self, runtime_context):
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))

    def process_element(self, value, ctx):
        amount = -value.cents if value.get_row_kind() in REMOVES else value.cents
        self.total.update((self.total.value() or 0) + amount)
        yield ctx.get_current_key(), self.total.value()


with postgres_server() as server:
    server.execute("CREATE TABLE orders (id int PRIMARY KEY, customer text, cents bigint)")
    server.execute("ALTER TABLE orders REPLICA IDENTITY FULL")  # changes then contain the old row
    server.execute("INSERT INTO orders VALUES (1, 'ada', 300), (2, 'bob', 500)")
    builder = PostgresSource.builder().url(server.url).table_list("public.orders").slot_name("totals")
    source = builder.startup_options(StartupOptions.initial()).build()

    env = StreamExecutionEnvironment.get_execution_environment()
    orders = env.from_source(source, WatermarkStrategy.no_watermarks(), "orders")
    by_customer = orders.key_by(lambda row: row.customer, Types.STRING())
    totals = by_customer.process(Total(), Types.TUPLE([Types.STRING(), Types.LONG()]))
    with totals.execute_and_collect() as results:
        print("the rows of the table:", sorted(islice(results, 2)))
        server.execute("UPDATE orders SET cents = 350 WHERE id = 1")  # the old row, then the new one
        server.execute("INSERT INTO orders VALUES (3, 'ada', 40)")
        print("what changed for ada:", list(islice(results, 3)))
        server.execute("DELETE FROM orders WHERE id = 2")
        print("what changed for bob:", list(islice(results, 1)))
    source.drop_slot()  # the server keeps its log as long as the slot exists
