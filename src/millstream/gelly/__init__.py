"""Graphs, with the names of Flink's Gelly, on iterations.

Promises: algorithms work on arrays of the vertices of a subtask; results are streams.
Does not know: how rounds are planned."""

from millstream.functions.vertex import VertexProgram
from millstream.gelly.algorithms import (
    BreadthFirstSearch,
    ConnectedComponents,
    LabelPropagation,
    SingleSourceShortestPaths,
)
from millstream.gelly.cores import CoreNumbers, StronglyConnectedComponents
from millstream.gelly.edge_streams import EdgeStream
from millstream.gelly.generators import (
    complete_graph,
    cycle_graph,
    erdos_renyi_graph,
    grid_graph,
    path_graph,
    rmat_graph,
    social_graph,
    star_graph,
)
from millstream.gelly.graph import Graph
from millstream.gelly.models import GatherSumApply, ScatterGather
from millstream.gelly.per_vertex import Vertex
from millstream.gelly.picture import GraphPicture
from millstream.gelly.ranking import HITS, PageRank
from millstream.gelly.relations import EdgeDirection

__all__ = [
    "HITS",
    "BreadthFirstSearch",
    "ConnectedComponents",
    "CoreNumbers",
    "EdgeDirection",
    "EdgeStream",
    "GatherSumApply",
    "Graph",
    "GraphPicture",
    "LabelPropagation",
    "PageRank",
    "ScatterGather",
    "SingleSourceShortestPaths",
    "StronglyConnectedComponents",
    "Vertex",
    "VertexProgram",
    "complete_graph",
    "cycle_graph",
    "erdos_renyi_graph",
    "grid_graph",
    "path_graph",
    "rmat_graph",
    "social_graph",
    "star_graph",
]
