import { useState } from "preact/hooks";
import { usePolling } from "../api";
import { explainEpoch, overhead, slowestVertices } from "../epoch-cause";
import { formatClock, formatCount, formatDuration, formatWatermark } from "../format";
import { Empty, Loaded, Tile } from "../parts/basics";
import type { Checkpoints, Epoch, Epochs, Graph, Vertex } from "../types";

const DRAWN = 80;

export function EpochsPage({ job, graph }: { job: string; graph: Graph | null }) {
  const epochs = usePolling<Epochs>(`jobs/${job}/millstream/epochs`);
  const checkpoints = usePolling<Checkpoints>(`jobs/${job}/checkpoints`);
  const [selected, setSelected] = useState<number | null>(null);
  return (
    <Loaded polled={epochs}>
      {(shown) => {
        const newest = shown.epochs.slice(-DRAWN);
        const epoch = shown.epochs.find((each) => each.epoch === selected) ?? shown.epochs.at(-1);
        if (epoch === undefined) {
          return <Empty title="No epochs yet">An epoch appears here when it is accepted.</Empty>;
        }
        const vertices = graph?.vertices ?? [];
        return (
          <>
            <dl class="tiles">
              <Tile label="Epochs" value={formatCount(shown.total)} />
              <Tile label="Average duration" value={formatDuration(shown.averageDuration)} />
              <Tile label="Newest" value={formatDuration(shown.epochs.at(-1)!.duration)} />
            </dl>
            <Timeline
              epochs={newest}
              checkpoints={(checkpoints.data?.history ?? []).map((each) => each.latest_ack_timestamp)}
              selected={epoch.epoch}
              onSelect={setSelected}
            />
            <EpochPanel epoch={epoch} vertices={vertices} />
          </>
        );
      }}
    </Loaded>
  );
}

function Timeline(props: {
  epochs: Epoch[];
  checkpoints: number[];
  selected: number;
  onSelect: (epoch: number) => void;
}) {
  const top = Math.max(...props.epochs.map((epoch) => epoch.duration), 1);
  return (
    <section>
      <h2>
        The newest {props.epochs.length} epochs <small>height: duration, at most {formatDuration(top)}</small>
      </h2>
      <div class="timeline">
        {props.epochs.map((epoch, index) => {
          const before = props.epochs[index - 1]?.time ?? epoch.time - epoch.duration;
          const hasCheckpoint = props.checkpoints.some((time) => time > before && time <= epoch.time);
          return (
            <button
              key={epoch.epoch}
              class={hasCheckpoint ? "epoch after-checkpoint" : "epoch"}
              aria-pressed={epoch.epoch === props.selected}
              aria-label={`Epoch ${epoch.epoch}: ${formatDuration(epoch.duration)}, ${epoch.records} records`}
              title={`epoch ${epoch.epoch}: ${formatDuration(epoch.duration)}`}
              onClick={() => props.onSelect(epoch.epoch)}
            >
              <span style={{ height: `${Math.max(3, (epoch.duration / top) * 100)}%` }} />
            </button>
          );
        })}
      </div>
      <p class="legend">
        <span class="swatch epoch-swatch" /> epoch <span class="swatch checkpoint-swatch" /> a checkpoint was completed
        before it
      </p>
    </section>
  );
}

function EpochPanel({ epoch, vertices }: { epoch: Epoch; vertices: Vertex[] }) {
  const slowest = slowestVertices(epoch, vertices);
  const byLevel = [...slowest].sort((one, other) => one.vertex.level - other.vertex.level);
  const rest = overhead(epoch, vertices);
  const share = (time: number) => ({ width: `${Math.min(100, (time / Math.max(1, epoch.duration)) * 100)}%` });
  return (
    <section class="panel">
      <h2>Epoch {epoch.epoch}</h2>
      <p>
        It ended at {formatClock(epoch.time)}, took {formatDuration(epoch.duration)} and read{" "}
        {formatCount(epoch.records)} records. Watermark: {formatWatermark(epoch.watermark)}.
        {epoch.lag !== null && ` ${formatCount(epoch.lag)} records waited in the sources.`}
      </p>
      <p>
        <strong>{explainEpoch(epoch, vertices)}</strong>
      </p>
      <div class="scroll" tabIndex={0} role="region" aria-label="Chains in the epoch">
        <table class="phases">
          <thead>
            <tr>
              <th scope="col" class="number">
                Level
              </th>
              <th scope="col">Chain</th>
              <th scope="col">Slowest subtask</th>
              <th scope="col" class="number">
                Average
              </th>
            </tr>
          </thead>
          <tbody>
            {byLevel.map((each) => (
              <tr key={each.vertex.id}>
                <td class="number">{each.vertex.level}</td>
                <td class="wide">{each.vertex.name}</td>
                <td class="phase">
                  <span class="phase-bar" style={share(each.longest)} />
                  {formatDuration(each.longest)}
                </td>
                <td class="number">{formatDuration(each.average)}</td>
              </tr>
            ))}
            <tr>
              <td />
              <td>the engine: starting tasks, moving data</td>
              <td class="phase">
                <span class="phase-bar rest" style={share(rest)} />
                {formatDuration(rest)}
              </td>
              <td />
            </tr>
          </tbody>
        </table>
      </div>
    </section>
  );
}
