// Places the vertices and exchanges of a job graph.

import { Graph as DagreGraph, layout } from "@dagrejs/dagre";
import type { Edge, Vertex } from "./types";

export interface PlacedVertex {
  vertex: Vertex;
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface PlacedEdge {
  edge: Edge;
  path: string;
  labelX: number;
  labelY: number;
}

export interface Layout {
  width: number;
  height: number;
  vertices: PlacedVertex[];
  edges: PlacedEdge[];
}

interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

export const NODE_WIDTH = 248;
export const LINE_HEIGHT = 18;
export const MOST_LINES = 5;
const HEAD = 16;
const FOOT = 60;
const MARGIN = 12;

/** The names of the operators that are drawn in a vertex; the rest is a number. */
export function drawnLines(vertex: Vertex): string[] {
  const names = vertex.operators.map((operator) => operator.name);
  if (names.length <= MOST_LINES) return names;
  return [...names.slice(0, MOST_LINES - 1), `and ${names.length - MOST_LINES + 1} more operators`];
}

export function placeGraph(vertices: Vertex[], edges: Edge[], isVertical: boolean): Layout {
  const graph = new DagreGraph({ multigraph: true });
  graph.setGraph({
    rankdir: isVertical ? "TB" : "LR",
    nodesep: 28,
    ranksep: isVertical ? 56 : 96,
    marginx: MARGIN,
    marginy: MARGIN,
  });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const vertex of vertices) {
    graph.setNode(vertex.id, { width: NODE_WIDTH, height: HEAD + drawnLines(vertex).length * LINE_HEIGHT + FOOT });
  }
  edges.forEach((edge, index) => {
    graph.setEdge(edge.source, edge.target, { width: 76, height: 20, labelpos: "c" }, String(index));
  });
  layout(graph);
  const size = graph.graph() as { width?: number; height?: number };
  return {
    width: size.width ?? NODE_WIDTH,
    height: size.height ?? NODE_WIDTH,
    vertices: vertices.map((vertex) => {
      const node = graph.node(vertex.id) as Box;
      return {
        vertex,
        x: node.x - node.width / 2,
        y: node.y - node.height / 2,
        width: node.width,
        height: node.height,
      };
    }),
    edges: edges.map((edge, index) => {
      const placed = graph.edge(edge.source, edge.target, String(index)) as {
        points: { x: number; y: number }[];
        x: number;
        y: number;
      };
      const source = graph.node(edge.source) as Box;
      const target = graph.node(edge.target) as Box;
      const points = [sideOf(source, isVertical, 1), ...placed.points.slice(1, -1), sideOf(target, isVertical, -1)];
      return { edge, path: smoothPath(points), labelX: placed.x, labelY: placed.y };
    }),
  };
}

/** The middle of the side of a vertex where exchanges leave it (1) or reach it (-1). */
function sideOf(box: Box, isVertical: boolean, direction: 1 | -1): { x: number; y: number } {
  return isVertical
    ? { x: box.x, y: box.y + (direction * box.height) / 2 }
    : { x: box.x + (direction * box.width) / 2, y: box.y };
}

/** A curve through the middles of the segments between points, which begins and ends in a straight line. */
export function smoothPath(points: { x: number; y: number }[]): string {
  const [first, ...rest] = points;
  if (first === undefined) return "";
  let path = `M${first.x},${first.y}`;
  rest.forEach((point, index) => {
    const next = rest[index + 1];
    path += next === undefined
      ? ` L${point.x},${point.y}`
      : ` Q${point.x},${point.y} ${(point.x + next.x) / 2},${(point.y + next.y) / 2}`;
  });
  return path;
}
