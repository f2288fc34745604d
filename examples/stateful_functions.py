"""Stateful functions: each person and each greeter is a function with an address, its own values, and messages.

A person who has not visited for a while gets a farewell message: each visit cancels the delayed message and schedules
it again."""

import asyncio
from datetime import timedelta

from millstream.datastream import StreamExecutionEnvironment
from millstream.statefun import (
    Context,
    IntType,
    Message,
    StatefulFunctionDataStreamBuilder,
    StatefulFunctions,
    StringType,
    ValueSpec,
    egress_message_builder,
    message_builder,
)

functions = StatefulFunctions()


@functions.bind(typename="example/person", specs=[ValueSpec(name="visits", type=IntType)])
def person(context: Context, message: Message) -> None:
    me, visits = context.address, context.storage.visits or 0
    if context.caller == me:
        line = f"goodbye {me.id}, you came {visits} times"
        context.send_egress(egress_message_builder("example/lines", line, StringType))
        del context.storage.visits
        return
    context.storage.visits = visits + 1
    context.send(message_builder("example/greeter", me.id, int_value=visits + 1))
    context.cancel_delayed_message("goodbye")
    context.send_after(timedelta(seconds=1), message_builder(me.typename, me.id, bool_value=True), "goodbye")


@functions.bind(typename="example/greeter")
async def greeter(context: Context, message: Message) -> None:
    await asyncio.sleep(0.01)  # simulates a call of a service; functions at other addresses run meanwhile
    line = f"hello {context.address.id}, visit {message.as_int()}"
    context.send_egress(egress_message_builder("example/lines", line, StringType))


env = StreamExecutionEnvironment.get_execution_environment()
names = env.from_collection(["ada", "bob", "ada", "ada"])
egresses = (
    StatefulFunctionDataStreamBuilder.builder("greetings")
    .with_data_stream_as_ingress(names, lambda name: message_builder("example/person", name, str_value=name))
    .with_functions(functions)
    .with_egress_id("example/lines", StringType)
    .build(env)
)
egresses.get_data_stream_for_egress_id("example/lines").print()
env.execute("greetings")
