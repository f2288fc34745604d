"""Keyed state: a value, a map and a list of each key, which survive failures and rescaling.

Fields of a function are not state: between two epochs a subtask may move to another process."""

from collections.abc import Iterator

from millstream.common import Types
from millstream.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from millstream.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor

VISITS = [("ada", "/home"), ("bob", "/home"), ("ada", "/docs"), ("ada", "/home"), ("bob", "/buy"), ("ada", "/buy")]


class Visits(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))
        self.pages = runtime_context.get_map_state(MapStateDescriptor("pages", Types.STRING(), Types.LONG()))
        self.path = runtime_context.get_list_state(ListStateDescriptor("path", Types.STRING()))

    def process_element(self, visit: tuple[str, str], ctx: KeyedProcessFunction.Context) -> Iterator[str]:
        page = visit[1]
        self.total.update((self.total.value() or 0) + 1)
        self.pages.put(page, (self.pages.get(page) or 0) + 1)
        self.path.add(page)
        if page == "/buy":
            favourite = max(self.pages.items(), key=lambda item: item[1])
            path = " ".join(self.path.get())
            yield f"{ctx.get_current_key()} bought after {self.total.value()} visits ({path}), most to {favourite[0]}"
            self.path.clear()


env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection(VISITS).key_by(lambda visit: visit[0], Types.STRING()).process(Visits(), Types.STRING()).print()
env.execute("keyed state")
