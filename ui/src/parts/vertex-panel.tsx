// The selected vertex of a job: its subtasks, its charts, and the metrics of its operators.

import { useEffect, useRef, useState } from "preact/hooks";
import { usePolling } from "../api";
import { formatBytes, formatCount, formatExact, formatPercent, formatRate, formatTime, formatWatermark } from "../format";
import type { Dropped, HotKey, Load, MetricHistory, Subtasks, Vertex } from "../types";
import { Loaded, Meter } from "./basics";
import { Chart, type Point, rates, samples } from "./chart";
import { FlameGraph } from "./flame-graph";

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
      <FlameGraph job={job} vertex={vertex} />
      <DroppedRecords job={job} vertex={vertex} />
      <Loaded polled={subtasks}>
        {(shown) => (
          <>
            <SubtaskTable loads={shown.subtasks} />
            <HotKeys keys={shown.hotKeys} />
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
      <div class="scroll" tabIndex={0} role="region" aria-label="Subtasks">
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

/** The keys with most records, by samples of the last minutes. */
function HotKeys({ keys }: { keys: HotKey[] }) {
  if (keys.length === 0) return null;
  return (
    <section>
      <h3>Keys with most records</h3>
      <p class="hint">Keys with at least 1 % of the records, estimated from a sample. All records of a key go to one subtask.</p>
      <div class="scroll" tabIndex={0} role="region" aria-label="Keys with most records">
        <table>
          <thead>
            <tr>
              <th scope="col">Key</th>
              <th scope="col">Share of the records</th>
              <th scope="col" class="number">
                Subtask
              </th>
            </tr>
          </thead>
          <tbody>
            {keys.map((hot) => (
              <tr key={hot.key}>
                <td class="wide">
                  <code>{hot.key}</code>
                </td>
                <td>
                  <Meter share={hot.share} label={`share of key ${hot.key}`} kind="busy" />
                </td>
                <td class="number">{hot.subtask}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

/** Some of the records that were late, or could not be decoded. */
function DroppedRecords({ job, vertex }: { job: string; vertex: Vertex }) {
  const dropped = usePolling<Dropped[]>(`jobs/${job}/millstream/vertices/${vertex.id}/dropped`, 5_000);
  if (dropped.data === null || dropped.data.length === 0) return null;
  return (
    <section>
      <h3>Records that were dropped</h3>
      <p class="hint">The newest ones, at most five of each epoch and subtask. The metrics below count all of them.</p>
      <div class="scroll short" tabIndex={0} role="region" aria-label="Records that were dropped">
        <table>
          <thead>
            <tr>
              {["Time", "Operator", "Reason", "Key", "Record"].map((name) => (
                <th key={name} scope="col">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {dropped.data.map((record, index) => (
              <tr key={index}>
                <td>{formatTime(record.time)}</td>
                <td>{record.operator}</td>
                <td class="wide">{record.reason}</td>
                <td class="wide">{record.key === null ? "–" : <code>{record.key}</code>}</td>
                <td class="wide">
                  <code>{record.value}</code>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

const KEPT_SAMPLES = 300;

/** Values of a metric since its chart was opened, summed over subtasks. */
function MetricChart({ name, values }: { name: string; values: (number | string | boolean)[] }) {
  const points = useRef<Point[]>([]);
  const numbers = values.filter((value) => typeof value === "number");
  useEffect(() => {
    const value = numbers.reduce((sum, number) => sum + number, 0);
    points.current = [...points.current, { time: Date.now(), value }].slice(-KEPT_SAMPLES);
  }, [values]);
  return (
    <div class="metric-chart">
      <Chart
        title={`${name}, all subtasks`}
        points={points.current}
        format={(value) => formatMetric(name, value)}
        empty="Values are drawn from now on."
      />
    </div>
  );
}

function MetricTable({ metrics }: { metrics: Subtasks["operators"][number]["metrics"] }) {
  const [charted, setCharted] = useState<readonly string[]>([]);
  const toggle = (name: string) =>
    setCharted(charted.includes(name) ? charted.filter((other) => other !== name) : [...charted, name]);
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Metrics">
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
                {values.some((value) => typeof value === "number") ? (
                  <button class="link" aria-pressed={charted.includes(name)} title="Draw this metric" onClick={() => toggle(name)}>
                    <code>{name}</code>
                  </button>
                ) : (
                  <code>{name}</code>
                )}
                {charted.includes(name) && <MetricChart name={name} values={values} />}
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
