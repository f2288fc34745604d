import { usePolling } from "../api";
import { formatTime } from "../format";
import { Empty, Loaded } from "../parts/basics";
import { parseTraceback } from "../traceback";
import type { ExceptionEntry, Exceptions } from "../types";

export function ExceptionsPage({ job }: { job: string }) {
  const exceptions = usePolling<Exceptions>(`jobs/${job}/exceptions`);
  return (
    <Loaded polled={exceptions}>
      {({ exceptionHistory: { entries, truncated } }) =>
        entries.length === 0 ? (
          <Empty title="No failures">The job has not failed or restarted since it was started.</Empty>
        ) : (
          <>
            <h2>
              Failures <span class="count">{entries.length}</span>
            </h2>
            {entries.map((entry) => (
              <Failure key={entry.timestamp} entry={entry} />
            ))}
            {truncated && <p class="notice">Older failures are not shown.</p>}
          </>
        )
      }
    </Loaded>
  );
}

function Failure({ entry }: { entry: ExceptionEntry }) {
  const { message, context, userFrame } = parseTraceback(entry.stacktrace);
  return (
    <article class="panel failure">
      <h3>{message}</h3>
      {context !== "" && <p class="context">{context}</p>}
      <p class="facts">
        {formatTime(entry.timestamp)}
        {entry.taskName !== null && `, in ${entry.taskName}`}
      </p>
      {userFrame !== null && (
        <p class="frame">
          <code>{userFrame.code || userFrame.function}</code>
          <span>
            {userFrame.file}, line {userFrame.line}, in {userFrame.function}
          </span>
        </p>
      )}
      <details>
        <summary>The whole report</summary>
        <pre tabIndex={0}>{entry.stacktrace}</pre>
      </details>
    </article>
  );
}
