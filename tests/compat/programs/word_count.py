"""Word count: every arrival of a word emits its running count."""

from pyflink.common import Types
from pyflink.datastream import DataStream, StreamExecutionEnvironment

ORDER = "key"
WATERMARKS = "final"

LINES = [
    "To be, or not to be,--that is the question:--",
    "Whether 'tis nobler in the mind to suffer",
    "The slings and arrows of outrageous fortune",
    "Or to take arms against a sea of troubles,",
    "And by opposing end them?--To die,--to sleep,--",
    "",
    "No more; and by a sleep to say we end",
]


def split(line):
    for word in "".join(c if c.isalpha() else " " for c in line.lower()).split():
        yield word, 1


def define(env: StreamExecutionEnvironment) -> DataStream:
    return (
        env.from_collection(LINES, type_info=Types.STRING())
        .flat_map(split, output_type=Types.TUPLE([Types.STRING(), Types.INT()]))
        .key_by(lambda pair: pair[0], key_type=Types.STRING())
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
    )
