"""A small program of stateful functions for simulations, whose output depends on its input only.

Promises: what is emitted does not depend on the order in which messages of different functions arrive.
Does not know: engines, faults."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from millstream.datastream.data_stream import DataStream
from millstream.event_time.watermarks import WatermarkStrategy
from millstream.statefun import (
    Context,
    LongType,
    Message,
    StatefulFunctionDataStreamBuilder,
    StatefulFunctions,
    ValueSpec,
    egress_message_builder,
    make_json_type,
    message_builder,
)
from millstream.types.factory import Types
from millstream_chaos.samples import sample_input
from millstream_chaos.samples.splits_source import SplitsSource

_ACCOUNTS, _DEPOSITS = 4, 3  # deposits of each account
_QUIET = timedelta(milliseconds=25)
JSON = make_json_type("samples/json")

functions = StatefulFunctions()


def _emit(context: Context, result: list[Any]) -> None:
    context.send_egress(egress_message_builder("samples/results", result, JSON))


@functions.bind("samples/account", [ValueSpec(name, LongType) for name in ("count", "total", "squares")])
def account(context: Context, message: Message) -> None:
    """Add up numbers and their squares, and emit both when no message has come for a while."""
    storage, address = context.storage, context.address
    if message.is_string():
        if storage.count == 2 * _DEPOSITS:
            _emit(context, ["account", address.id, storage.total, storage.squares])
        return
    storage.count = (storage.count or 0) + 1
    number = message.as_long()
    if context.caller is None:
        storage.total = (storage.total or 0) + number
        context.send(message_builder("samples/square", str(number % 3), long_value=number))
        hop = {"number": number, "left": number % 6, "path": []}
        context.send(message_builder("samples/hop", str(number % 4), value=hop, value_type=JSON))
    else:
        storage.squares = (storage.squares or 0) + number
    context.cancel_delayed_message("quiet")
    reminder = message_builder(address.typename, address.id, str_value="quiet")
    context.send_after(_QUIET, reminder, "quiet")


@functions.bind("samples/square")
async def square(context: Context, message: Message) -> None:
    """Answer with the square of a number."""
    await asyncio.sleep(0)
    assert context.caller is not None
    number = message.as_long()
    context.send(message_builder(context.caller.typename, context.caller.id, long_value=number * number))


@functions.bind("samples/hop")
def hop(context: Context, message: Message) -> None:
    """Forward a message to another instance, and emit its path at the end."""
    state, own = message.as_type(JSON), int(context.address.id)
    state["path"].append(own)
    if not state["left"]:
        _emit(context, ["hop", state["number"], state["path"]])
        return
    state["left"] -= 1
    context.send(message_builder("samples/hop", str((own * 3 + state["number"]) % 4), value=state, value_type=JSON))


def entities(env: Any) -> DataStream[Any]:
    """Return the totals of accounts, and the paths of messages."""
    source = SplitsSource(sample_input.numbers(_ACCOUNTS * _DEPOSITS), Types.LONG())
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    egresses = (
        StatefulFunctionDataStreamBuilder.builder("accounts")
        .with_data_stream_as_ingress(
            numbers, lambda number: message_builder("samples/account", str(number % _ACCOUNTS), long_value=number)
        )
        .with_functions(functions)
        .with_egress_id("samples/results", JSON)
        .build(env)
    )
    return egresses.get_data_stream_for_egress_id("samples/results")
