// The entries of the state of a checkpoint or savepoint: by operator, state, key and text, a page at a time.

import { useState } from "preact/hooks";
import { usePolling, useResource } from "../api";
import { formatBytes, formatCount, formatExact, formatTime } from "../format";
import { Empty, Loaded } from "../parts/basics";
import { SnapshotSelect } from "../parts/compare-snapshots";
import { jobLink } from "../route";
import type { DescribedState, ListedSnapshot, OperatorStates, Snapshot, SnapshotOperator, StatePage as Page } from "../types";

const PAGE_SIZE = 50;

export function StatePage({ job, selected }: { job: string; selected: string | null }) {
  const listed = usePolling<ListedSnapshot[]>(`jobs/${job}/millstream/snapshots`, 10_000);
  const name = selected ?? "latest";
  const snapshot = useResource<Snapshot>(
    listed.data === null || listed.data.length === 0 ? null : `jobs/${job}/millstream/snapshots/${encodeURIComponent(name)}`,
  );
  return (
    <Loaded polled={listed}>
      {(snapshots) =>
        snapshots.length === 0 ? (
          <Empty title="No snapshot to read">
            Take a savepoint with the button above, or set execution.checkpointing.interval.
          </Empty>
        ) : (
          <>
            <div class="fields">
              <SnapshotSelect
                label="Checkpoint or savepoint"
                snapshots={snapshots}
                value={name}
                withLatest
                onChange={(chosen) => {
                  location.hash = jobLink(job, "state", chosen);
                }}
              />
              {name === "latest" && <button onClick={snapshot.reload}>Read the newest again</button>}
            </div>
            <Loaded polled={snapshot}>{(shown) => <Operators key={shown.name} job={job} snapshot={shown} />}</Loaded>
          </>
        )
      }
    </Loaded>
  );
}

function Operators({ job, snapshot }: { job: string; snapshot: Snapshot }) {
  const withState = snapshot.operators.filter((operator) => operator.files > 0);
  const [chosen, setChosen] = useState<string | null>(null);
  const operator = withState.find((each) => each.id === chosen) ?? withState[0];
  return (
    <>
      <p class="facts">
        {snapshot.name}, {formatTime(snapshot.time)}, epoch {formatCount(snapshot.epoch)}, {formatBytes(snapshot.bytes)} in{" "}
        <code>{snapshot.path}</code>
      </p>
      {operator === undefined ? (
        <Empty title="No state">No operator had state in this snapshot.</Empty>
      ) : (
        <>
          <div class="fields">
            <label>
              Operator
              <select value={operator.id} onChange={(event) => setChosen(event.currentTarget.value)}>
                {withState.map((each) => (
                  <option key={each.id} value={each.id}>
                    {each.name}
                    {each.uid === null ? "" : ` (${each.uid})`}, {formatBytes(each.bytes)}
                  </option>
                ))}
              </select>
            </label>
          </div>
          <States key={operator.id} job={job} snapshot={snapshot} operator={operator} />
        </>
      )}
    </>
  );
}

function States({ job, snapshot, operator }: { job: string; snapshot: Snapshot; operator: SnapshotOperator }) {
  const path = `jobs/${job}/millstream/snapshots/${snapshot.name}/operators/${operator.id}`;
  const states = useResource<OperatorStates>(path);
  const [chosen, setChosen] = useState<string | null>(null);
  return (
    <Loaded polled={states}>
      {({ states: all, complete }) => {
        const state = all.find((each) => each.state === chosen) ?? all.find((each) => each.kind !== "") ?? all[0];
        return (
          <>
            {!complete && (
              <p class="notice">This operator has many state files, and not all were looked at: some states may be missing.</p>
            )}
            {state === undefined ? (
              <Empty title="No entries">The state files of this operator are empty.</Empty>
            ) : (
              <>
                <StateTable states={all} selected={state.state} onSelect={setChosen} />
                <Entries key={state.state} path={path} state={state} />
              </>
            )}
          </>
        );
      }}
    </Loaded>
  );
}

function StateTable(props: { states: DescribedState[]; selected: string; onSelect: (state: string) => void }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="States of the operator">
      <table>
        <thead>
          <tr>
            <th scope="col">State</th>
            <th scope="col">Kind</th>
            <th scope="col" class="number">
              Entries
            </th>
            <th scope="col">Key</th>
            <th scope="col">Value</th>
          </tr>
        </thead>
        <tbody>
          {props.states.map((state) => (
            <tr key={state.state}>
              <td>
                <button
                  class="link"
                  aria-pressed={state.state === props.selected}
                  onClick={() => props.onSelect(state.state)}
                >
                  {state.name}
                </button>
              </td>
              <td>
                {state.kind === "" ? "internal" : state.kind}
                {state.ttl ? ", with a time to live" : ""}
              </td>
              <td class="number">{state.entries === null ? "many" : formatExact(state.entries)}</td>
              <td>
                <code>{state.keyType}</code>
              </td>
              <td class="wide">
                <code>{state.valueType}</code>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Entries({ path, state }: { path: string; state: DescribedState }) {
  const [key, setKey] = useState("");
  const [search, setSearch] = useState("");
  const [query, setQuery] = useState("");
  const [cursors, setCursors] = useState<string[]>([]);
  const cursor = cursors.at(-1) ?? "0.0.0";
  const page = useResource<Page>(
    `${path}/entries?state=${encodeURIComponent(state.state)}&limit=${PAGE_SIZE}&cursor=${cursor}${query}`,
  );
  const submit = (event: Event) => {
    event.preventDefault();
    setCursors([]);
    const byKey = key === "" ? "" : `&key=${encodeURIComponent(key)}`;
    setQuery(`${byKey}${search === "" ? "" : `&search=${encodeURIComponent(search)}`}`);
  };
  return (
    <section aria-label="Entries">
      <h2>
        Entries of <code>{state.name}</code>
      </h2>
      <form class="fields" onSubmit={submit}>
        {state.keyed && (
          <label>
            Key
            <input type="search" value={key} placeholder="exactly" onInput={(event) => setKey(event.currentTarget.value)} />
          </label>
        )}
        <label>
          Text
          <input
            type="search"
            value={search}
            placeholder="in key, window or value"
            onInput={(event) => setSearch(event.currentTarget.value)}
          />
        </label>
        <button>Find</button>
      </form>
      <Loaded polled={page}>
        {(shown) => (
          <>
            <EntryTable page={shown} isFiltered={query !== ""} />
            <div class="buttons pages">
              <button disabled={cursors.length === 0} onClick={() => setCursors(cursors.slice(0, -1))}>
                Previous
              </button>
              <button disabled={shown.next === null} onClick={() => setCursors([...cursors, shown.next!])}>
                Next
              </button>
              <span class="hint" role="status">
                {formatExact(shown.entries.length)} shown
                {query === "" ? "" : `, ${formatExact(shown.scanned)} searched`}
                {shown.next === null ? ", no more" : ""}
              </span>
            </div>
          </>
        )}
      </Loaded>
    </section>
  );
}

function EntryTable({ page, isFiltered }: { page: Page; isFiltered: boolean }) {
  const has = (field: "window" | "key" | "updated") => page.entries.some((entry) => entry[field] !== null);
  const columns = [has("window") ? "Window" : null, has("key") ? "Key" : null, "Value", has("updated") ? "Last write" : null];
  if (page.entries.length === 0) {
    return (
      <Empty title="Nothing found">
        {page.next !== null
          ? "Nothing in this part of the state. Next searches on."
          : isFiltered
            ? "No entry matches. The key is compared exactly, the text without regard to case."
            : "This state has no entries."}
      </Empty>
    );
  }
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Entries of the state">
      <table>
        <thead>
          <tr>
            {columns.map((name) => name !== null && <th key={name} scope="col">{name}</th>)}
            <th scope="col" class="number">
              Subtask
            </th>
          </tr>
        </thead>
        <tbody>
          {page.entries.map((entry, index) => (
            <tr key={index}>
              {has("window") && <td>{formatWindow(entry.window)}</td>}
              {has("key") && (
                <td class="wide">
                  <code>{entry.key}</code>
                </td>
              )}
              <td class="wide">
                <code>{entry.value}</code>
              </td>
              {has("updated") && <td>{entry.updated === null ? "–" : formatTime(entry.updated)}</td>}
              <td class="number">{entry.subtask}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** A window in time as times, any other as it is. */
function formatWindow(window: string | null): string {
  const bounds = /^(-?\d+) to (-?\d+)$/.exec(window ?? "");
  return bounds === null ? (window ?? "–") : `${formatTime(Number(bounds[1]))} to ${formatTime(Number(bounds[2]))}`;
}
