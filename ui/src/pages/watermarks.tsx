import { usePolling } from "../api";
import { formatDuration, formatTime, formatWatermark, watermarkLag } from "../format";
import { Empty, Loaded } from "../parts/basics";
import { jobLink } from "../route";
import type { SourceSplits, VertexWatermark, Watermarks } from "../types";

export function WatermarksPage({ job }: { job: string }) {
  const watermarks = usePolling<Watermarks>(`jobs/${job}/millstream/watermarks`);
  return (
    <Loaded polled={watermarks}>
      {({ now, vertices, sources }) => (
        <>
          <VertexTable job={job} vertices={vertices} now={now} />
          <h2>Source splits</h2>
          {sources.length === 0 && <Empty title="None">Splits appear with the first epoch.</Empty>}
          {sources.map((source) => (
            <SplitTable key={source.operator} source={source} now={now} />
          ))}
        </>
      )}
    </Loaded>
  );
}

function VertexTable({ job, vertices, now }: { job: string; vertices: VertexWatermark[]; now: number }) {
  return (
    <section>
      <h2>What holds each operator back</h2>
      <div class="scroll" tabIndex={0} role="region" aria-label="Watermarks">
        <table>
          <thead>
            <tr>
              <th scope="col">Chain</th>
              <th scope="col">Watermark</th>
              <th scope="col" class="number">
                Behind the clock
              </th>
              <th scope="col">Held back by</th>
            </tr>
          </thead>
          <tbody>
            {vertices.map((vertex) => (
              <tr key={vertex.id}>
                <td class="wide">
                  <a href={jobLink(job, "graph", vertex.id)}>{vertex.name}</a>
                </td>
                <td>{formatWatermark(vertex.watermark)}</td>
                <td class="number">{formatBehind(vertex.watermark, now)}</td>
                <td class="wide">{describeHolder(vertex)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

/** What holds a vertex back, in words. */
export function describeHolder({ heldBy, watermark }: VertexWatermark): string {
  if (heldBy === null) return watermark > 0 ? "nothing: the input has ended" : "nothing: there are no watermarks";
  if (heldBy.split === null) return heldBy.name;
  return `${heldBy.name}, split ${heldBy.split.split}, last read ${formatTime(heldBy.split.activeAt)}`;
}

function formatBehind(watermark: number, now: number): string {
  const lag = watermarkLag(watermark, now);
  if (lag === null) return "–";
  return lag < 0 ? `${formatDuration(-lag)} ahead` : formatDuration(lag);
}

function SplitTable({ source, now }: { source: SourceSplits; now: number }) {
  return (
    <section>
      <h3>
        {source.name} <span class="count">{source.total}</span>
      </h3>
      {source.splits.length === 0 ? (
        <Empty title="No splits">The source has been read to its end, or nothing of it has been read yet.</Empty>
      ) : (
        <div class="scroll" tabIndex={0} role="region" aria-label="Watermarks">
          <table>
            <thead>
              <tr>
                <th scope="col">Split</th>
                <th scope="col" class="number">
                  Subtask
                </th>
                <th scope="col">Watermark</th>
                <th scope="col" class="number">
                  Behind the clock
                </th>
                <th scope="col">Last read</th>
              </tr>
            </thead>
            <tbody>
              {source.splits.map((split) => (
                <tr key={split.split}>
                  <td class="wide">
                    <code>{split.split}</code>
                  </td>
                  <td class="number">{split.subtask}</td>
                  <td>{split.watermark === null ? "idle: it holds nothing back" : formatWatermark(split.watermark)}</td>
                  <td class="number">{split.watermark === null ? "–" : formatBehind(split.watermark, now)}</td>
                  <td>{formatTime(split.activeAt)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {source.total > source.splits.length && <p class="facts">The {source.splits.length} slowest splits are shown.</p>}
    </section>
  );
}
