import { usePolling } from "../api";
import { formatBytes, formatDuration, formatTime } from "../format";
import { Empty, Loaded, State, Tile } from "../parts/basics";
import { Chart } from "../parts/chart";
import { CompareSnapshots } from "../parts/compare-snapshots";
import { startLink } from "../route";
import type { Checkpoint, CheckpointConfiguration, Checkpoints } from "../types";

export function CheckpointsPage({ job, isSession }: { job: string; isSession: boolean }) {
  const checkpoints = usePolling<Checkpoints>(`jobs/${job}/checkpoints`);
  const configuration = usePolling<CheckpointConfiguration>(`jobs/${job}/checkpoints/config`, 60_000);
  return (
    <Loaded polled={checkpoints}>
      {({ counts, latest, history }) => (
        <>
          <Summary counts={counts} newest={history.find(isCheckpoint)} />
          {latest.restored !== null && (
            <p class="facts">
              Restored {formatTime(latest.restored.restore_timestamp)} from <code>{latest.restored.external_path}</code>
            </p>
          )}
          {history.length === 0 ? (
            <Empty title="No checkpoints yet">
              {configuration.data?.interval === 0
                ? "Checkpoints are off. Set execution.checkpointing.interval, or take a savepoint with the button above."
                : "The first one is taken after the checkpoint interval."}
            </Empty>
          ) : (
            <>
              <Charts history={history} />
              <History history={history} isSession={isSession} />
              <CompareSnapshots job={job} />
            </>
          )}
          {configuration.data !== null && <Configuration configuration={configuration.data} />}
        </>
      )}
    </Loaded>
  );
}

function isCheckpoint(each: Checkpoint): boolean {
  return each.status === "COMPLETED" && !each.is_savepoint;
}

function Summary({ counts, newest }: { counts: Record<string, number>; newest: Checkpoint | undefined }) {
  return (
    <dl class="tiles">
      <Tile label="Completed" value={String(counts["completed"] ?? 0)} />
      <Tile label="Failed" value={String(counts["failed"] ?? 0)} />
      <Tile label="Restored" value={String(counts["restored"] ?? 0)} />
      <Tile
        label="Last checkpoint"
        value={newest === undefined ? "none yet" : formatDuration(newest.end_to_end_duration)}
        detail={newest === undefined ? undefined : `number ${newest.id}`}
      />
      <Tile
        label="State"
        value={newest === undefined ? "–" : formatBytes(newest.state_size)}
        detail={newest === undefined ? undefined : `${formatBytes(newest.checkpointed_size)} new`}
      />
    </dl>
  );
}

function Charts({ history }: { history: Checkpoint[] }) {
  const oldestFirst = history.filter(isCheckpoint).reverse();
  const points = (value: (checkpoint: Checkpoint) => number) =>
    oldestFirst.map((checkpoint) => ({ time: checkpoint.latest_ack_timestamp, value: value(checkpoint) }));
  return (
    <div class="charts">
      <Chart title="Duration" points={points((each) => each.end_to_end_duration)} format={formatDuration} />
      <Chart title="Size of the whole state" points={points((each) => each.state_size)} format={formatBytes} />
      <Chart title="New in each checkpoint" points={points((each) => each.checkpointed_size)} format={formatBytes} />
    </div>
  );
}

function History({ history, isSession }: { history: Checkpoint[]; isSession: boolean }) {
  return (
    <section>
      <h2>History</h2>
      <div class="scroll" tabIndex={0} role="region" aria-label="History of checkpoints">
        <table>
          <thead>
            <tr>
              <th scope="col" class="number">
                Number
              </th>
              <th scope="col">Status</th>
              <th scope="col">Completed</th>
              <th scope="col" class="number">
                Duration
              </th>
              <th scope="col" class="number">
                New
              </th>
              <th scope="col" class="number">
                Whole state
              </th>
              <th scope="col">Path</th>
            </tr>
          </thead>
          <tbody>
            {history.map((checkpoint) => (
              <tr key={`${checkpoint.id}-${checkpoint.trigger_timestamp}`}>
                <th scope="row" class="number">
                  {checkpoint.id}
                </th>
                <td>
                  <State state={checkpoint.is_savepoint ? "savepoint" : checkpoint.status} />
                </td>
                <td>{formatTime(checkpoint.latest_ack_timestamp)}</td>
                <td class="number">{formatDuration(checkpoint.end_to_end_duration)}</td>
                <td class="number">{formatBytes(checkpoint.checkpointed_size)}</td>
                <td class="number">{formatBytes(checkpoint.state_size)}</td>
                <td class="wide">
                  {checkpoint.failure_message ? checkpoint.failure_message : <code>{checkpoint.external_path}</code>}{" "}
                  {isSession && checkpoint.external_path && (
                    <a href={startLink(checkpoint.external_path)} aria-label={`Start a program from number ${checkpoint.id}`}>
                      Start from it
                    </a>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Configuration({ configuration }: { configuration: CheckpointConfiguration }) {
  const retention = configuration.externalization.delete_on_cancellation
    ? "deleted when the job is cancelled"
    : configuration.externalization.enabled
      ? "kept when the job is cancelled"
      : "not kept after the job";
  const rows: [string, string][] = [
    ["Mode", configuration.mode.replaceAll("_", " ")],
    ["Interval", configuration.interval === 0 ? "off" : formatDuration(configuration.interval)],
    ["Timeout", formatDuration(configuration.timeout)],
    ["Least pause between two", formatDuration(configuration.min_pause)],
    ["Failures tolerated", String(configuration.tolerable_failed_checkpoints)],
    ["State backend", configuration.state_backend],
    ["Storage", configuration.checkpoint_storage || "not set"],
    ["Checkpoints are", retention],
  ];
  return (
    <section>
      <h2>Configuration</h2>
      <dl class="pairs">
        {rows.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
