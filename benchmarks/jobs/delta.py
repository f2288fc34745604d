"""Connected components round by round: a delta iteration, and the same as a bulk one, in which all vertices take part.

Promises: the vertices of the path have random ids, so labels come to rest and the workset shrinks. The cost of a round
is the difference between a job of many rounds and one of a few, divided by the rounds between.
Does not know: how the figures are compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from benchmarks import common, graph_input
from benchmarks.jobs.epochs import environment

from millstream.gelly import Graph, VertexProgram
from millstream.gelly.algorithms import ConnectedComponents
from millstream.iteration import Termination

FEW = 100


@dataclass(frozen=True)
class BulkComponents(VertexProgram):
    """Every vertex sends its label in every round, whether it has changed or not."""

    combiner: ClassVar[str] = "min"
    dtype: ClassVar[str] = "int64"
    undirected: ClassVar[bool] = True

    def start(self, block: Any) -> tuple[np.ndarray, np.ndarray]:
        """Begin with the ids; all send."""
        return block.ids, np.arange(len(block))

    def update(
        self, block: Any, vertices: np.ndarray, messages: np.ndarray, aggregates: Mapping[str, float]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Take the least label; all send again."""
        values = block.values.copy()
        values[vertices] = np.minimum(values[vertices], messages)
        everything = np.arange(len(block))
        return everything, values, everything

    def message(self, block: Any, edges: np.ndarray) -> np.ndarray:
        """Send the label."""
        return block.values[block.sources[edges]]


def main() -> None:
    """Check the labels after a few rounds, or measure."""
    args = common.arguments(__doc__, way="delta", engine="resident", keys=100_000, records=300)
    program = ConnectedComponents() if args.way == "delta" else BulkComponents()
    worksets: list[int] = []

    def run(rounds: int, vertices: int) -> dict[int, int]:
        env = environment(**{"millstream.engine": args.engine})
        worksets.clear()
        env.register_listener(
            lambda event: worksets.extend(done.feedback for done in getattr(event, "iterations", {}).values())
        )
        graph = Graph.from_arrow(env, graph_input.draw_path(vertices))
        labels = graph.run(program, Termination(max_iterations=rounds)).to_arrow()
        return dict(zip(labels["vertex"].to_pylist(), labels["value"].to_pylist(), strict=True))

    def measure() -> dict[str, Any]:
        run(FEW, 1_000)
        result = common.time_of_a_round(lambda rounds: run(rounds, args.keys), FEW, args.records)
        return {**result, "worksets": worksets[:: max(1, len(worksets) // 50)]}

    common.contest(args, lambda: common.digest(sorted(run(20, 1_000).items())), measure)


if __name__ == "__main__":
    main()
