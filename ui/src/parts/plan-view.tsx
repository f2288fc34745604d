// The plan of a statement as SVG: operators and exchanges.

import { Graph as DagreGraph, layout } from "@dagrejs/dagre";

export interface PlanNode {
  id: number;
  contents: string;
  parallelism: number;
  predecessors?: { id: number; ship_strategy: string }[];
}

const WIDTH = 280;
const LINE = 17;
const CHARACTERS = 40;
const MOST_LINES = 5;

export function PlanView({ nodes }: { nodes: PlanNode[] }) {
  const graph = new DagreGraph({ multigraph: true });
  graph.setGraph({ rankdir: "BT", nodesep: 28, ranksep: 44, marginx: 8, marginy: 8 });
  graph.setDefaultEdgeLabel(() => ({}));
  const lines = new Map(nodes.map((node) => [node.id, wrap(node.contents)]));
  for (const node of nodes) graph.setNode(String(node.id), { width: WIDTH, height: 34 + lines.get(node.id)!.length * LINE });
  const edges = nodes.flatMap((node) => (node.predecessors ?? []).map((before) => ({ node, before })));
  for (const { node, before } of edges) graph.setEdge(String(before.id), String(node.id), {}, `${before.id}-${node.id}`);
  layout(graph);
  const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number };
  return (
    <div class="plan" tabIndex={0} role="region" aria-label="Plan">
      <svg width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={describe(nodes)}>
        <defs>
          <marker id="plan-arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="11" markerHeight="11" markerUnits="userSpaceOnUse" orient="auto">
            <path d="M0,0 L8,4 L0,8 Z" class="arrow" />
          </marker>
        </defs>
        {edges.map(({ node, before }) => {
          const { points } = graph.edge({ v: String(before.id), w: String(node.id), name: `${before.id}-${node.id}` }) as {
            points: { x: number; y: number }[];
          };
          const middle = points[Math.floor(points.length / 2)]!;
          return (
            <g key={`${before.id}-${node.id}`} class="edge">
              <path d={`M${points.map(({ x, y }) => `${x},${y}`).join(" L")}`} stroke-width="1.5" marker-end="url(#plan-arrow)" />
              {before.ship_strategy !== "FORWARD" && (
                <text x={middle.x + 6} y={middle.y + 4}>
                  {before.ship_strategy.toLowerCase()}
                </text>
              )}
            </g>
          );
        })}
        {nodes.map((node) => {
          const placed = graph.node(String(node.id)) as { x: number; y: number; width: number; height: number };
          return (
            <g key={node.id} class="vertex" transform={`translate(${placed.x - placed.width / 2},${placed.y - placed.height / 2})`}>
              <title>{node.contents}</title>
              <rect class="body" width={placed.width} height={placed.height} rx="8" />
              {lines.get(node.id)!.map((line, index) => (
                <text key={index} class={index === 0 ? "operator" : "note"} x="10" y={22 + index * LINE}>
                  {line}
                </text>
              ))}
              <text class="note" x={placed.width - 10} y={placed.height - 8} text-anchor="end">
                ×{node.parallelism}
              </text>
            </g>
          );
        })}
      </svg>
    </div>
  );
}

/** The name of an operator, and its details in lines. */
function wrap(contents: string): string[] {
  const bracket = contents.indexOf("(");
  const name = bracket < 0 ? contents : contents.slice(0, bracket);
  let rest = bracket < 0 ? "" : contents.slice(bracket + 1).replace(/\)$/, "");
  const lines = [name.slice(0, CHARACTERS)];
  while (rest !== "" && lines.length < MOST_LINES) {
    const cut = rest.length <= CHARACTERS ? rest.length : Math.max(rest.lastIndexOf(" ", CHARACTERS), 1);
    const at = cut === 1 ? CHARACTERS : cut;
    lines.push(rest.slice(0, at).trim());
    rest = rest.slice(at).trim();
  }
  if (rest !== "") lines[MOST_LINES - 1] = `${lines[MOST_LINES - 1]!.slice(0, CHARACTERS - 1)}…`;
  return lines;
}

function describe(nodes: PlanNode[]): string {
  const names = nodes.map((node) => node.contents.split("(")[0]);
  return `Plan with ${nodes.length} operators: ${names.join(", ")}`;
}
