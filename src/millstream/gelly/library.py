"""The algorithms of the graph library, as methods of a graph.

Promises: an algorithm returns a stream of results.
Does not know: how a graph is created."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from millstream.datastream.data_stream import DataStream
from millstream.errors import InvalidArgument
from millstream.functions.vertex import VertexProgram
from millstream.gelly.algorithms import (
    BreadthFirstSearch,
    ConnectedComponents,
    LabelPropagation,
    SingleSourceShortestPaths,
)
from millstream.gelly.communities import (
    CombineEdges,
    LabelSums,
    LabelWeights,
    Louvain,
    Modularity,
    SourceLabels,
)
from millstream.gelly.cores import CoreNumbers, StronglyConnectedComponents
from millstream.gelly.dataflow import COUNT, EDGE, VERTEX, ResultStream, map_all, map_partition
from millstream.gelly.forests import MinimumSpanningForest
from millstream.gelly.neighborhoods import (
    CloseTriangles,
    ClusteringCoefficients,
    Measures,
    MergeMeasures,
    NeighborPairs,
    Neighbors,
    OpenTriangles,
    Similarities,
)
from millstream.gelly.per_vertex import GatherSumApplyFunctions, ScatterGatherFunctions, Vertex, VertexCentric
from millstream.gelly.ranking import HITS, PageRank
from millstream.gelly.transformations import GraphTransformations, count_records, to_labels
from millstream.iteration.termination import Termination
from millstream.types.factory import TypeInformation, Types

MOST_ROUNDS = 1_000_000


def _row(names: str, types: str) -> TypeInformation:
    """Return the type of rows; the type of a field is `i` or `f`."""
    kinds = {"i": Types.LONG(), "f": Types.DOUBLE()}
    return Types.ROW_NAMED(names.split(), [kinds[letter] for letter in types])


_NEIGHBOR = _row("vertex neighbor degree", "iii")
_OPEN = _row("vertex other apex", "iii")
_TRIANGLE = _row("first second third", "iii")
_PAIR = _row("vertex other share degrees", "iifi")
_SIMILARITY = _row("first second value", "iif")
_PART = _row("vertices edges triplets maximum_degree", "iiii")
_SOURCE_LABEL = _row("target label weight", "iif")
_LABEL_WEIGHTS = _row("label inside degree", "iff")
_LABEL_SUMS = _row("inside degree squares", "fff")
_MODULARITY = _row("modularity", "f")
_MEASURES = _row("vertices edges average_degree density triplets maximum_degree", "iiffii")


class GraphAlgorithms(GraphTransformations):
    """The part of a graph that runs algorithms."""

    @abstractmethod
    def run(self, program: VertexProgram, termination: Termination | int | None = None) -> ResultStream:
        """Run a vertex program."""

    # --------------------------------------------------------------------------------------- functions of one vertex

    def run_vertex_centric_iteration(
        self, compute: Callable[[Vertex, Sequence[float]], Any], max_iterations: int | None = None
    ) -> ResultStream:
        """Run a function for every vertex with messages, and return (vertex, value). In round 1 it is called for all.

        Args:
            compute: Gets a `Vertex` and its messages; it can set the value of the vertex and send messages.
            max_iterations: The largest number of rounds; by default the iteration ends when no vertex sends.

        """
        return self.run(VertexCentric(compute), max_iterations)

    def run_scatter_gather_iteration(
        self,
        scatter: Callable[[Vertex], Any],
        gather: Callable[[Vertex, Sequence[float]], Any],
        max_iterations: int | None = None,
    ) -> ResultStream:
        """Run a function for every vertex that changed, and one for every vertex with messages; return (vertex, value).

        Args:
            scatter: Gets a `Vertex`, and sends messages; in round 1 it is called for all.
            gather: Gets a `Vertex` and its messages, and can set its value.
            max_iterations: The largest number of rounds; by default the iteration ends when no vertex sends.

        """
        return self.run(ScatterGatherFunctions(scatter, gather), _with_first(max_iterations))

    def run_gather_sum_apply_iteration(
        self,
        gather: Callable[[float, float], float],
        sum: Callable[[float, float], float],
        apply: Callable[[float, float], float],
        max_iterations: int | None = None,
        *,
        check: bool = False,
    ) -> ResultStream:
        """Gather a number along every edge from a vertex that changed, sum up and apply them; return (vertex, value).

        Args:
            gather: Gets the value of the source and the weight of an edge; in round 1 it is called for all edges.
            sum: Gets two gathered numbers; commutative and associative.
            apply: Gets the value of a vertex and the sum, and returns the new value.
            max_iterations: The largest number of rounds; by default the iteration ends when no value changes.
            check: Whether the job fails if `sum` is not commutative and associative for some of the numbers.

        """
        return self.run(GatherSumApplyFunctions(gather, sum, apply, check), _with_first(max_iterations))

    # ---------------------------------------------------------------------------------------- components, distances

    def connected_components(self) -> ResultStream:
        """Return (vertex, least vertex of its weakly connected component)."""
        return self.run(ConnectedComponents())

    def single_source_shortest_paths(self, source: int, max_iterations: int | None = None) -> ResultStream:
        """Return (vertex, distance from the source).

        Args:
            source: The id of the source vertex.
            max_iterations: The job fails if distances still change after so many rounds, as with a negative cycle.

        """
        limit = Termination(max_iterations=max_iterations or MOST_ROUNDS, must_converge=True)
        return self.run(SingleSourceShortestPaths(source), limit)

    def breadth_first_search(self, source: int) -> ResultStream:
        """Return (vertex, number of edges from the source)."""
        return self.run(BreadthFirstSearch(source))

    def strongly_connected_components(self) -> ResultStream:
        """Return (vertex, largest vertex of its strongly connected component)."""
        return self.run(StronglyConnectedComponents())

    def minimum_spanning_forest(self) -> ResultStream:
        """Return (source, target, weight) of the edges of a minimum spanning forest.

        Edges have no directions here: the source is the smaller vertex. Of edges with equal weights, those with smaller
        vertices are preferred, so the forest is unique. One subtask needs memory for as many edges as there are
        vertices, times the parallelism.
        """
        forest = MinimumSpanningForest()
        parts = map_partition("Forests", forest, [(self._edges, "source")], EDGE)
        return map_all("Forest", forest, parts, EDGE)

    # ----------------------------------------------------------------------------------------------------- importance

    def page_rank(
        self, max_iterations: int = 20, damping: float = 0.85, sources: Iterable[int] | None = None
    ) -> ResultStream:
        """Return (vertex, rank); the sum of all ranks is one.

        Args:
            max_iterations: The number of rounds.
            damping: The probability to follow an edge.
            sources: The vertices at which a walk begins again (personalised PageRank); by default all.

        """
        _check_rounds(max_iterations)
        program = PageRank(damping, None if sources is None else tuple(sources))
        return self.run(program, max_iterations + 1)  # round 0 sends the initial ranks

    def hits(self, max_iterations: int = 20) -> ResultStream:
        """Return (vertex, hub, authority); see `HITS`.

        Args:
            max_iterations: How often authorities and hubs are computed.

        """
        _check_rounds(max_iterations)
        return self.run(HITS(), 2 * max_iterations + 1)

    # ---------------------------------------------------------------------------------------------------- communities

    def label_propagation(self, max_iterations: int = 20) -> ResultStream:
        """Return (vertex, label of its community); see `LabelPropagation`.

        Args:
            max_iterations: The largest number of rounds; it ends earlier if no label changes.

        """
        _check_rounds(max_iterations)
        return self.run(LabelPropagation(), max_iterations + 1)

    def louvain(self, resolution: float = 1.0) -> ResultStream:
        """Return (vertex, least vertex of its community), by the Louvain method: communities of high modularity.

        Directions are ignored, and the weights of parallel edges are added. One subtask needs memory for all edges,
        of which those between the same two vertices count once.

        Args:
            resolution: More than one gives smaller communities, less than one gives larger ones.

        """
        _check_resolution(resolution)
        inputs = [(self._edges, "source"), (self._edges, "target"), (self._vertices, "vertex")]
        edges = map_partition("Combined Edges", CombineEdges(), inputs, EDGE)
        return map_all("Louvain", Louvain(float(resolution)), edges, COUNT)

    def modularity(self, labels: DataStream[Any], resolution: float = 1.0) -> ResultStream:
        """Return one row with the modularity of communities; NaN if the weights of all edges together are zero.

        Directions are ignored, and the weights of parallel edges are added.

        Args:
            labels: Tuples or rows (vertex, label), one for each vertex with edges; `louvain` and `label_propagation`
                return such rows. Labels are integers.
            resolution: The weight of what is expected at random; one is usual.

        """
        _check_resolution(resolution)
        labels = to_labels(labels)
        rows = map_partition(
            "Source Labels", SourceLabels(), [(self._edges, "source"), (labels, "vertex")], _SOURCE_LABEL
        )
        inputs = [(rows, "target"), (labels, "vertex")]
        weights = map_partition("Label Weights", LabelWeights(), inputs, _LABEL_WEIGHTS)
        sums = map_partition("Label Sums", LabelSums(), [(weights, "label")], _LABEL_SUMS)
        return map_all("Modularity", Modularity(float(resolution)), sums, _MODULARITY)

    def core_numbers(self) -> ResultStream:
        """Return (vertex, largest k for which it is in the k-core); see `CoreNumbers`."""
        return self.run(CoreNumbers())

    # -------------------------------------------------------------------------------------------------- neighborhoods
    # Directions, self loops and parallel edges are ignored by all of them.

    def _neighbors(self) -> ResultStream:
        inputs = [(self._edges, "source"), (self._edges, "target")]
        return map_partition("Neighbors", Neighbors(), inputs, _NEIGHBOR)

    def triangle_enumerator(self) -> ResultStream:
        """Return (first, second, third) of each triangle, in ascending order."""
        return self._triangles(self._neighbors())

    def _triangles(self, neighbors: ResultStream) -> ResultStream:
        pairs = map_partition("Open Triangles", OpenTriangles(), [(neighbors, "vertex")], _OPEN)
        inputs = [(neighbors, "vertex"), (pairs, "vertex")]
        return map_partition("Triangles", CloseTriangles(), inputs, _TRIANGLE)

    def triangle_count(self) -> ResultStream:
        """Return one row with the number of triangles."""
        return count_records(self.triangle_enumerator(), "first")

    def local_clustering_coefficient(self) -> ResultStream:
        """Return (vertex, share of its pairs of neighbors that are neighbors); zero with fewer than two neighbors."""
        neighbors = self._neighbors()
        triangles = self._triangles(neighbors)
        corners = [(triangles, corner) for corner in ("first", "second", "third")]
        inputs = [*corners, (neighbors, "vertex"), (self.get_vertices(), "vertex")]
        return map_partition("Clustering Coefficients", ClusteringCoefficients(), inputs, VERTEX)

    def jaccard_index(self) -> ResultStream:
        """Return (first, second, value) of all pairs with a common neighbor: the share of common neighbors."""
        return self._similarities(adamic_adar=False)

    def adamic_adar(self) -> ResultStream:
        """Return (first, second, value) of all pairs with a common neighbor: the sum of 1 / log(degree) of these."""
        return self._similarities(adamic_adar=True)

    def _similarities(self, *, adamic_adar: bool) -> ResultStream:
        pairs = map_partition("Pairs", NeighborPairs(adamic_adar), [(self._neighbors(), "vertex")], _PAIR)
        return map_partition("Similarities", Similarities(adamic_adar), [(pairs, "vertex")], _SIMILARITY)

    def vertex_metrics(self) -> ResultStream:
        """Return one row of measures of the graph without directions, self loops and parallel edges.

        They are the numbers of vertices, edges and triplets (pairs of edges with a common vertex), the average and the
        largest degree, and the density.
        """
        inputs = [(self._neighbors(), "vertex"), (self.get_vertices(), "vertex")]
        return map_all("Metrics", MergeMeasures(), map_partition("Measures", Measures(), inputs, _PART), _MEASURES)


def _with_first(max_iterations: int | None) -> int | None:
    """Return the number of rounds, with the first one, which only sends."""
    return None if max_iterations is None else max_iterations + 1


def _check_resolution(resolution: float) -> None:
    if not 0 < resolution < float("inf"):
        msg = f"resolution is {resolution!r}"
        raise InvalidArgument(msg, hint="use a positive number; 1.0 is usual")


def _check_rounds(max_iterations: int) -> None:
    if max_iterations < 1:
        msg = f"max_iterations is {max_iterations!r}"
        raise InvalidArgument(msg, hint="use an int of at least 1")
