// Why an epoch took as long as it did, as a sentence.

import { formatDuration, formatPercent } from "./format";
import type { Epoch, Vertex } from "./types";

export interface Slowest {
  vertex: Vertex;
  longest: number;
  subtask: number;
  average: number;
}

/** The vertices of an epoch by the time of their slowest subtask, longest first. */
export function slowestVertices(epoch: Epoch, vertices: Vertex[]): Slowest[] {
  return vertices
    .flatMap((vertex) => {
      const time = epoch.vertices[vertex.id];
      return time === undefined ? [] : [{ vertex, ...time }];
    })
    .sort((one, other) => other.longest - one.longest);
}

/** The time that no subtask worked: planning of tasks, shuffles, and starting Python. Levels run one after another. */
export function overhead(epoch: Epoch, vertices: Vertex[]): number {
  const levels = new Map<number, number>();
  for (const { vertex, longest } of slowestVertices(epoch, vertices)) {
    levels.set(vertex.level, Math.max(levels.get(vertex.level) ?? 0, longest));
  }
  const worked = [...levels.values()].reduce((sum, time) => sum + time, 0);
  return Math.max(0, epoch.duration - worked);
}

export function explainEpoch(epoch: Epoch, vertices: Vertex[]): string {
  const [slowest] = slowestVertices(epoch, vertices);
  const rest = overhead(epoch, vertices);
  if (slowest === undefined || slowest.longest === 0) return "No subtask reported work.";
  if (rest > slowest.longest) {
    return (
      `${formatPercent(rest / epoch.duration)} of its time is the engine's: starting tasks and moving data between ` +
      "levels. Larger epochs spread this over more records."
    );
  }
  const sentence = `“${slowest.vertex.name}” took longest: ${formatDuration(slowest.longest)} in subtask ${slowest.subtask}.`;
  if (slowest.longest > 2 * slowest.average && slowest.vertex.parallelism > 1) {
    return `${sentence} Its subtasks took ${formatDuration(slowest.average)} on average: the load is skewed.`;
  }
  return sentence;
}
