// A small line chart of one value over time.

import { formatClock } from "../format";

const WIDTH = 320;
const HEIGHT = 88;

export interface Point {
  time: number;
  value: number;
}

export function Chart(props: {
  title: string;
  points: Point[];
  format: (value: number) => string;
  /** What is said before there are two points. */
  empty?: string;
}) {
  const { points, format } = props;
  const last = points.at(-1);
  const top = Math.max(...points.map((point) => point.value), 0);
  return (
    <figure class="chart">
      <figcaption>
        {props.title} <strong>{last === undefined ? "–" : format(last.value)}</strong>
      </figcaption>
      {points.length < 2 ? (
        <p class="loading">{props.empty ?? "Two samples are needed; one is taken every ten seconds."}</p>
      ) : (
        <>
          <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={describe(props)}>
            <path class="area" d={`${line(points, top)} L${WIDTH},${HEIGHT} L0,${HEIGHT} Z`} />
            <path class="line" d={line(points, top)} />
          </svg>
          <div class="axis" aria-hidden="true">
            <span>{formatClock(points[0]!.time)}</span>
            <span>at most {format(top)}</span>
            <span>{formatClock(last!.time)}</span>
          </div>
        </>
      )}
    </figure>
  );
}

function line(points: Point[], top: number): string {
  const start = points[0]!.time;
  const span = Math.max(1, points.at(-1)!.time - start);
  const place = (point: Point) => {
    const x = ((point.time - start) / span) * WIDTH;
    const y = HEIGHT - 2 - (point.value / Math.max(top, 1e-9)) * (HEIGHT - 6);
    return `${x.toFixed(1)},${y.toFixed(1)}`;
  };
  return `M${points.map(place).join(" L")}`;
}

function describe({ title, points, format }: { title: string; points: Point[]; format: (value: number) => string }) {
  const values = points.map((point) => point.value);
  return `${title}: from ${format(Math.min(...values))} to ${format(Math.max(...values))}, now ${format(values.at(-1)!)}`;
}

/** The increase per second between samples of a counter; a counter that was reset begins again. */
export function rates(times: number[], counts: (number | null)[]): Point[] {
  const points: Point[] = [];
  for (let index = 1; index < times.length; index += 1) {
    const [before, after] = [counts[index - 1], counts[index]];
    const elapsed = (times[index]! - times[index - 1]!) / 1000;
    if (before == null || after == null || elapsed <= 0) continue;
    points.push({ time: times[index]!, value: Math.max(0, after - before) / elapsed });
  }
  return points;
}

export function samples(times: number[], values: (number | null)[]): Point[] {
  return times.flatMap((time, index) => (values[index] == null ? [] : [{ time, value: values[index]! }]));
}
