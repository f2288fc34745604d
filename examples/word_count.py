"""Count words in a stream: the first program of every stream processor."""

from millstream.common import Types
from millstream.datastream import StreamExecutionEnvironment

LINES = ["to be or not to be", "that is the question", "whether tis nobler in the mind to suffer"]

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(2)

counts = (
    env.from_collection(LINES)
    .flat_map(lambda line: line.split(), Types.STRING())
    .map(lambda word: (word, 1), Types.TUPLE([Types.STRING(), Types.INT()]))
    .key_by(lambda pair: pair[0], Types.STRING())
    .reduce(lambda one, other: (one[0], one[1] + other[1]))
)
counts.print()
env.execute("word count")
