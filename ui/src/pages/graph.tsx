import { type Polled, usePolling } from "../api";
import { formatBytes, formatCount, formatDuration, formatRate, formatWatermark } from "../format";
import { Loaded, Meter, Tile } from "../parts/basics";
import { GraphView } from "../parts/graph-view";
import { VertexPanel } from "../parts/vertex-panel";
import { jobLink } from "../route";
import type { Epochs, Graph, Vertex } from "../types";

export function GraphPage({ job, polled, selected }: { job: string; polled: Polled<Graph>; selected: string | null }) {
  const epochs = usePolling<Epochs>(`jobs/${job}/millstream/epochs`);
  const select = (vertex: string | null) => {
    location.hash = vertex === null ? jobLink(job) : jobLink(job, "graph", vertex);
  };
  return (
    <Loaded polled={polled}>
      {(graph) => {
        const vertex = graph.vertices.find((each) => each.id === selected);
        return (
          <>
            <Summary graph={graph} epochs={epochs.data} />
            <GraphView graph={graph} selected={selected} onSelect={select} />
            {vertex === undefined ? (
              <VertexTable job={job} vertices={graph.vertices} />
            ) : (
              <VertexPanel job={job} vertex={vertex} onClose={() => select(null)} />
            )}
          </>
        );
      }}
    </Loaded>
  );
}

function Summary({ graph, epochs }: { graph: Graph; epochs: Epochs | null }) {
  const sources = graph.vertices.filter((vertex) => vertex.operators.some((operator) => operator.kind === "source"));
  const total = (pick: (vertex: Vertex) => number) => sources.reduce((sum, vertex) => sum + pick(vertex), 0);
  const pending = sources.filter((vertex) => vertex.pendingRecords !== null);
  const last = epochs?.epochs.at(-1);
  return (
    <dl class="tiles">
      <Tile
        label="Records read"
        value={formatCount(total((vertex) => vertex.load.recordsOut))}
        detail={formatRate(total((vertex) => vertex.load.recordsOutPerSecond))}
      />
      <Tile
        label="Waiting in sources"
        value={pending.length === 0 ? "not known" : formatCount(total((vertex) => vertex.pendingRecords ?? 0))}
      />
      <Tile
        label="Last epoch"
        value={last === undefined ? "none yet" : formatDuration(last.duration)}
        detail={last === undefined ? undefined : `epoch ${last.epoch}, ${formatCount(last.records)} records`}
      />
      <Tile
        label="State"
        value={formatBytes(graph.vertices.reduce((sum, vertex) => sum + vertex.load.stateBytes, 0))}
      />
      <Tile label="Slots" value={String(graph.slots)} />
    </dl>
  );
}

function VertexTable({ job, vertices }: { job: string; vertices: Vertex[] }) {
  return (
    <section>
      <h2>Operators</h2>
      <div class="scroll" tabIndex={0} role="region" aria-label="Operators">
        <table>
          <thead>
            <tr>
              <th scope="col">Chain</th>
              <th scope="col" class="number">
                Parallelism
              </th>
              <th scope="col" class="number">
                Records in
              </th>
              <th scope="col" class="number">
                Records out
              </th>
              <th scope="col">Busy</th>
              <th scope="col">Waits for downstream</th>
              <th scope="col" class="number">
                State
              </th>
              <th scope="col">Watermark</th>
            </tr>
          </thead>
          <tbody>
            {vertices.map((vertex) => (
              <tr key={vertex.id}>
                <td class="wide">
                  <a href={jobLink(job, "graph", vertex.id)}>{vertex.name}</a>
                </td>
                <td class="number">{vertex.parallelism}</td>
                <td class="number">{formatCount(vertex.load.recordsIn)}</td>
                <td class="number">{formatCount(vertex.load.recordsOut)}</td>
                <td>
                  <Meter share={vertex.load.busy} label="busy" kind="busy" />
                </td>
                <td>
                  <Meter share={vertex.load.backpressured} label="waits for downstream" kind="backpressured" />
                </td>
                <td class="number">{formatBytes(vertex.load.stateBytes)}</td>
                <td>{formatWatermark(vertex.load.watermark)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
