"""Jobs of stateful functions: StateFun's own programs, what a context can do, and what is refused."""

import asyncio
from datetime import timedelta

import pytest

from millstream.common import Types
from millstream.errors import InvalidArgument, UserError
from millstream.statefun import (
    IntType,
    LongType,
    StatefulFunctionDataStreamBuilder,
    StatefulFunctions,
    StringType,
    ValueSpec,
    egress_message_builder,
    kafka_egress_message,
    make_json_type,
    message_builder,
    simple_type,
)

OUT = "test/out"
JSON = make_json_type("test/json")


def run(env, functions, messages, egress_type=JSON):
    """What functions send to the egress when they get these messages."""
    egresses = (
        StatefulFunctionDataStreamBuilder.builder("test")
        .with_data_stream_as_ingress(env.from_collection(messages))
        .with_functions(functions)
        .with_egress_id(OUT, egress_type)
        .build(env)
    )
    return list(egresses.get_data_stream_for_egress_id(OUT).execute_and_collect())


def emit(context, value):
    context.send_egress(egress_message_builder(OUT, value, JSON))


def one_function(fun, specs=()):
    functions = StatefulFunctions()
    functions.register("test/fn", fun, specs)
    return functions


def to_fn(id="1", **value):
    return message_builder("test/fn", id, **(value or {"int_value": 1}))


# ------------------------------------------------------------------------------------------------- StateFun's programs


def test_the_greeter_of_statefun(env):
    functions = StatefulFunctions()
    request_type = make_json_type(typename="example/GreetRequest")

    @functions.bind(typename="example/person", specs=[ValueSpec(name="visits", type=IntType)])
    async def person(context, message):
        visits = (context.storage.visits or 0) + 1
        context.storage.visits = visits
        request = message.as_type(request_type)
        request["visits"] = visits
        context.send(
            message_builder(
                target_typename="example/greeter",
                target_id=request["name"],
                value=request,
                value_type=request_type,
            )
        )

    @functions.bind(typename="example/greeter")
    async def greeter(context, message):
        request = message.as_type(request_type)
        await asyncio.sleep(0.001)
        emit(context, {"topic": "greetings", "payload": f"{request['name']} for the {request['visits']}th time"})

    names = [{"name": name} for name in ("Bob", "Ann", "Bob", "Bob", "Cid")]
    messages = [message_builder("example/person", r["name"], value=r, value_type=request_type) for r in names]
    greetings = sorted(record["payload"] for record in run(env, functions, messages))
    counts = {"Ann": 1, "Bob": 3, "Cid": 1}
    assert greetings == [f"{name} for the {visit + 1}th time" for name in counts for visit in range(counts[name])]


def test_the_shopping_cart_of_statefun(env):
    functions = StatefulFunctions()
    restock, request, availability, add, clear, checkout = (
        make_json_type(f"com.example/{name}") for name in ("restock", "request", "availability", "add", "clear", "pay")
    )
    basket_type = simple_type("com.example/basket", lambda b: ",".join(f"{k}={v}" for k, v in b.items()), parse_basket)

    @functions.bind("com.example/stock", [ValueSpec("stock", IntType)])
    def stock(context, message):
        quantity = context.storage.stock or 0
        if message.is_type(restock):
            context.storage.stock = quantity + message.as_type(restock)
            return
        wanted = message.as_type(request)
        in_stock = quantity >= wanted
        if in_stock:
            context.storage.stock = quantity - wanted
        caller = context.caller
        answer = {"in_stock": in_stock, "quantity": wanted}
        context.send(message_builder(caller.typename, caller.id, value=answer, value_type=availability))

    def go_on(context):
        context.send(message_builder("test/clock", "1", bool_value=True))

    @functions.bind("com.example/user-shopping-cart", [ValueSpec("basket", basket_type)])
    def cart(context, message):
        basket = context.storage.basket or {}
        if message.is_type(add):
            item, quantity = message.as_type(add)
            context.send(message_builder("com.example/stock", item, value=quantity, value_type=request))
        elif message.is_type(availability):
            answer = message.as_type(availability)
            if answer["in_stock"]:
                item = context.caller.id
                context.storage.basket = {**basket, item: basket.get(item, 0) + answer["quantity"]}
            go_on(context)
        elif message.is_type(clear):
            for item, quantity in basket.items():
                context.send(message_builder("com.example/stock", item, value=quantity, value_type=restock))
            del context.storage.basket
            go_on(context)
        else:
            emit(context, [context.address.id, basket])

    user = "com.example/user-shopping-cart"
    steps = [
        ("com.example/stock", "socks", 50, restock),
        (user, "1", ["socks", 20], add),
        (user, "2", ["socks", 40], add),
        (user, "1", 0, clear),
        (user, "2", ["socks", 45], add),
        (user, "2", 0, checkout),
    ]

    @functions.bind("test/clock", [ValueSpec("step", IntType)])
    def clock(context, message):  # each step starts when the previous one is done
        step = context.storage.step or 0
        context.storage.step = step + 1
        typename, id, value, value_type = steps[step]
        context.send(message_builder(typename, id, value=value, value_type=value_type))
        if step == 0:
            go_on(context)

    first = message_builder("test/clock", "1", bool_value=True)
    assert run(env, functions, [first]) == [["2", {"socks": 45}]]


def parse_basket(data):
    pairs = (item.split("=") for item in data.decode().split(",") if item)
    return {name: int(quantity) for name, quantity in pairs}


# ---------------------------------------------------------------------------------------------------------- messages


def test_messages_from_one_function_to_another_keep_their_order(env):
    functions = StatefulFunctions()

    @functions.bind("test/fn")
    def sender(context, message):
        for number in range(40):
            context.send(message_builder("test/receiver", str(number % 4), int_value=number))

    @functions.bind("test/receiver", [ValueSpec("got", JSON)])
    def receiver(context, message):
        context.storage.got = [*(context.storage.got or ()), message.as_int()]
        if len(context.storage.got) == 10:
            emit(context, context.storage.got)

    rows = run(env.set_parallelism(3), functions, [to_fn()])
    assert sorted(rows) == [list(range(first, 40, 4)) for first in range(4)]


@pytest.mark.parametrize("ids", [1, 11])
def test_a_chain_that_is_longer_than_the_local_rounds_of_an_epoch(env, ids):
    def count_down(context, message):
        left = message.as_int()
        if left:
            context.send(to_fn(str(left % ids), int_value=left - 1))
        else:
            emit(context, str(context.caller))

    expected = [f"test/fn:{2 % ids}"]
    assert run(env, one_function(count_down), [to_fn(int_value=40)]) == expected


def test_a_message_of_an_ingress_has_no_caller_and_knows_its_target(env):
    def show(context, message):
        address = context.address
        emit(context, [address.namespace, address.name, address.id, context.caller, message.target_typename])

    assert run(env, one_function(show), [to_fn("a:b/c")]) == [["test", "fn", "a:b/c", None, "test/fn"]]


def test_a_delayed_message_comes_later_and_can_be_cancelled(env):
    def remind(context, message):
        if context.caller is not None:
            emit(context, message.as_string())
            return
        for number, token in enumerate(["keep", "drop", "", "drop"]):
            reminder = to_fn(str_value=f"{number} {token}")
            context.send_after(timedelta(milliseconds=30 - number), reminder, token)
        context.cancel_delayed_message("drop")
        context.cancel_delayed_message("never used")
        context.cancel_delayed_message("")

    assert run(env, one_function(remind), [to_fn()]) == ["2 ", "0 keep"]


def test_a_token_belongs_to_the_function_that_used_it(env):
    def remind(context, message):
        if message.is_int():
            context.send_after(timedelta(milliseconds=20), to_fn(str_value=context.address.id), "token")
            context.send(to_fn("2", bool_value=True))
        elif message.is_bool():
            context.cancel_delayed_message("token")
        else:
            emit(context, message.as_string())

    assert run(env, one_function(remind), [to_fn("1")]) == ["1"]


def test_a_program_can_end_before_delayed_messages_are_due(env):
    def remind(context, message):
        emit(context, str(context.caller))
        context.send_after(timedelta(days=1), to_fn())

    egresses = (
        StatefulFunctionDataStreamBuilder.builder("test")
        .with_data_stream_as_ingress(env.from_collection([to_fn()]))
        .with_functions(one_function(remind))
        .with_egress_id(OUT, JSON)
        .without_waiting_for_delayed_messages()
        .build(env)
    )
    assert list(egresses.get_data_stream_for_egress_id(OUT).execute_and_collect()) == ["None"]


def test_coroutine_functions_of_many_addresses_run_at_once_and_those_of_one_do_not(env):
    running = {"now": 0, "most": 0}

    async def call(context, message):
        count = context.storage.calls or 0
        running["now"] += 1
        running["most"] = max(running["most"], running["now"])
        await asyncio.sleep(0.002)
        running["now"] -= 1
        context.storage.calls = count + 1
        emit(context, [context.address.id, count])
        if not count:
            emit(context, running["most"])

    messages = [to_fn(str(number % 8)) for number in range(24)]
    rows = run(env.set_parallelism(1), one_function(call, [ValueSpec("calls", LongType)]), messages)
    counts = [row for row in rows if isinstance(row, list)]
    assert sorted(counts) == [[str(id), count] for id in range(8) for count in range(3)]
    assert max(row for row in rows if isinstance(row, int)) == 8


# ------------------------------------------------------------------------------------------------ storage and egresses


def test_a_value_that_is_changed_but_not_set_is_not_kept(env):
    def change(context, message):
        emit(context, [context.storage.names])
        if context.storage.names is None:
            context.storage.names = ["a"]
        context.storage.names.append("b")

    assert run(env, one_function(change, [ValueSpec("names", JSON)]), [to_fn(), to_fn()]) == [[None], [["a"]]]


def test_a_deleted_value_is_none(env):
    def change(context, message):
        context.storage.seen = 3
        del context.storage.seen
        emit(context, [context.storage.seen])

    assert run(env, one_function(change, [ValueSpec("seen", IntType)]), [to_fn()]) == [[None]]


def test_egresses_by_name_and_type(env):
    def send(context, message):
        context.send_egress(egress_message_builder("test/texts", "hello", StringType))
        context.send_egress(egress_message_builder("test/any", 7, IntType))

    builder = (
        StatefulFunctionDataStreamBuilder.builder("test")
        .with_data_stream_as_ingress(env.from_collection(["x"], Types.STRING()), lambda text: [to_fn(), to_fn()])
        .with_data_stream_as_ingress(env.from_collection([1], Types.LONG()), lambda number: None)
        .with_functions(one_function(send))
        .with_egress_id("test/texts", StringType)
        .with_egress_id("test/any")
    )
    egresses = builder.build(env)
    texts = egresses.get_data_stream_for_egress_id("test/texts")
    assert texts.get_type() == Types.STRING()
    values = egresses.get_data_stream_for_egress_id("test/any").map(repr, Types.STRING())
    assert sorted(texts.union(values).execute_and_collect()) == [
        *["('io.statefun.types/int', b'\\r\\x07\\x00\\x00\\x00')"] * 2,
        *["hello"] * 2,
    ]
    with pytest.raises(InvalidArgument, match=r"no egress 'test/other'; hint: the egresses are test/texts, test/any"):
        egresses.get_data_stream_for_egress_id("test/other")


# ---------------------------------------------------------------------------------------------------- what is refused


def fail(context, message):
    if message.as_int() == 3:
        raise ValueError("three")
    context.send(to_fn(str(message.as_int()), int_value=message.as_int() + 1))


async def fail_later(context, message):
    await asyncio.sleep(0)
    fail(context, message)


async def hang(context, message):
    await asyncio.sleep(60)


@pytest.mark.parametrize(
    ("function", "pattern"),
    [
        (fail, r"ValueError: three\n.*round \d+ of iteration 'test', key 'test/fn:2', .*from test/fn:1: .*int 3"),
        (fail_later, r"ValueError: three\n.*round \d+ of iteration 'test', key 'test/fn:2', .*from test/fn:1: .*int 3"),
        (
            lambda c, m: c.send(message_builder("test/other", "1", int_value=1)),
            r"no function of type 'test/other'.*round 0 .*key 'test/fn:1', record message to test/fn:1 from an ingress",
        ),
        (lambda c, m: c.send("hello"), "'hello' is not a message to a function.*hint: create it with message_builder"),
        (
            lambda c, m: c.send(kafka_egress_message("test/out", "topic", "x")),
            "is not a message to a function.*hint: use send_egress",
        ),
        (lambda c, m: c.send_egress(m), "is not a message to an egress"),
        (
            lambda c, m: c.send_egress(egress_message_builder("a/b", 1, IntType)),
            "no egress 'a/b'.*egresses are test/out",
        ),
        (
            lambda c, m: c.send_egress(egress_message_builder(OUT, 1, IntType)),
            "a value of type 'io.statefun.types/int' was read as 'test/json'",
        ),
        (lambda c, m: m.as_string(), r"int' was read as 'io.statefun.types/string'.*key 'test/fn:1'"),
        (
            lambda c, m: c.storage.other,
            r"function 'test/fn' has no persisted value 'other'; it has seen.*key 'test/fn:1'",
        ),
        (lambda c, m: setattr(c.storage, "other", 1), "no persisted value 'other'.*hint: add ValueSpec"),
        (lambda c, m: delattr(c.storage, "other"), "no persisted value 'other'"),
        (lambda c, m: setattr(c.storage, "seen", "x"), "'x' is not a value of type 'io.statefun.types/int'"),
        (lambda c, m: setattr(c.storage, "seen", None), r"'seen' was set to None.*hint: to delete it: del context"),
        (lambda c, m: c.send_after(timedelta(-1), to_fn()), "a message was sent after"),
        (lambda c, m: c.send_after(5, to_fn()), "a message was sent after 5"),
    ],
)
def test_an_error_names_the_address_the_message_and_the_round(env, function, pattern):
    with pytest.raises(UserError, match=f"(?s){pattern}"):
        run(env, one_function(function, [ValueSpec("seen", IntType)]), [to_fn()])


def test_a_value_whose_class_has_changed_is_not_taken_for_an_undeclared_one(env):
    broken = simple_type("test/broken", lambda value: b"x", lambda data: data.no_such_method())

    def read(context, message):
        context.storage.seen = 1
        context.storage.seen  # noqa: B018

    with pytest.raises(UserError, match=r"'seen' of type 'test/broken' cannot be deserialized: .*no_such_method"):
        run(env, one_function(read, [ValueSpec("seen", broken)]), [to_fn()])


def test_a_call_that_never_returns_fails_the_job(env):
    builder = (
        StatefulFunctionDataStreamBuilder.builder("test")
        .with_data_stream_as_ingress(env.from_collection([to_fn("7")]))
        .with_functions(one_function(hang))
        .with_egress_id(OUT, JSON)
        .with_async(timeout=timedelta(milliseconds=30))
    )
    stream = builder.build(env).get_data_stream_for_egress_id(OUT)
    with pytest.raises(UserError, match=r"(?s)has not returned in 0.03 s.*key 'test/fn:7', .*with_async"):
        list(stream.execute_and_collect())


@pytest.mark.parametrize(
    ("router", "pattern"),
    [
        (
            lambda record: message_builder("test/other", "1", int_value=1),
            "no function of type 'test/other'.*record 'x'",
        ),
        (lambda record: ["hello"], "the router returned 'hello'"),
        (lambda record: record, "the router returned 'x'"),
    ],
)
def test_invalid_results_of_a_router(env, router, pattern):
    builder = StatefulFunctionDataStreamBuilder.builder("test").with_functions(one_function(fail))
    builder = builder.with_data_stream_as_ingress(env.from_collection(["x"]), router).with_egress_id(OUT)
    stream = builder.build(env).get_data_stream_for_egress_id(OUT)
    with pytest.raises(UserError, match=f"(?s){pattern}"):
        list(stream.execute_and_collect())


def test_a_program_that_cannot_run_is_refused_when_it_is_built(env):
    builder = StatefulFunctionDataStreamBuilder.builder
    with pytest.raises(InvalidArgument, match="'test' has no ingress"):
        builder("test").with_functions(one_function(fail)).build(env)
    with pytest.raises(InvalidArgument, match="'test' has no functions"):
        builder("test").with_data_stream_as_ingress(env.from_collection([to_fn()])).build(env)
    with pytest.raises(InvalidArgument, match="two functions have the type 'test/fn'"):
        builder("test").with_functions(one_function(fail)).with_functions(one_function(fail))
    with pytest.raises(TypeError, match="is not a stream"):
        builder("test").with_data_stream_as_ingress([to_fn()])
    with pytest.raises(TypeError, match="egress 'a/b' has the type"):
        builder("test").with_egress_id("a/b", str)
    with pytest.raises(InvalidArgument, match="'out' is not the name"):
        builder("test").with_egress_id("out")
    with pytest.raises(InvalidArgument, match="capacity is 0"):
        builder("test").with_async(capacity=0)
