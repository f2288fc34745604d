"""Side outputs: one function with three outputs, for good, bad and rare records."""

from collections.abc import Iterator
from typing import Any

from millstream.common import Types
from millstream.datastream import OutputTag, ProcessFunction, StreamExecutionEnvironment

BAD = OutputTag("bad", Types.STRING())
NEGATIVE = OutputTag("negative", Types.LONG())


class Numbers(ProcessFunction):
    def process_element(self, text: str, ctx: ProcessFunction.Context) -> Iterator[Any]:
        try:
            number = int(text)
        except ValueError as problem:
            yield BAD, f"{text!r}: {problem}"
            return
        if number < 0:
            yield NEGATIVE, number
        yield number


env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)
numbers = env.from_collection(["12", "-7", "twelve", "30", ""]).process(Numbers(), Types.LONG())
numbers.print("number")
numbers.get_side_output(NEGATIVE).print("negative")
numbers.get_side_output(BAD).print("bad")
env.execute("side outputs")
