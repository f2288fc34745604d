// Where the tasks of a vertex spend their time: the width of a call is the share of samples in which it was seen.

import { useState } from "preact/hooks";
import { usePolling } from "../api";
import { formatExact, formatPercent, formatTime } from "../format";
import type { FlameAnswer, FlameNode, Vertex } from "../types";
import { Empty, Loaded } from "./basics";

const LEAST_SHARE = 0.004;
const ROW = 24;
const TYPES = { full: "all", on_cpu: "computing", off_cpu: "waiting" } as const;
const [TERMINATED, DISABLED] = [-1, -2];

type Type = keyof typeof TYPES;

export function FlameGraph({ job, vertex }: { job: string; vertex: Vertex }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Flame graph: where the time goes</summary>
      {isOpen && <Sampled job={job} vertex={vertex} />}
    </details>
  );
}

function Sampled({ job, vertex }: { job: string; vertex: Vertex }) {
  const [type, setType] = useState<Type>("full");
  const [subtask, setSubtask] = useState("");
  const only = subtask === "" ? "" : `&subtaskindex=${subtask}`;
  const answer = usePolling<FlameAnswer>(`jobs/${job}/vertices/${vertex.id}/flamegraph?type=${type}${only}`);
  return (
    <>
      <div class="fields">
        <label>
          Samples
          <select value={type} onChange={(event) => setType(event.currentTarget.value as Type)}>
            {Object.entries(TYPES).map(([name, label]) => (
              <option key={name} value={name}>
                {label}
              </option>
            ))}
          </select>
        </label>
        <label>
          Subtask
          <select value={subtask} onChange={(event) => setSubtask(event.currentTarget.value)}>
            <option value="">all</option>
            {Array.from({ length: vertex.parallelism }, (_, index) => (
              <option key={index} value={String(index)}>
                {index}
              </option>
            ))}
          </select>
        </label>
      </div>
      <Loaded polled={answer}>
        {({ data, endTimestamp }) => {
          if (endTimestamp === TERMINATED) return <Empty title="The job has ended">Only running tasks are sampled.</Empty>;
          if (endTimestamp === DISABLED) {
            return (
              <Empty title="Flame graphs are switched off">
                Set <code>rest.flamegraph.enabled</code> to true and start the job again.
              </Empty>
            );
          }
          if (data === null) return <p class="loading">Waiting for the first samples…</p>;
          if (data.value === 0) return <Empty title="No such samples">The tasks did not do this in the last minute.</Empty>;
          return <Frames root={data} time={endTimestamp} />;
        }}
      </Loaded>
    </>
  );
}

interface Frame {
  node: FlameNode;
  path: string[];
  depth: number;
  left: number;
  width: number;
}

function Frames({ root, time }: { root: FlameNode; time: number }) {
  const [focus, setFocus] = useState<string[]>([]);
  const focused = find(root, focus) ?? root;
  const frames: Frame[] = [];
  place(focused, focused === root ? [] : focus, 0, 0, 1, frames);
  const depth = Math.max(...frames.map((frame) => frame.depth)) + 1;
  return (
    <>
      <p class="hint">
        {formatExact(root.value)} samples until {formatTime(time)}. Calls of your program and of libraries are coloured.
        {focused !== root && (
          <>
            {" "}
            <button class="link" onClick={() => setFocus([])}>
              Show all
            </button>
          </>
        )}
      </p>
      <div class="flames" style={{ height: `${depth * ROW}px` }} role="group" aria-label="Flame graph">
        {frames.map(({ node, path, depth: row, left, width }) => (
          <button
            key={path.join("\n")}
            class={`flame ${isOwn(node.name) ? "" : "user"}`}
            style={{ top: `${row * ROW}px`, left: `${left * 100}%`, width: `${width * 100}%` }}
            title={`${node.name}: ${formatPercent(node.value / root.value)}, ${formatExact(node.value)} samples`}
            onClick={() => setFocus(path)}
          >
            {node.name}
          </button>
        ))}
      </div>
      <TopFunctions root={root} />
    </>
  );
}

function TopFunctions({ root }: { root: FlameNode }) {
  const own = new Map<string, number>();
  const visit = (node: FlameNode) => {
    const inside = node.children.reduce((sum, child) => sum + child.value, 0);
    if (node.value > inside && node !== root) own.set(node.name, (own.get(node.name) ?? 0) + node.value - inside);
    node.children.forEach(visit);
  };
  visit(root);
  const top = [...own].sort((one, other) => other[1] - one[1]).slice(0, 8);
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Functions with the most samples">
      <table>
        <thead>
          <tr>
            <th scope="col">Function</th>
            <th scope="col" class="number">
              Samples in itself
            </th>
          </tr>
        </thead>
        <tbody>
          {top.map(([name, count]) => (
            <tr key={name}>
              <td class="wide">
                <code>{name}</code>
              </td>
              <td class="number">{formatPercent(count / root.value)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Whether a call is one of millstream itself, as its place in the sources says. */
function isOwn(name: string): boolean {
  return name === "root" || name.includes("(millstream/");
}

function find(root: FlameNode, path: string[]): FlameNode | undefined {
  return path.reduce<FlameNode | undefined>((node, name) => node?.children.find((child) => child.name === name), root);
}

/** Calls that are too narrow to be seen are left out. */
function place(node: FlameNode, path: string[], depth: number, left: number, width: number, frames: Frame[]): void {
  frames.push({ node, path, depth, left, width });
  let start = left;
  for (const child of node.children) {
    const share = (child.value / node.value) * width;
    if (share >= LEAST_SHARE) place(child, [...path, child.name], depth + 1, start, share, frames);
    start += share;
  }
}
