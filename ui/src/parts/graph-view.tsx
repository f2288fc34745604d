// The graph of a job as SVG.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { formatCount, formatDuration, formatPercent, formatRate, watermarkLag } from "../format";
import { LINE_HEIGHT, type PlacedEdge, type PlacedVertex, drawnLines, placeGraph } from "../graph-layout";
import type { Graph } from "../types";

const NARROW = 720;
const MARGIN = 12;

export function GraphView(props: { graph: Graph; selected: string | null; onSelect: (vertex: string | null) => void }) {
  const { graph } = props;
  const box = useRef<HTMLDivElement>(null);
  const [available, setAvailable] = useState(0);
  const [zoom, setZoom] = useState<number | null>(null);
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setAvailable(entry!.contentRect.width));
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, []);

  const isVertical = available > 0 && available < NARROW;
  const shape = JSON.stringify([graph.vertices.map((vertex) => [vertex.id, drawnLines(vertex)]), graph.edges]);
  // Load changes with every answer, the layout only with the shape of the graph.
  const layout = useMemo(() => placeGraph(graph.vertices, graph.edges, isVertical), [shape, isVertical]);
  const fit = Math.min(1, (available || layout.width) / layout.width);
  const scale = zoom ?? Math.max(fit, isVertical ? 0.75 : 0.5);
  const live = new Map(graph.vertices.map((vertex) => [vertex.id, vertex]));

  return (
    <div class="graph">
      <div class="graph-tools">
        <Legend />
        <span class="spacer" />
        <div class="buttons" role="group" aria-label="Zoom">
          <button class="quiet" aria-label="Zoom out" onClick={() => setZoom(scale / 1.25)}>
            −
          </button>
          <button class="quiet" onClick={() => setZoom(null)}>
            Fit
          </button>
          <button class="quiet" aria-label="Zoom in" onClick={() => setZoom(scale * 1.25)}>
            +
          </button>
        </div>
      </div>
      <div class="graph-box" ref={box} tabIndex={0} role="region" aria-label="Drawing">
        <svg
          width={layout.width * scale}
          height={layout.height * scale}
          viewBox={`0 0 ${layout.width} ${layout.height}`}
          role="group"
          aria-label="Job graph"
        >
          <defs>
            <marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="11" markerHeight="11" markerUnits="userSpaceOnUse" orient="auto">
              <path d="M0,0 L8,4 L0,8 Z" class="arrow" />
            </marker>
          </defs>
          {layout.edges.map((placed, index) => (
            <EdgeShape
              key={index}
              placed={placed}
              rate={live.get(placed.edge.source)?.load.recordsOutPerSecond ?? 0}
              isShared={layout.edges.filter((other) => other.edge.source === placed.edge.source).length > 1}
            />
          ))}
          {layout.vertices.map((placed) => (
            <VertexShape
              key={placed.vertex.id}
              placed={{ ...placed, vertex: live.get(placed.vertex.id) ?? placed.vertex }}
              now={graph.now}
              isSelected={placed.vertex.id === props.selected}
              onSelect={() => props.onSelect(placed.vertex.id === props.selected ? null : placed.vertex.id)}
            />
          ))}
        </svg>
      </div>
    </div>
  );
}

function Legend() {
  return (
    <p class="legend">
      <span class="swatch busy" /> busy <span class="swatch backpressured" /> waits for downstream{" "}
      <span class="swatch idle" /> idle
    </p>
  );
}

function EdgeShape({ placed, rate, isShared }: { placed: PlacedEdge; rate: number; isShared: boolean }) {
  const width = 1.5 + Math.min(4, Math.log10(1 + rate));
  return (
    <g class="edge">
      <path d={placed.path} stroke-width={width} marker-end="url(#arrow)" />
      <text x={placed.labelX} y={placed.labelY - 4} text-anchor="middle">
        {placed.edge.partitioner.toLowerCase()}
      </text>
      {!isShared && (
        <text class="rate" x={placed.labelX} y={placed.labelY + 14} text-anchor="middle">
          {formatRate(rate)}
        </text>
      )}
    </g>
  );
}

function VertexShape(props: { placed: PlacedVertex; now: number; isSelected: boolean; onSelect: () => void }) {
  const { placed, now } = props;
  const { vertex, width, height } = placed;
  const { load } = vertex;
  const bar = width - 2;
  const busy = Math.min(1, load.busy);
  const waits = Math.min(1 - busy, load.backpressured);
  const lag = watermarkLag(load.watermark, now);
  const isSource = vertex.operators.some((operator) => operator.kind === "source");
  const rates = isSource ? `out ${formatRate(load.recordsOutPerSecond)}` : `in ${formatRate(load.recordsInPerSecond)}`;
  const onKey = (event: KeyboardEvent) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    props.onSelect();
  };
  const label =
    `${vertex.name}, parallelism ${vertex.parallelism}, ${rates}, ` +
    `${formatPercent(busy)} busy, ${formatPercent(waits)} waiting for downstream`;
  return (
    <g
      class={`vertex ${busy > 0.8 ? "hot" : waits > 0.5 ? "blocked" : ""} ${props.isSelected ? "selected" : ""}`}
      transform={`translate(${placed.x},${placed.y})`}
      role="button"
      tabindex={0}
      aria-label={label}
      aria-pressed={props.isSelected}
      onClick={props.onSelect}
      onKeyDown={onKey}
    >
      <title>{vertex.name}</title>
      <rect class="body" width={width} height={height} rx="8" />
      <g class="load">
        <rect class="idle" x="1" y="1" width={bar} height="6" rx="3" />
        <rect class="busy" x="1" y="1" width={bar * busy} height="6" rx="3" />
        <rect class="backpressured" x={1 + bar * busy} y="1" width={bar * waits} height="6" rx="3" />
      </g>
      {drawnLines(vertex).map((line, index) => (
        <text key={index} class="operator" x="12" y={26 + index * LINE_HEIGHT}>
          {fitText(line, width - 2 * MARGIN)}
        </text>
      ))}
      <g transform={`translate(12,${height - 40})`}>
        <line class="rule" x1="-12" x2={width - 12} y1="-12" y2="-12" />
        <text class="number" y="6">
          {rates}
        </text>
        <text class="number" x={width - 24} y="6" text-anchor="end">
          {formatPercent(busy)} busy · ×{vertex.parallelism}
        </text>
        <text class="note" y="26">
          {lag === null ? (load.watermark > 0 ? "input ended" : "no watermark") : `watermark ${formatLag(lag)}`}
        </text>
        {vertex.pendingRecords !== null && vertex.pendingRecords > 0 && (
          <text class="note" x={width - 24} y="26" text-anchor="end">
            {formatCount(vertex.pendingRecords)} waiting
          </text>
        )}
      </g>
    </g>
  );
}

const pen = document.createElement("canvas").getContext("2d");

/** The text, or as much of its beginning as has room in the font of operators. */
function fitText(text: string, width: number): string {
  if (pen === null) return text;
  pen.font = `600 13px ${getComputedStyle(document.body).fontFamily}`;
  let shown = text;
  while (shown.length > 1 && pen.measureText(shown).width > width) {
    shown = `${shown.slice(0, shown.endsWith("…") ? -2 : -1)}…`;
  }
  return shown;
}

function formatLag(lag: number): string {
  const coarse = (milliseconds: number) => formatDuration(milliseconds).split(" ").slice(0, 2).join(" ");
  return lag >= 0 ? `${coarse(lag)} ago` : `${coarse(-lag)} ahead`;
}
