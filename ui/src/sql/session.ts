// A session of the SQL gateway that is a part of the server, and the results of its statements.

import { RequestFailed, request } from "../api";

const HANDLE = "millstream-sql-session";
const POLL_PAUSE = 250;
const MOST_OPEN = 60_000;

export interface Column {
  name: string;
  logicalType: { type: string };
}

export interface ResultRow {
  kind: "INSERT" | "UPDATE_BEFORE" | "UPDATE_AFTER" | "DELETE";
  fields: (string | null)[];
}

export interface ResultPage {
  isQuery: boolean;
  job: string | null;
  columns: Column[];
  rows: ResultRow[];
}

export interface Problem {
  start: number;
  end: number;
  message: string;
  hint: string | null;
}

export interface TableObject {
  name: string;
  kind: string;
  columns: { name: string; type: string }[];
}

export interface CatalogTree {
  catalog: string;
  database: string;
  catalogs: { name: string; databases: { name: string; tables: TableObject[] }[] }[];
  complete: boolean;
}

interface Answer {
  resultType: "NOT_READY" | "PAYLOAD" | "EOS";
  isQueryResult?: boolean;
  jobID?: string;
  results?: { columns: Column[]; data: ResultRow[] };
  nextResultUri?: string;
}

/** The handle of the session of this tab; one that has expired is replaced. */
export async function openSession(): Promise<string> {
  const known = sessionStorage.getItem(HANDLE);
  if (known !== null) {
    try {
      await request("POST", `sql/v4/sessions/${known}/heartbeat`, {});
      return known;
    } catch (problem) {
      if (!(problem instanceof RequestFailed) || problem.status !== 404) throw problem;
    }
  }
  const opened = await request<{ sessionHandle: string }>("POST", "sql/v4/sessions", { sessionName: "web UI" });
  sessionStorage.setItem(HANDLE, opened.sessionHandle);
  return opened.sessionHandle;
}

export function keepAlive(session: string): () => void {
  const timer = setInterval(() => void request("POST", `sql/v4/sessions/${session}/heartbeat`, {}).catch(() => {}), MOST_OPEN);
  return () => clearInterval(timer);
}

export class Operation {
  private isOver = false;
  private fetching: Promise<unknown> = Promise.resolve();

  private constructor(
    private readonly session: string,
    private readonly handle: string,
  ) {}

  static async submit(session: string, statement: string): Promise<Operation> {
    const path = `sql/v4/sessions/${session}/statements`;
    const answer = await request<{ operationHandle: string }>("POST", path, { statement });
    return new Operation(session, answer.operationHandle);
  }

  private get path(): string {
    return `sql/v4/sessions/${this.session}/operations/${this.handle}`;
  }

  /** The pages of the result, until its end. */
  async *pages(): AsyncGenerator<ResultPage> {
    for (let token = "0"; ; ) {
      if (this.isOver) return;
      const fetching = request<Answer>("GET", `${this.path}/result/${token}?rowFormat=PLAIN_TEXT`);
      this.fetching = fetching;
      const answer = await fetching;
      if (answer.resultType !== "NOT_READY" && answer.results !== undefined) {
        yield {
          isQuery: answer.isQueryResult ?? false,
          job: answer.jobID ?? null,
          columns: answer.results.columns,
          rows: answer.results.data,
        };
      }
      if (answer.resultType === "EOS") return;
      token = /\/result\/(\d+)/.exec(answer.nextResultUri ?? "")?.[1] ?? token;
      if ((answer.results?.data.length ?? 0) === 0) await new Promise((resolve) => setTimeout(resolve, POLL_PAUSE));
    }
  }

  /** Waits for a request that is under way, which would fail after the end of the operation. */
  private async end(): Promise<void> {
    this.isOver = true;
    await this.fetching.catch(() => {});
  }

  async cancel(): Promise<void> {
    await this.end();
    await request("POST", `${this.path}/cancel`, {});
  }

  async close(): Promise<void> {
    await this.end();
    await request("DELETE", `${this.path}/close`).catch(() => {});
  }
}

/** All rows of a statement whose result is short, such as EXPLAIN. */
export async function fetchAll(session: string, statement: string): Promise<ResultRow[]> {
  const operation = await Operation.submit(session, statement);
  const rows: ResultRow[] = [];
  for await (const page of operation.pages()) rows.push(...page.rows);
  await operation.close();
  return rows;
}

/** What a person needs to read of an error of the gateway, which is written for Flink's clients. */
export function errorText(problem: unknown): string {
  const text = problem instanceof Error ? problem.message : String(problem);
  const cause = text.split("Caused by: ").at(-1) ?? text;
  return (cause.split("\n\tat ")[0] ?? cause).replace(/^[\w.]+(?:Exception|Error): /, "").replace(/^Internal server error\.\n/, "");
}
