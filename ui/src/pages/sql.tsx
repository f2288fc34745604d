// The SQL workspace: an editor, results that are watched live, plans as pictures, the tables of the session, history.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { RequestFailed, usePolling, useResource } from "../api";
import { formatExact, formatTime, shorten } from "../format";
import { Empty, Loaded } from "../parts/basics";
import { type PlanNode, PlanView } from "../parts/plan-view";
import { TokenForm } from "../parts/token";
import { jobLink } from "../route";
import { LiveTable, MOST_CHANGES } from "../sql/changes";
import { Editor, type EditorHandle } from "../sql/editor";
import { type CatalogTree, type Column, Operation, errorText, fetchAll, keepAlive, openSession } from "../sql/session";
import { splitStatements, statementAt } from "../sql/statements";
import type { JobOverview } from "../types";
import { type Remembered, download, readDraft, readHistory, readSaved, remember, writeDraft, writeSaved } from "../sql/store";

const SHOWN_ROWS = 500;
const EXAMPLE = `-- Ctrl+Enter runs the statement at the cursor.
CREATE TABLE numbers (
  n BIGINT,
  name STRING
) WITH (
  'connector' = 'datagen',
  'rows-per-second' = '5',
  'fields.n.min' = '1',
  'fields.n.max' = '4',
  'fields.name.length' = '3'
);

SELECT n, COUNT(*) AS how_many FROM numbers GROUP BY n;
`;
const SIGNS = { INSERT: "+I", UPDATE_BEFORE: "-U", UPDATE_AFTER: "+U", DELETE: "-D" };

interface Shown {
  statement: string;
  state: "running" | "done" | "cancelled" | "failed";
  error: string | null;
  job: string | null;
  isQuery: boolean;
  columns: Column[];
  table: LiveTable;
  plan: PlanNode[] | null;
  /** Grows with each page, because the table is changed in place. */
  version: number;
}

export function SqlPage() {
  const [session, setSession] = useState<string | null>(null);
  const [problem, setProblem] = useState<RequestFailed | null>(null);
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    document.title = "SQL · millstream";
    let stop = () => {};
    openSession().then(
      (handle) => {
        setSession(handle);
        setProblem(null);
        stop = keepAlive(handle);
      },
      (error: unknown) => setProblem(error instanceof RequestFailed ? error : new RequestFailed(0, String(error))),
    );
    return () => stop();
  }, [turn]);
  if (problem?.status === 401) return <TokenForm onDone={() => setTurn(turn + 1)} />;
  return (
    <>
      <h1>SQL</h1>
      {problem !== null &&
        (problem.status === 404 ? (
          <Empty title="This server has no SQL workspace">
            Start one with <code>millstream gateway start --ui</code>, a program with <code>millstream run --ui</code>, or a session
            cluster with <code>millstream cluster start</code>.
          </Empty>
        ) : (
          <div class="notice bad" role="alert">
            <span>{errorText(problem)}</span>
            <button onClick={() => setTurn(turn + 1)}>Try again</button>
          </div>
        ))}
      {(problem === null || problem.status !== 404) && <Workspace session={session} />}
    </>
  );
}

function Workspace({ session }: { session: string | null }) {
  const editor = useRef<EditorHandle | null>(null);
  const running = useRef<Operation | null>(null);
  const turns = useRef(0);
  const [shown, setShown] = useState<Shown | null>(null);
  const [history, setHistory] = useState<Remembered[]>(readHistory);
  const catalogs = useResource<CatalogTree>(session === null ? null : `sql/workspace/${session}/catalogs`);
  useEffect(() => () => void running.current?.close(), []);

  const runOne = async (statement: string): Promise<boolean> => {
    const table = new LiveTable();
    let current: Shown = {
      ...{ statement, state: "running", error: null, job: null, isQuery: false, columns: [], table, plan: null, version: 0 },
    };
    const turn = ++turns.current;
    const show = (change: Partial<Shown>) => {
      if (turns.current !== turn) return; // a newer statement is shown
      current = { ...current, ...change, version: current.version + 1 };
      setShown(current);
    };
    show({});
    try {
      const operation = await Operation.submit(session!, statement);
      running.current = operation;
      for await (const page of operation.pages()) {
        if (running.current !== operation) return false;
        table.add(page.rows);
        show({ isQuery: page.isQuery, job: page.job, columns: page.columns });
      }
      const isWhole = running.current === operation;
      show({ state: isWhole ? "done" : "cancelled" });
      if (isWhole) running.current = null;
      return isWhole;
    } catch (error) {
      const wasCancelled = running.current === null;
      show(wasCancelled ? { state: "cancelled" } : { state: "failed", error: errorText(error) });
      running.current = null;
      return false;
    }
  };

  const run = useCallback(
    async (all: boolean) => {
      if (session === null || editor.current === null) return;
      const before = running.current;
      running.current = null;
      await before?.close();
      const text = editor.current.text();
      const selection = editor.current.selection();
      const one = statementAt(text, editor.current.cursor());
      const statements = all ? splitStatements(text) : selection.trim() ? splitStatements(selection) : one ? [one] : [];
      for (const statement of statements) {
        setHistory(remember(statement.text, Date.now()));
        if (!(await runOne(statement.text))) break;
        catalogs.reload();
      }
    },
    [session, catalogs.reload],
  );

  const explain = async () => {
    if (session === null || editor.current === null) return;
    const statement = statementAt(editor.current.text(), editor.current.cursor());
    if (statement === undefined) return;
    turns.current += 1;
    const base = { statement: statement.text, job: null, isQuery: false, columns: [], table: new LiveTable(), version: 0 };
    try {
      const rows = await fetchAll(session, `EXPLAIN JSON_EXECUTION_PLAN ${statement.text}`);
      setShown({ ...base, state: "done", error: null, plan: parsePlan(rows[0]?.fields[0] ?? "") });
    } catch (error) {
      setShown({ ...base, state: "failed", error: errorText(error), plan: null });
    }
  };

  const cancel = () => {
    const operation = running.current;
    running.current = null;
    void operation?.cancel();
    setShown((before) => (before === null ? null : { ...before, state: "cancelled" }));
  };

  return (
    <div class="workspace">
      <div class="workspace-main">
        <div class="panel editor-panel">
          <Editor
            initial={readDraft() || EXAMPLE}
            session={session}
            onChange={writeDraft}
            onRun={() => void run(false)}
            onReady={(handle) => {
              editor.current = handle;
            }}
          />
          <div class="buttons editor-tools">
            <button class="primary" disabled={session === null} onClick={() => void run(false)}>
              Run statement
            </button>
            <button disabled={session === null} onClick={() => void run(true)}>
              Run all
            </button>
            <button disabled={session === null} onClick={() => void explain()}>
              Explain
            </button>
            <button disabled={shown?.state !== "running"} onClick={cancel}>
              Cancel
            </button>
            <span class="spacer" />
            <SavedTexts editor={editor} />
          </div>
        </div>
        <div aria-live="polite" role="status" class="hidden">
          {shown === null ? "" : describeState(shown)}
        </div>
        {shown !== null && <Result key={shown.statement} shown={shown} />}
      </div>
      <aside class="workspace-side" aria-label="Tables and history">
        <h2>Tables</h2>
        {session !== null && (
          <Loaded polled={catalogs}>
            {(tree) => <Catalogs tree={tree} onInsert={(name) => editor.current?.insert(name)} />}
          </Loaded>
        )}
        <h2>History</h2>
        <HistoryList history={history} onUse={(text) => editor.current?.insert(`${text};\n`)} />
      </aside>
    </div>
  );
}

function describeState({ state, table, isQuery, error }: Shown): string {
  if (state === "failed") return `Failed: ${error}`;
  if (state === "running") return isQuery ? "The query is running." : "The statement is running.";
  if (state === "cancelled") return "Cancelled.";
  return `Done, ${formatExact(table.total)} rows.`;
}

function Result({ shown }: { shown: Shown }) {
  const [view, setView] = useState<"table" | "changes">("table");
  const { state, error, job, isQuery, columns, table, plan } = shown;
  return (
    <section class="panel" aria-label="Result">
      <div class="title">
        <h2 class="wide">
          <code>{shorten(shown.statement.replace(/\s+/g, " "), 120)}</code>
        </h2>
        <span class={`state state-${state === "done" ? "finished" : state === "cancelled" ? "canceled" : state}`}>{state}</span>
      </div>
      {job !== null && (
        <p class="facts">
          Job <a href={jobLink(job)}>{job}</a> {state === "running" && <Waiting job={job} />}
        </p>
      )}
      {error !== null && (
        <pre class="notice bad" role="alert">
          {error}
        </pre>
      )}
      {plan !== null && <PlanView nodes={plan} />}
      {columns.length > 0 && (
        <>
          {isQuery && (
            <div class="buttons" role="group" aria-label="Show the result as">
              <button aria-pressed={view === "table"} onClick={() => setView("table")}>
                Table
              </button>
              <button aria-pressed={view === "changes"} onClick={() => setView("changes")}>
                Changelog
              </button>
              <span class="hint">
                {formatExact(table.total)} {table.total === 1 ? "change" : "changes"}
              </span>
            </div>
          )}
          {isQuery && view === "changes" ? <Changelog shown={shown} /> : <TableRows shown={shown} />}
        </>
      )}
    </section>
  );
}

/** Why a job of a session cluster has not started. */
function Waiting({ job }: { job: string }) {
  const jobs = usePolling<{ jobs: JobOverview[] }>("jobs/overview");
  const reason = jobs.data?.jobs.find((each) => each.jid === job)?.waiting;
  return reason ? <strong>{reason}</strong> : null;
}

function Header({ columns, withKind = false }: { columns: Column[]; withKind?: boolean }) {
  return (
    <thead>
      <tr>
        {withKind && <th scope="col">Change</th>}
        {columns.map((column, index) => (
          <th key={index} scope="col" title={column.logicalType.type}>
            {column.name}
          </th>
        ))}
      </tr>
    </thead>
  );
}

function Cells({ fields }: { fields: (string | null)[] }) {
  return (
    <>
      {fields.map((field, index) => (
        <td key={index} class="result-cell">
          {field === null ? <span class="null">NULL</span> : field}
        </td>
      ))}
    </>
  );
}

function TableRows({ shown: { columns, table, state } }: { shown: Shown }) {
  const rows = table.rows();
  if (rows.length === 0) {
    return <p class="hint">{state === "running" ? "No rows yet." : "The result has no rows."}</p>;
  }
  return (
    <>
      <div class="scroll" tabIndex={0} role="region" aria-label="Rows">
        <table>
          <Header columns={columns} />
          <tbody>
            {rows.slice(0, SHOWN_ROWS).map((fields, index) => (
              <tr key={index}>
                <Cells fields={fields} />
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {(rows.length > SHOWN_ROWS || table.isCut) && (
        <p class="hint">
          The first {formatExact(SHOWN_ROWS)} of {table.isCut ? "more than " : ""}
          {formatExact(rows.length)} rows are shown.
        </p>
      )}
    </>
  );
}

function Changelog({ shown: { columns, table } }: { shown: Shown }) {
  return (
    <>
      <div class="scroll" tabIndex={0} role="region" aria-label="Changes">
        <table>
          <Header columns={columns} withKind />
          <tbody>
            {table.changes
              .slice(-SHOWN_ROWS)
              .reverse()
              .map((row, index) => (
                <tr key={table.total - index}>
                  <td>
                    <code>{SIGNS[row.kind]}</code>
                  </td>
                  <Cells fields={row.fields} />
                </tr>
              ))}
          </tbody>
        </table>
      </div>
      <p class="hint">Newest first; at most {formatExact(Math.min(SHOWN_ROWS, MOST_CHANGES))} changes are shown.</p>
    </>
  );
}

/** The nodes of the JSON that EXPLAIN JSON_EXECUTION_PLAN writes behind the other plans. */
function parsePlan(text: string): PlanNode[] {
  const json = text.slice(text.indexOf("{", text.indexOf("== Physical Execution Plan ==")));
  return (JSON.parse(json) as { nodes: PlanNode[] }).nodes;
}

function Catalogs({ tree, onInsert }: { tree: CatalogTree; onInsert: (name: string) => void }) {
  const databases = tree.catalogs.flatMap((catalog) => catalog.databases.map((database) => ({ catalog: catalog.name, database })));
  const isCurrent = (catalog: string, database: string) => catalog === tree.catalog && database === tree.database;
  return (
    <>
      {databases.map(({ catalog, database }) => (
        <details key={`${catalog}.${database.name}`} open={isCurrent(catalog, database.name)}>
          <summary>
            {catalog}.{database.name} <span class="count">{database.tables.length}</span>
          </summary>
          {database.tables.length === 0 && <p class="hint">No tables. CREATE TABLE adds one.</p>}
          {database.tables.map((table) => {
            const path = isCurrent(catalog, database.name) ? table.name : `${catalog}.${database.name}.${table.name}`;
            return (
              <details key={table.name} class="table-object">
                <summary>
                  {table.name} {table.kind === "view" && <small>view</small>}
                </summary>
                <button class="link" onClick={() => onInsert(path)}>
                  Insert the name
                </button>
                <dl class="columns">
                  {table.columns.map((column) => (
                    <div key={column.name}>
                      <dt>{column.name}</dt>
                      <dd>{column.type}</dd>
                    </div>
                  ))}
                </dl>
              </details>
            );
          })}
        </details>
      ))}
      {!tree.complete && <p class="hint">Not all tables are shown.</p>}
    </>
  );
}

function HistoryList({ history, onUse }: { history: Remembered[]; onUse: (text: string) => void }) {
  if (history.length === 0) return <p class="hint">Statements that you run appear here.</p>;
  return (
    <ul class="history">
      {history.slice(0, 30).map((entry) => (
        <li key={entry.text}>
          <button class="link" title={`${formatTime(entry.time)}: insert at the cursor`} onClick={() => onUse(entry.text)}>
            <code>{shorten(entry.text.replace(/\s+/g, " "), 70)}</code>
          </button>
        </li>
      ))}
    </ul>
  );
}

function SavedTexts({ editor }: { editor: { current: EditorHandle | null } }) {
  const [saved, setSaved] = useState(readSaved);
  const [name, setName] = useState("");
  const save = (event: Event) => {
    event.preventDefault();
    const changed = { ...saved, [name]: editor.current?.text() ?? "" };
    writeSaved(changed);
    setSaved(changed);
  };
  return (
    <>
      {Object.keys(saved).length > 0 && (
        <select
          aria-label="Open a saved text"
          value=""
          onChange={(event) => {
            const chosen = event.currentTarget.value;
            setName(chosen);
            editor.current?.setText(saved[chosen] ?? "");
          }}
        >
          <option value="">Open…</option>
          {Object.keys(saved).map((each) => (
            <option key={each} value={each}>
              {each}
            </option>
          ))}
        </select>
      )}
      <form class="save" onSubmit={save}>
        <input
          required
          aria-label="Name to save the text under"
          placeholder="name"
          value={name}
          onInput={(event) => setName(event.currentTarget.value)}
        />
        <button>Save</button>
      </form>
      <button onClick={() => download(editor.current?.text() ?? "", `${name || "statements"}.sql`)}>Download</button>
    </>
  );
}
