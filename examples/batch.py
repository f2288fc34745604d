"""Batch execution: the same program over bounded input emits only final results, one for each key."""

from millstream.common import Types
from millstream.datastream import RuntimeExecutionMode, StreamExecutionEnvironment

LINES = ["the quick brown fox", "jumps over the lazy dog", "the end"]
PAIR = Types.TUPLE([Types.STRING(), Types.INT()])


def count_words(mode: RuntimeExecutionMode) -> list[tuple[str, int]]:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_runtime_mode(mode)
    counts = (
        env.from_collection(LINES)
        .flat_map(lambda line: [(word, 1) for word in line.split()], PAIR)
        .key_by(lambda pair: pair[0], Types.STRING())
        .reduce(lambda one, other: (one[0], one[1] + other[1]))
    )
    return sorted(counts.execute_and_collect())


as_stream = count_words(RuntimeExecutionMode.STREAMING)
as_batch = count_words(RuntimeExecutionMode.BATCH)
print("results for 'the' as a stream:", [n for word, n in as_stream if word == "the"])
print("results for 'the' as a batch:", [n for word, n in as_batch if word == "the"])
print(f"{len(as_stream)} results as a stream, {len(as_batch)} as a batch")
