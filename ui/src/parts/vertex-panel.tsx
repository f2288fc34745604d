// The selected vertex of a job: its subtasks, its charts, and the metrics of its operators.

import { usePolling } from "../api";
import { formatBytes, formatCount, formatExact, formatPercent, formatRate, formatWatermark } from "../format";
import type { Load, MetricHistory, Subtasks, Vertex } from "../types";
import { Loaded, Meter } from "./basics";
import { Chart, rates, samples } from "./chart";

export function VertexPanel({ job, vertex, onClose }: { job: string; vertex: Vertex; onClose: () => void }) {
  const subtasks = usePolling<Subtasks>(`jobs/${job}/millstream/vertices/${vertex.id}`);
  const history = usePolling<MetricHistory>(`jobs/${job}/metrics/history`, 10_000);
  return (
    <section class="panel" aria-label={`Operator ${vertex.name}`}>
      <div class="title">
        <h2 class="wide">{vertex.name}</h2>
        <button class="quiet" onClick={onClose}>
          Close
        </button>
      </div>
      <Charts vertex={vertex} history={history.data} />
      <Loaded polled={subtasks}>
        {(shown) => (
          <>
            <SubtaskTable loads={shown.subtasks} />
            {shown.operators.map((operator) => (
              <details key={operator.id} open={shown.operators.length === 1}>
                <summary>Metrics of {operator.name}</summary>
                <MetricTable metrics={operator.metrics} />
              </details>
            ))}
          </>
        )}
      </Loaded>
    </section>
  );
}

function Charts({ vertex, history }: { vertex: Vertex; history: MetricHistory | null }) {
  const values = history?.vertices[vertex.id];
  if (history === null || values === undefined) return null;
  const busy = rates(history.timestamps, values["accumulateBusyTimeMs"] ?? []);
  const share = busy.map((point) => ({ ...point, value: point.value / 1000 / vertex.parallelism }));
  return (
    <div class="charts">
      <Chart title="Records out" points={rates(history.timestamps, values["numRecordsOut"] ?? [])} format={formatRate} />
      <Chart title="Busy" points={share} format={formatPercent} />
      <Chart title="State" points={samples(history.timestamps, values["stateSizeBytes"] ?? [])} format={formatBytes} />
    </div>
  );
}

/** How much more the largest subtask has than the average one, as a share of the average. */
export function skew(numbers: number[]): number {
  const average = numbers.reduce((sum, number) => sum + number, 0) / Math.max(1, numbers.length);
  return average === 0 ? 0 : Math.max(...numbers) / average - 1;
}

function SubtaskTable({ loads }: { loads: Load[] }) {
  const uneven = skew(loads.map((load) => load.recordsIn));
  return (
    <>
      <h3>Subtasks</h3>
      {uneven > 0.5 && (
        <p class="notice">
          The largest subtask gets {formatPercent(uneven)} more records than the average one. Keys may be skewed.
        </p>
      )}
      <div class="scroll">
        <table>
          <thead>
            <tr>
              {["Subtask", "Records in", "Records out", "Rate in", "Bytes in", "Bytes out", "State"].map((name) => (
                <th key={name} scope="col" class="number">
                  {name}
                </th>
              ))}
              <th scope="col">Busy</th>
              <th scope="col">Waits</th>
              <th scope="col">Watermark</th>
            </tr>
          </thead>
          <tbody>
            {loads.map((load, index) => (
              <tr key={index}>
                <th scope="row" class="number">
                  {index}
                </th>
                <td class="number">{formatCount(load.recordsIn)}</td>
                <td class="number">{formatCount(load.recordsOut)}</td>
                <td class="number">{formatRate(load.recordsInPerSecond)}</td>
                <td class="number">{formatBytes(load.bytesIn)}</td>
                <td class="number">{formatBytes(load.bytesOut)}</td>
                <td class="number">{formatBytes(load.stateBytes)}</td>
                <td>
                  <Meter share={load.busy} label={`subtask ${index} busy`} kind="busy" />
                </td>
                <td>
                  <Meter share={load.backpressured} label={`subtask ${index} waits`} kind="backpressured" />
                </td>
                <td>{formatWatermark(load.watermark)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

function MetricTable({ metrics }: { metrics: Subtasks["operators"][number]["metrics"] }) {
  return (
    <div class="scroll">
      <table>
        <thead>
          <tr>
            <th scope="col">Metric</th>
            <th scope="col">By subtask</th>
          </tr>
        </thead>
        <tbody>
          {Object.entries(metrics).map(([name, values]) => (
            <tr key={name}>
              <td>
                <code>{name}</code>
              </td>
              <td>{values.map((value) => formatMetric(name, value)).join("   ")}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function formatMetric(name: string, value: number | string | boolean): string {
  if (typeof value !== "number") return String(value);
  if (name.endsWith("Watermark")) return formatWatermark(value);
  if (name.endsWith("Bytes")) return formatBytes(value);
  return formatExact(Number(value.toFixed(3)));
}
