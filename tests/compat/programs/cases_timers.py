"""Timers, connected streams and broadcast state: what fires with which time, and what each side sees."""

from pyflink.common import Duration, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import (
    BroadcastProcessFunction,
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    DataStream,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
    TimeDomain,
)
from pyflink.datastream.state import MapStateDescriptor, ValueStateDescriptor

ORDER = "none"
WATERMARKS = "any"

ELEMENT = Types.TUPLE([Types.STRING(), Types.LONG(), Types.INT()])
RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())


class ByField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Timers(KeyedProcessFunction):
    """Registers, deletes or moves a timer, as its mode says."""

    def __init__(self, mode):
        self.mode = mode

    def open(self, runtime_context: RuntimeContext):
        self.at = runtime_context.get_state(ValueStateDescriptor("at", Types.LONG()))
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def process_element(self, value, ctx):
        timers = ctx.timer_service()
        self.count.update((self.count.value() or 0) + 1)
        if self.mode == "each":
            timers.register_event_time_timer(value[1] + 50)
        elif self.mode == "same":
            timers.register_event_time_timer(500)
        elif self.mode == "delete":
            timers.register_event_time_timer(value[1] + 50)
            if value[2] % 2:
                timers.delete_event_time_timer(value[1] + 50)
        elif self.mode == "move":
            if self.at.value() is not None:
                timers.delete_event_time_timer(self.at.value())
            self.at.update(value[1] + 50)
            timers.register_event_time_timer(value[1] + 50)
        elif self.mode == "before":
            timers.register_event_time_timer(value[1] - 5000)
        elif self.mode == "again" and self.count.value() == 1:
            timers.register_event_time_timer(100)
        elif self.mode == "gone":
            timers.register_event_time_timer(value[1] + 50)
            timers.delete_event_time_timer(value[1] + 51)
        yield from ()

    def on_timer(self, timestamp, ctx):
        domain = "event" if ctx.time_domain() == TimeDomain.EVENT_TIME else "processing"
        yield f"{ctx.get_current_key()} {timestamp} {ctx.timestamp()} {domain} {self.count.value()}"
        if self.mode == "again" and timestamp < 400:
            ctx.timer_service().register_event_time_timer(timestamp + 100)


class Pair(KeyedCoProcessFunction):
    def __init__(self, wait):
        self.wait = wait

    def open(self, runtime_context: RuntimeContext):
        self.left = runtime_context.get_state(ValueStateDescriptor("left", Types.INT()))
        self.right = runtime_context.get_state(ValueStateDescriptor("right", Types.INT()))

    def process_element1(self, value, ctx):
        self.left.update((self.left.value() or 0) + value[2])
        ctx.timer_service().register_event_time_timer(self.wait)
        yield from ()

    def process_element2(self, value, ctx):
        self.right.update((self.right.value() or 0) + value[2])
        ctx.timer_service().register_event_time_timer(self.wait + 1)
        yield from ()

    def on_timer(self, timestamp, ctx):
        yield f"{ctx.get_current_key()} {timestamp} {self.left.value()} {self.right.value()}"


class Tell(CoProcessFunction):
    def process_element1(self, value, ctx):
        yield f"one {value} {ctx.timestamp()}"

    def process_element2(self, value, ctx):
        yield f"two {value} {ctx.timestamp()}"


class Map(CoMapFunction):
    def map1(self, value):
        return f"one {value}"

    def map2(self, value):
        return None if value[2] % 2 else f"two {value}"


class FlatMap(CoFlatMapFunction):
    def flat_map1(self, value):
        for i in range(value[2] % 3):
            yield f"one {value[2]} {i}"

    def flat_map2(self, value):
        yield f"two {value[2]}"


class Known(BroadcastProcessFunction):
    def process_element(self, value, ctx):
        yield f"seen {value[2]} {ctx.timestamp()}"

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put(value[0], value[2])
        yield from ()


class KnownByKey(KeyedBroadcastProcessFunction):
    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(10_000)
        yield from ()

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put(value[0], max(value[2], ctx.get_broadcast_state(RULES).get(value[0]) or 0))
        yield from ()

    def on_timer(self, timestamp, ctx):
        yield f"{ctx.get_current_key()} {timestamp} {sorted(ctx.get_broadcast_state(RULES).items())}"


def define(env: StreamExecutionEnvironment) -> DataStream:
    times = [3, 17, 120, 55, 99, 100, 131, 260, 244, 181, 300, 305]
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(1000))

    def source(letters):
        data = [(letters[i % 3 % 2], t, i) for i, t in enumerate(times)]
        typed = env.from_collection(data, type_info=ELEMENT)
        timed = typed.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(ByField()))
        return timed.set_parallelism(1)  # so that the order of a key's elements does not depend on the parallelism

    one, two = source("ab"), source("bc")

    def by_key(stream):
        return stream.key_by(lambda e: e[0], key_type=Types.STRING())

    text = Types.STRING()
    cases = {
        f"timer/{mode}": by_key(one).process(Timers(mode), output_type=text)
        for mode in ("each", "same", "delete", "move", "before", "again", "gone")
    }
    for wait in (0, 500, 5000):
        cases[f"pair/{wait}"] = by_key(one).connect(by_key(two)).process(Pair(wait), output_type=text)
    cases["co-process"] = one.connect(two).process(Tell(), output_type=text)
    cases["co-map"] = one.connect(two).map(Map(), output_type=text)
    cases["co-flat-map"] = one.connect(two).flat_map(FlatMap(), output_type=text)
    cases["co-keyed-map"] = by_key(one).connect(by_key(two)).map(Map(), output_type=text)
    cases["broadcast"] = one.connect(two.broadcast(RULES)).process(Known(), output_type=text)
    cases["broadcast-keyed"] = by_key(one).connect(two.broadcast(RULES)).process(KnownByKey(), output_type=text)
    streams = [
        stream.map(lambda v, n=name: f"{n} {v}", output_type=Types.STRING()) for name, stream in cases.items()
    ]
    return streams[0].union(*streams[1:])
