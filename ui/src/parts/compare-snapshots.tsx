// Two checkpoints or savepoints of a job, compared by operator and state.

import { useState } from "preact/hooks";
import { usePolling, useResource } from "../api";
import { formatBytes, formatExact, formatTime } from "../format";
import type { ComparedOperator, Comparison, ListedSnapshot } from "../types";
import { Loaded } from "./basics";

export function CompareSnapshots({ job }: { job: string }) {
  const listed = usePolling<ListedSnapshot[]>(`jobs/${job}/millstream/snapshots`, 10_000);
  const [before, setBefore] = useState("");
  const [after, setAfter] = useState("latest");
  const [chosen, setChosen] = useState<{ before: string; after: string; turn: number } | null>(null);
  const snapshots = listed.data ?? [];
  const first = before || (snapshots.at(-1)?.name ?? "");
  const compare = (event: Event) => {
    event.preventDefault();
    setChosen({ before: first, after, turn: (chosen?.turn ?? 0) + 1 });
  };
  return (
    <section>
      <h2>Compare two snapshots</h2>
      <form class="fields" onSubmit={compare}>
        <SnapshotSelect label="Before" snapshots={snapshots} value={first} onChange={setBefore} />
        <SnapshotSelect label="After" snapshots={snapshots} value={after} onChange={setAfter} withLatest />
        <button disabled={first === ""}>Compare</button>
      </form>
      {chosen === null ? (
        <p class="hint">
          Take a savepoint to keep a state for comparison: a newer checkpoint replaces older ones, unless{" "}
          <code>execution.checkpointing.num-retained</code> is greater than 1.
        </p>
      ) : (
        <Result key={chosen.turn} job={job} before={chosen.before} after={chosen.after} />
      )}
    </section>
  );
}

export function SnapshotSelect(props: {
  label: string;
  snapshots: ListedSnapshot[];
  value: string;
  onChange: (name: string) => void;
  withLatest?: boolean;
}) {
  const isListed = props.value === "latest" || props.snapshots.some((snapshot) => snapshot.name === props.value);
  return (
    <label>
      {props.label}
      <select value={props.value} onChange={(event) => props.onChange(event.currentTarget.value)}>
        {props.withLatest === true && <option value="latest">newest checkpoint</option>}
        {!isListed && props.value !== "" && <option value={props.value}>{props.value} (replaced)</option>}
        {props.snapshots.map((snapshot) => (
          <option key={snapshot.name} value={snapshot.name}>
            {describeSnapshot(snapshot)}
          </option>
        ))}
      </select>
    </label>
  );
}

function describeSnapshot({ name, path, kind, time }: ListedSnapshot): string {
  if (kind === "checkpoint") return time === null ? name : `${name}, ${formatTime(time)}`;
  return `${name.replace("started-from", "the job started from")}: ${path.split("/").at(-1)}`;
}

function Result({ job, before, after }: { job: string; before: string; after: string }) {
  const query = `jobs/${job}/millstream/snapshots/${after}/comparison?before=${encodeURIComponent(before)}`;
  const comparison = useResource<Comparison>(query);
  return (
    <Loaded polled={comparison}>
      {(shown) => (
        <>
          <h3>
            From {shown.before} to {shown.after}
          </h3>
          {!shown.complete && (
            <p class="notice">
              Some states are too large to compare their entries here. Compare them with <code>millstream state diff</code>.
            </p>
          )}
          <div class="scroll" tabIndex={0} role="region" aria-label="Comparison">
            <table>
              <thead>
                <tr>
                  <th scope="col">Operator</th>
                  <th scope="col">State</th>
                  {["Size before", "Size after", "Keys before", "Keys after", "Added", "Removed", "Changed"].map((name) => (
                    <th key={name} scope="col" class="number">
                      {name}
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {shown.operators.map((operator) => (
                  <OperatorRows key={operator.id} operator={operator} />
                ))}
              </tbody>
            </table>
          </div>
        </>
      )}
    </Loaded>
  );
}

function OperatorRows({ operator }: { operator: ComparedOperator }) {
  const size = (bytes: number | null) => (bytes === null ? "not there" : formatBytes(bytes));
  const states = operator.states.length === 0 ? [null] : operator.states;
  return (
    <>
      {states.map((state, index) => (
        <tr key={state?.state ?? ""}>
          <td class="wide">{index === 0 ? operator.name : ""}</td>
          <td>{state === null ? "no state" : <code>{state.name}</code>}</td>
          <td class="number">{index === 0 ? size(operator.bytesBefore) : ""}</td>
          <td class="number">{index === 0 ? size(operator.bytesAfter) : ""}</td>
          {(["before", "after", "added", "removed", "changed"] as const).map((name) => (
            <td key={name} class="number">
              {state === null ? "" : formatMaybe(state[name])}
            </td>
          ))}
        </tr>
      ))}
    </>
  );
}

function formatMaybe(count: number | null): string {
  return count === null ? "too many" : formatExact(count);
}
