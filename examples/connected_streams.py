"""Connected streams: orders and prices share keyed state, and each order waits for the price of its product."""

from collections.abc import Iterator

from millstream.common import Types
from millstream.datastream import KeyedCoProcessFunction, RuntimeContext, StreamExecutionEnvironment
from millstream.datastream.state import ListStateDescriptor, ValueStateDescriptor

ORDERS = [("tea", 3), ("jam", 1), ("tea", 10), ("nut", 2)]
PRICES = [("jam", 450), ("tea", 300)]


class Priced(KeyedCoProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.price = runtime_context.get_state(ValueStateDescriptor("price", Types.LONG()))
        self.waiting = runtime_context.get_list_state(ListStateDescriptor("waiting", Types.LONG()))

    def process_element1(self, order: tuple[str, int], ctx: KeyedCoProcessFunction.Context) -> Iterator[str]:
        price = self.price.value()
        if price is None:
            self.waiting.add(order[1])
        else:
            yield f"{order[1]} x {order[0]} = {order[1] * price} cents"

    def process_element2(self, priced: tuple[str, int], ctx: KeyedCoProcessFunction.Context) -> Iterator[str]:
        self.price.update(priced[1])
        for amount in self.waiting.get():
            yield f"{amount} x {priced[0]} = {amount * priced[1]} cents"
        self.waiting.clear()


env = StreamExecutionEnvironment.get_execution_environment()
orders, prices = env.from_collection(ORDERS), env.from_collection(PRICES)
(
    orders.connect(prices)
    .key_by(lambda order: order[0], lambda priced: priced[0], Types.STRING())
    .process(Priced(), Types.STRING())
    .print()
)
env.execute("connected streams")
