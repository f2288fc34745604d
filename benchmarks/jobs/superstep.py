"""An iteration whose rounds do next to nothing: what a superstep costs, with one exchange by key.

Promises: the cost of a round is the difference between a job of many rounds and one of a few, divided by the rounds
between; starting and ending the job cancel.
Does not know: peers, or how the figures are compared."""

from __future__ import annotations

from benchmarks import common
from benchmarks.jobs.epochs import environment

from millstream.common import Types
from millstream.iteration import iterate

FEW, RECORDS = 20, 100


def run(rounds: int, engine: str) -> list[int]:
    """Count 100 numbers up, round by round."""
    env = environment(**{"millstream.engine": engine})
    numbers = env.from_collection(list(range(RECORDS)), Types.LONG())
    counted = iterate(numbers, lambda stream: stream.key_by(lambda n: n % 7).map(lambda n: n + 1, Types.LONG()), rounds)
    return sorted(counted.execute_and_collect())


def main() -> None:
    """Check the result of a few rounds, and measure."""
    args = common.arguments(__doc__, engine="jobs", records=200)
    if run(FEW, args.engine) != list(range(FEW, FEW + RECORDS)):
        message = "the iteration gave another result"
        raise SystemExit(message)
    common.answer(common.time_of_a_round(lambda rounds: run(rounds, args.engine), FEW, args.records))


if __name__ == "__main__":
    main()
