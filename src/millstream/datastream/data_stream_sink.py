"""The sink of a stream in a program.

Promises: name, uid and parallelism can be set as for any operator.
Does not know: what the sink writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.datastream.operator_settings import OperatorSettings
from millstream.graph.transformations import Input

if TYPE_CHECKING:
    from millstream.datastream.stream_execution_environment import StreamExecutionEnvironment


class DataStreamSink(OperatorSettings):
    """The sink of a stream: set its name, uid and parallelism here.

    Example:
        >>> from millstream.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> sink = env.from_collection([1, 2]).add_sink(lambda value: None).name("ignore").set_parallelism(1)

    """

    def __init__(self, env: StreamExecutionEnvironment, inputs: tuple[Input, ...]) -> None:
        self._env = env
        self._inputs = inputs
        env._program.note_sink()

    def __repr__(self) -> str:
        return f"DataStreamSink({self._env._program.get(self._id).name!r})"
