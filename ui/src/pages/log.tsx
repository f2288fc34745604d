// The log of the process of a job, and what its tasks print, followed live.

import { useEffect, useRef, useState } from "preact/hooks";
import { RequestFailed, request } from "../api";
import { formatExact, formatTime } from "../format";
import { Empty } from "../parts/basics";
import type { Line } from "../types";

const KEPT = 2_000;
const PAUSE = 1_500;

export function LogPage({ job }: { job: string }) {
  const [lines, setLines] = useState<Line[] | null>(null);
  const [error, setError] = useState<RequestFailed | null>(null);
  const [follows, setFollows] = useState(true);
  const [search, setSearch] = useState("");
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    let isOver = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let last = 0;
    const poll = async () => {
      try {
        const newer = document.hidden ? [] : await request<Line[]>("GET", `jobs/${job}/millstream/log?after=${last}&limit=${KEPT}`);
        if (isOver) return;
        last = newer.at(-1)?.number ?? last;
        setLines((before) => (newer.length === 0 && before !== null ? before : [...(before ?? []), ...newer].slice(-KEPT)));
        setError(null);
      } catch (problem) {
        if (!isOver) setError(problem instanceof RequestFailed ? problem : new RequestFailed(0, String(problem)));
      }
      if (!isOver) timer = setTimeout(poll, PAUSE);
    };
    void poll();
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [job]);
  useEffect(() => {
    if (follows && box.current !== null) box.current.scrollTop = box.current.scrollHeight;
  }, [lines, follows]);
  const wanted = search.toLowerCase();
  const shown = (lines ?? []).filter((line) => `${line.source} ${line.level} ${line.text}`.toLowerCase().includes(wanted));
  return (
    <section aria-label="Log">
      {error !== null && (
        <div class="notice bad" role="alert">
          {error.message}
        </div>
      )}
      <div class="fields">
        <label>
          Search
          <input type="search" value={search} placeholder="in the lines below" onInput={(event) => setSearch(event.currentTarget.value)} />
        </label>
        <label class="check">
          <input type="checkbox" checked={follows} onChange={(event) => setFollows(event.currentTarget.checked)} /> Follow new lines
        </label>
        <span class="hint">
          {formatExact(shown.length)} of the newest {formatExact(lines?.length ?? 0)} lines
        </span>
      </div>
      {lines === null && error === null && <p class="loading">Loading…</p>}
      {lines !== null && shown.length === 0 ? (
        <Empty title="No lines">{search === "" ? "What the process logs and what tasks print appears here." : "No line matches."}</Empty>
      ) : (
        <div class="log" ref={box} tabIndex={0} role="log" aria-label="Log lines" aria-live="off">
          {shown.map((line) => (
            <div key={line.number} class={`log-line log-${line.level.toLowerCase()}`}>
              <time>{formatTime(line.time)}</time> <span class="log-source">{line.source}</span> <span class="log-text">{line.text}</span>
            </div>
          ))}
        </div>
      )}
    </section>
  );
}
