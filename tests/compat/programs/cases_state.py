"""Kinds of state x types of values x time-to-live options that do not pass: what each reads after every write."""

from decimal import Decimal

from pyflink.common import Row, Time, Types
from pyflink.datastream import (
    AggregateFunction,
    DataStream,
    KeyedProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from pyflink.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)

ORDER = "key"
WATERMARKS = "final"
MODE = "thread"

UPDATES = StateTtlConfig.UpdateType
VISIBLE = StateTtlConfig.StateVisibility
LIFETIMES = {
    "for-ever": lambda: None,
    "written": lambda: StateTtlConfig.new_builder(Time.hours(1)).build(),
    "read": lambda: (
        StateTtlConfig.new_builder(Time.hours(1))
        .set_update_type(UPDATES.OnReadAndWrite)
        .set_state_visibility(VISIBLE.ReturnExpiredIfNotCleanedUp)
        .build()
    ),
    "disabled": lambda: StateTtlConfig.new_builder(Time.hours(1)).set_update_type(UPDATES.Disabled).build(),
    "full": lambda: StateTtlConfig.new_builder(Time.hours(1)).cleanup_full_snapshot().build(),
    "step": lambda: StateTtlConfig.new_builder(Time.hours(1)).cleanup_incrementally(3, True).build(),
    "compaction": lambda: StateTtlConfig.new_builder(Time.hours(1)).cleanup_in_rocksdb_compact_filter(1000).build(),
}
VALUES = {
    "int": (Types.INT, lambda n: n),
    "long": (Types.LONG, lambda n: n * 10**12),
    "float": (Types.FLOAT, lambda n: n + 0.1),
    "double": (Types.DOUBLE, lambda n: n / 3),
    "boolean": (Types.BOOLEAN, lambda n: n % 2 == 0),
    "string": (Types.STRING, lambda n: "é" * n),
    "decimal": (Types.BIG_DEC, lambda n: Decimal(n) / 8),
    "tuple": (lambda: Types.TUPLE([Types.INT(), Types.STRING()]), lambda n: (n, str(n))),
    "row": (lambda: Types.ROW_NAMED(["x", "y"], [Types.INT(), Types.STRING()]), lambda n: Row(x=n, y=str(n))),
    "list": (lambda: Types.LIST(Types.INT()), lambda n: list(range(n))),
    "map": (lambda: Types.MAP(Types.STRING(), Types.INT()), lambda n: {str(n): n}),
    "pickled": (Types.PICKLED_BYTE_ARRAY, lambda n: {"n": (n, None)}),
}


class Joined(AggregateFunction):
    def create_accumulator(self):
        return ""

    def add(self, value, accumulator):
        return f"{accumulator}<{value}>"

    def get_result(self, accumulator):
        return f"{len(accumulator)}{accumulator}"

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


class Remember(KeyedProcessFunction):
    """Writes one kind of state and shows it; clears it at every seventh element."""

    def __init__(self, kind, values, lifetime):
        self.kind, self.values, self.lifetime = kind, values, lifetime

    def open(self, runtime_context: RuntimeContext):
        make, self.make_value = VALUES[self.values]
        if self.kind == "value":
            descriptor, get = ValueStateDescriptor("s", make()), runtime_context.get_state
        elif self.kind == "list":
            descriptor, get = ListStateDescriptor("s", make()), runtime_context.get_list_state
        elif self.kind == "map":
            descriptor, get = MapStateDescriptor("s", Types.INT(), make()), runtime_context.get_map_state
        elif self.kind == "reducing":
            descriptor = ReducingStateDescriptor("s", lambda a, b: max(a, b, key=str), make())
            get = runtime_context.get_reducing_state
        else:
            descriptor = AggregatingStateDescriptor("s", Joined(), Types.STRING())
            get = runtime_context.get_aggregating_state
        lifetime = LIFETIMES[self.lifetime]()
        if lifetime is not None:
            descriptor.enable_time_to_live(lifetime)
        self.state = get(descriptor)

    def process_element(self, value, ctx):
        key, n = value
        made = self.make_value(n)
        if n % 7 == 6:
            self.state.clear()
            shown = "cleared"
        elif self.kind == "value":
            before = self.state.value()
            self.state.update(made)
            shown = f"{before!r} {self.state.value()!r}"
        elif self.kind == "list":
            if n % 5 == 4:
                self.state.update([made])
            else:
                self.state.add(made)
                self.state.add_all([made])
            shown = repr(list(self.state.get()))
        elif self.kind == "map":
            self.state.put(n % 4, made)
            if n % 5 == 4:
                self.state.remove(0)
            else:
                self.state.put_all({9: made})
            items = sorted(self.state.items())
            keys, count = sorted(self.state.keys()), len(list(self.state.values()))
            shown = f"{items!r} {keys} {count} {self.state.contains(1)} {self.state.is_empty()} {self.state.get(3)!r}"
        else:
            before = self.state.get()
            self.state.add(made)
            shown = f"{before!r} {self.state.get()!r}"
        yield f"{key} {shown}"


CASES = [(kind, values, "for-ever") for kind in ("value", "list", "map") for values in VALUES]
CASES += [("reducing", values, "for-ever") for values in ("int", "double", "string", "tuple", "row", "pickled")]
CASES += [("aggregating", values, "for-ever") for values in ("int", "string", "tuple")]
CASES += [
    (kind, "tuple", lifetime)
    for kind in ("value", "list", "map", "reducing", "aggregating")
    for lifetime in LIFETIMES
    if lifetime != "for-ever"
]


def define(env: StreamExecutionEnvironment) -> DataStream:
    data = [("kl"[i * i % 5 % 2], i) for i in range(12)]
    keyed = env.from_collection(data, type_info=Types.TUPLE([Types.STRING(), Types.INT()])).key_by(
        lambda e: e[0], key_type=Types.STRING()
    )
    streams = []
    for kind, values, lifetime in CASES:
        shown = keyed.process(Remember(kind, values, lifetime), output_type=Types.STRING())
        name = f"{kind}/{values}/{lifetime}"
        streams.append(shown.map(lambda v, n=name: f"{n} {v}", output_type=Types.STRING()))
    return streams[0].union(*streams[1:])
