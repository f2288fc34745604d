"""Stateful functions on real workers: one dies while it processes a message, and the result is the same."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from millstream.common import Configuration
from millstream.datastream import StreamExecutionEnvironment
from millstream.statefun import (
    LongType,
    StatefulFunctionDataStreamBuilder,
    StatefulFunctions,
    ValueSpec,
    egress_message_builder,
    make_json_type,
    message_builder,
)

pytestmark = pytest.mark.usefixtures("spark_context")


def test_a_worker_that_dies_while_messages_circulate_does_not_change_the_result(tmp_path: Path) -> None:
    configuration = Configuration()
    configuration.set_string("execution.checkpointing.dir", str(tmp_path))
    configuration.set_string("execution.checkpointing.interval", "50 ms")
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(2)
    marker = tmp_path / "killed"
    functions = StatefulFunctions()
    json_type = make_json_type("test/json")

    @functions.bind("test/ring", [ValueSpec("visits", LongType)])
    async def ring(context: Any, message: Any) -> None:
        left = message.as_long()
        visits = (context.storage.visits or 0) + 1
        context.storage.visits = visits
        if left == 10 and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if left:
            own = int(context.address.id)
            context.send(message_builder("test/ring", str((own + 1) % 10), long_value=left - 1))
        else:
            result = [context.address.id, visits]
            context.send_egress(egress_message_builder("test/out", result, json_type))

    egresses = (
        StatefulFunctionDataStreamBuilder.builder("ring")
        .with_data_stream_as_ingress(env.from_collection([message_builder("test/ring", "0", long_value=19)]))
        .with_functions(functions)
        .with_egress_id("test/out", json_type)
        .build(env)
    )
    assert list(egresses.get_data_stream_for_egress_id("test/out").execute_and_collect()) == [["9", 2]]
    assert marker.exists()
