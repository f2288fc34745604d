// The buttons that change a job: savepoint, rescale, stop and cancel, each with a dialog.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { request, useResource, waitFor } from "../api";
import { formatDuration } from "../format";
import { startLink } from "../route";
import type { ClusterOverview, Features, Graph, JobDetails } from "../types";
import { Dialog } from "./basics";

type Action = "savepoint" | "rescale" | "stop" | "cancel";

interface Outcome {
  isBad: boolean;
  text: string;
  path?: string;
}

const ENDING = ["FINISHED", "CANCELED", "FAILED", "CANCELLING", "FAILING"];

export function Actions(props: {
  job: JobDetails;
  graph: Graph | null;
  isSession: boolean;
  features: Features;
  onDone: () => void;
}) {
  const { job, graph, features, onDone } = props;
  const [open, setOpen] = useState<Action | null>(null);
  const [isBusy, setBusy] = useState(false);
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const isOver = ENDING.includes(job.state);

  const carryOut = async (progress: string, act: () => Promise<Outcome>) => {
    setOpen(null);
    setBusy(true);
    setOutcome({ isBad: false, text: progress });
    try {
      setOutcome(await act());
    } catch (problem) {
      setOutcome({ isBad: true, text: problem instanceof Error ? problem.message : String(problem) });
    }
    setBusy(false);
    onDone();
  };
  const close = () => setOpen(null);

  return (
    <div class="actions">
      {!isOver && (
        <div class="buttons">
          <button disabled={isBusy || !job.isStoppable} onClick={() => setOpen("savepoint")}>
            Savepoint
          </button>
          {features["web-rescale"] !== false && (
            <button disabled={isBusy || !job.isStoppable || graph === null} onClick={() => setOpen("rescale")}>
              Rescale
            </button>
          )}
          {features["web-cancel"] !== false && (
            <>
              <button disabled={isBusy || !job.isStoppable} onClick={() => setOpen("stop")}>
                Stop
              </button>
              <button class="danger" disabled={isBusy} onClick={() => setOpen("cancel")}>
                Cancel
              </button>
            </>
          )}
        </div>
      )}
      <div role="status" aria-live="polite">
        {outcome !== null && (
          <p class={outcome.isBad ? "notice bad" : "notice"}>
            <span>
              {outcome.text} {outcome.path !== undefined && <code>{outcome.path}</code>}{" "}
              {outcome.path !== undefined && props.isSession && <a href={startLink(outcome.path)}>Start a program from it</a>}
            </span>
            <button class="quiet" aria-label="Dismiss" onClick={() => setOutcome(null)}>
              ×
            </button>
          </p>
        )}
      </div>
      {open === "savepoint" && (
        <SavepointDialog
          title="Take a savepoint"
          verb="Take savepoint"
          onClose={close}
          onSubmit={(fields) =>
            void carryOut("Writing the savepoint…", async () => {
              const body = { "target-directory": fields.directory, formatType: fields.format };
              return { isBad: false, text: "Savepoint:", path: await trigger(job.jid, "savepoints", body) };
            })
          }
        >
          The job goes on. A savepoint is kept until you delete it.
        </SavepointDialog>
      )}
      {open === "stop" && (
        <SavepointDialog
          title="Stop with a savepoint"
          verb="Stop job"
          withDrain
          onClose={close}
          onSubmit={(fields) =>
            void carryOut("Stopping the job…", async () => {
              const body = { targetDirectory: fields.directory, formatType: fields.format, drain: fields.drain };
              return { isBad: false, text: "Stopped. Savepoint:", path: await trigger(job.jid, "stop", body) };
            })
          }
        >
          The job writes a savepoint and finishes. Start it again from the savepoint with <code>millstream run -s</code>.
        </SavepointDialog>
      )}
      {open === "rescale" && graph !== null && (
        <RescaleDialog
          graph={graph}
          isSession={props.isSession}
          onClose={close}
          onSubmit={(parallelism) =>
            void carryOut("Rescaling the job…", async () => {
              const { slots, pause } = await rescale(job.jid, parallelism);
              const unit = slots === 1 ? "slot" : "slots";
              return { isBad: false, text: `The job runs in ${slots} ${unit}. It paused for ${formatDuration(pause)}.` };
            })
          }
        />
      )}
      {open === "cancel" && (
        <Dialog title={`Cancel ${job.name}?`} onClose={close}>
          <p>
            The job ends at once, without a savepoint. To go on later, stop it instead. Its checkpoints are kept or
            deleted as the option <code>execution.checkpointing.externalized-checkpoint-retention</code> says.
          </p>
          <div class="buttons">
            <button onClick={close}>Keep running</button>
            <button
              class="danger"
              onClick={() =>
                void carryOut("Cancelling the job…", async () => {
                  await request("PATCH", `jobs/${job.jid}?mode=cancel`);
                  return { isBad: false, text: "The job is being cancelled." };
                })
              }
            >
              Cancel job
            </button>
          </div>
        </Dialog>
      )}
    </div>
  );
}

async function trigger(job: string, resource: string, body: unknown): Promise<string> {
  const answer = await request<{ "request-id": string }>("POST", `jobs/${job}/${resource}`, body);
  const operation = await waitFor<{ location: string }>(`jobs/${job}/savepoints/${answer["request-id"]}`);
  return operation.location;
}

interface Rescaled {
  slots: number;
  pause: number;
}

async function rescale(job: string, parallelism: number): Promise<Rescaled> {
  const answer = await request<{ "request-id": string }>("POST", `jobs/${job}/rescale`, { parallelism });
  return waitFor<Rescaled>(`jobs/${job}/rescale/${answer["request-id"]}`);
}

const MOST_SLOTS = 64;

function RescaleDialog(props: {
  graph: Graph;
  isSession: boolean;
  onClose: () => void;
  onSubmit: (parallelism: number) => void;
}) {
  const { graph } = props;
  const cluster = useResource<ClusterOverview>(props.isSession ? "overview" : null);
  const free = cluster.data?.["slots-available"];
  const [parallelism, setParallelism] = useState(graph.slots);
  const limit = Math.min(...graph.vertices.map((vertex) => vertex.maxParallelism));
  // Jobs of a session cluster share its slots.
  const most = Math.min(limit, free === undefined ? Math.max(MOST_SLOTS, 2 * graph.slots) : graph.slots + free);
  const submit = (event: Event) => {
    event.preventDefault();
    props.onSubmit(parallelism);
  };
  return (
    <Dialog title="Rescale the job" onClose={props.onClose}>
      <form onSubmit={submit}>
        <p>
          Operators whose parallelism the program does not set get the new one. The job pauses between two epochs while
          state is assigned to other subtasks; nothing is lost.
          {free !== undefined && ` The cluster has ${free} free ${free === 1 ? "slot" : "slots"}.`}
        </p>
        <label>
          Parallelism: <output>{parallelism}</output>
          <input
            type="range"
            min="1"
            max={most}
            value={parallelism}
            onInput={(event) => setParallelism(Number(event.currentTarget.value))}
          />
        </label>
        <div class="buttons">
          <button type="button" onClick={props.onClose}>
            Close
          </button>
          <button class="primary" disabled={parallelism === graph.slots}>
            Rescale job
          </button>
        </div>
      </form>
    </Dialog>
  );
}

interface Fields {
  directory: string | null;
  format: "CANONICAL" | "NATIVE";
  drain: boolean;
}

function SavepointDialog(props: {
  title: string;
  verb: string;
  withDrain?: boolean;
  onClose: () => void;
  onSubmit: (fields: Fields) => void;
  children: ComponentChildren;
}) {
  const [directory, setDirectory] = useState("");
  const [format, setFormat] = useState<Fields["format"]>("CANONICAL");
  const [drain, setDrain] = useState(false);
  const submit = (event: Event) => {
    event.preventDefault();
    props.onSubmit({ directory: directory.trim() || null, format, drain });
  };
  return (
    <Dialog title={props.title} onClose={props.onClose}>
      <form onSubmit={submit}>
        <p>{props.children}</p>
        <label>
          Directory
          <input
            name="directory"
            value={directory}
            placeholder="as execution.checkpointing.savepoint-dir says"
            onInput={(event) => setDirectory(event.currentTarget.value)}
          />
        </label>
        <label>
          Format
          <select
            value={format}
            onChange={(event) => setFormat(event.currentTarget.value === "NATIVE" ? "NATIVE" : "CANONICAL")}
          >
            <option value="CANONICAL">canonical</option>
            <option value="NATIVE">native</option>
          </select>
        </label>
        {props.withDrain && (
          <label class="check">
            <input type="checkbox" checked={drain} onChange={(event) => setDrain(event.currentTarget.checked)} />
            Drain: emit all windows and timers first, as at the end of the input
          </label>
        )}
        <div class="buttons">
          <button type="button" onClick={props.onClose}>
            Close
          </button>
          <button class="primary">{props.verb}</button>
        </div>
      </form>
    </Dialog>
  );
}
