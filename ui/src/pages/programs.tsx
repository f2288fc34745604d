// The programs of a session cluster: run one, see why one failed, cancel one.

import { useEffect, useState } from "preact/hooks";
import { request, usePolling, useResource } from "../api";
import { formatDuration, formatTime, shortId } from "../format";
import { Dialog, Empty, Loaded, State } from "../parts/basics";
import { jobLink } from "../route";
import type { Features, JobOverview, Program, UploadedFile } from "../types";

/** `savepoint` is where a new program starts from, if the reader comes from a savepoint. */
export function ProgramsPage({ savepoint, features }: { savepoint: string | null; features: Features }) {
  const programs = usePolling<{ applications: Program[] }>("applications/overview");
  const jobs = usePolling<{ jobs: JobOverview[] }>("jobs/overview");
  const [isOpen, setOpen] = useState(savepoint !== null);
  const canRun = features["web-submit"] !== false;
  useEffect(() => {
    document.title = "Programs · millstream";
  }, []);
  const onStarted = () => {
    setOpen(false);
    programs.reload();
  };
  return (
    <>
      <div class="title">
        <h1>Programs</h1>
        {canRun && (
          <button class="primary" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
            Run a program
          </button>
        )}
      </div>
      {canRun && isOpen && <RunForm savepoint={savepoint} onStarted={onStarted} />}
      <Loaded polled={programs}>
        {({ applications }) =>
          applications.length === 0 ? (
            <Empty title="No programs">
              Run one with the button above, or with <code>millstream run -d job.py</code>.
            </Empty>
          ) : (
            <ProgramTable
              programs={applications}
              jobs={jobs.data?.jobs ?? []}
              canCancel={features["web-cancel"] !== false}
              onChange={programs.reload}
            />
          )
        }
      </Loaded>
    </>
  );
}

function RunForm({ savepoint, onStarted }: { savepoint: string | null; onStarted: () => void }) {
  const uploads = useResource<{ files: UploadedFile[] }>("jars");
  const [chosen, setChosen] = useState<string | null>(null); // the id of an upload
  const [file, setFile] = useState<File | null>(null);
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const files = uploads.data?.files ?? [];
  const upload = chosen ?? files.at(-1)?.id ?? "";
  const name = file?.name ?? files.find((each) => each.id === upload)?.name ?? "";

  const submit = async (event: Event) => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget as HTMLFormElement);
    setBusy(true);
    setProblem(null);
    try {
      const id = file === null ? upload : await send(file);
      await request("POST", `jars/${encodeURIComponent(id)}/run-application`, describeRun(fields));
      onStarted();
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
      uploads.reload();
    }
    setBusy(false);
  };
  const forget = async () => {
    await request("DELETE", `jars/${encodeURIComponent(upload)}`).catch(() => {});
    setChosen(null);
    uploads.reload();
  };

  return (
    <form class="panel" aria-label="Run a program" onSubmit={(event) => void submit(event)}>
      <div class="fields">
        <label>
          Upload a Python file or zip archive
          <input type="file" accept=".py,.zip" onChange={(event) => setFile(event.currentTarget.files?.[0] ?? null)} />
        </label>
        {files.length > 0 && file === null && (
          <label>
            Or run one that was uploaded
            <select value={upload} onChange={(event) => setChosen(event.currentTarget.value)}>
              {files.map((each) => (
                <option key={each.id} value={each.id}>
                  {each.name}, {formatTime(each.uploaded)}
                </option>
              ))}
            </select>
          </label>
        )}
        {files.length > 0 && file === null && (
          <button type="button" onClick={() => void forget()}>
            Delete upload
          </button>
        )}
      </div>
      <div class="fields">
        {name.endsWith(".zip") && (
          <label>
            What to run of the archive
            <input name="main" required placeholder="job.py, or a module: jobs.fraud" />
          </label>
        )}
        <label>
          Arguments
          <input name="arguments" />
        </label>
        <label>
          Parallelism
          <input name="parallelism" type="number" min="1" placeholder="as configured" />
        </label>
        <label>
          Start from this savepoint or checkpoint
          <input name="savepoint" defaultValue={savepoint ?? ""} />
        </label>
        <label class="check">
          <input name="drop" type="checkbox" /> Drop state of operators that the program does not have
        </label>
      </div>
      <label>
        <span class="hint">Options, one on each line: key: value</span>
        <textarea name="options" rows={2} spellcheck={false} />
      </label>
      {problem !== null && (
        <pre class="notice bad" role="alert">
          {problem}
        </pre>
      )}
      <div class="buttons">
        <button class="primary" disabled={isBusy || (file === null && upload === "")}>
          {isBusy ? "Starting…" : "Start"}
        </button>
      </div>
    </form>
  );
}

async function send(file: File): Promise<string> {
  const form = new FormData();
  form.append("jarfile", file);
  const answer = await request<{ filename: string }>("POST", "jars/upload", form);
  return answer.filename.split("/").at(-1) ?? "";
}

/** The body of the request that runs an upload. */
function describeRun(fields: FormData): unknown {
  const text = (name: string) => String(fields.get(name) ?? "").trim();
  const main = text("main");
  const lines = text("options").split("\n").filter((line) => line.trim() !== "");
  return {
    programArgs: [main && `${main.endsWith(".py") ? "-py" : "-pym"} ${main}`, text("arguments")].join(" ").trim(),
    parallelism: text("parallelism") === "" ? null : Number(text("parallelism")),
    savepointPath: text("savepoint") || null,
    allowNonRestoredState: fields.get("drop") !== null,
    flinkConfiguration: Object.fromEntries(lines.map(parseOption)),
  };
}

function parseOption(line: string): [string, string] {
  const [, key, value] = /^\s*([^\s:=]+)\s*[:=]\s*(.*?)\s*$/.exec(line) ?? [];
  if (key === undefined || value === undefined) throw new Error(`'${line.trim()}' is not of the form key: value`);
  return [key, value];
}

function ProgramTable(props: { programs: Program[]; jobs: JobOverview[]; canCancel: boolean; onChange: () => void }) {
  const { programs, jobs, canCancel, onChange } = props;
  const [cancelling, setCancelling] = useState<Program | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const cancel = async (program: Program) => {
    setCancelling(null);
    setProblem(null);
    await request("POST", `applications/${program.id}/cancel`, {}).catch((error: unknown) => setProblem(String(error)));
    onChange();
  };
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Programs">
      <table>
        <thead>
          <tr>
            <th scope="col">Program</th>
            <th scope="col">Status</th>
            <th scope="col">Started</th>
            <th scope="col" class="number">
              Duration
            </th>
            <th scope="col">Jobs</th>
            <th scope="col" aria-label="Actions" />
          </tr>
        </thead>
        <tbody>
          {[...programs].reverse().map((program) => (
            <tr key={program.id}>
              <td>
                {program.name} <code title={program.id}>{shortId(program.id)}</code>
                {program.status === "FAILED" && <Failure program={program.id} />}
              </td>
              <td>
                <State state={program.status} />
              </td>
              <td>{formatTime(program["start-time"])}</td>
              <td class="number">{formatDuration(program.duration)}</td>
              <td>
                {jobs
                  .filter((job) => job["application-id"] === program.id)
                  .map((job) => (
                    <div key={job.jid}>
                      <a href={jobLink(job.jid)}>{job.name}</a> {job.waiting}
                    </div>
                  ))}
              </td>
              <td>
                {canCancel && program.status === "RUNNING" && (
                  <button class="danger" aria-label={`Cancel ${program.name}`} onClick={() => setCancelling(program)}>
                    Cancel
                  </button>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {problem !== null && (
        <p class="notice bad" role="alert">
          {problem}
        </p>
      )}
      {cancelling !== null && (
        <Dialog title={`Cancel ${cancelling.name}?`} onClose={() => setCancelling(null)}>
          <p>All jobs of the program end at once, without a savepoint.</p>
          <div class="buttons">
            <button onClick={() => setCancelling(null)}>Keep running</button>
            <button class="danger" onClick={() => void cancel(cancelling)}>
              Cancel program
            </button>
          </div>
        </Dialog>
      )}
    </div>
  );
}

/** Why a program failed; asked for when it is opened. */
function Failure({ program }: { program: string }) {
  const [isOpen, setOpen] = useState(false);
  const details = useResource<{ error: string | null }>(isOpen ? `applications/${program}` : null);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Why it failed</summary>
      {isOpen && <Loaded polled={details}>{({ error }) => <pre>{error ?? "The program gave no reason."}</pre>}</Loaded>}
    </details>
  );
}
