// The result of a query as a table: the changes of a changelog, applied.

import type { ResultRow } from "./session";

export const MOST_CHANGES = 1_000;
export const MOST_ROWS = 10_000;

/** The rows of a result, and its newest changes. A row that is retracted is removed once. */
export class LiveTable {
  private readonly counts = new Map<string, { fields: (string | null)[]; count: number }>();
  readonly changes: ResultRow[] = [];
  total = 0;
  /** Whether rows were left out because there were too many. */
  isCut = false;

  add(rows: ResultRow[]): void {
    for (const row of rows) {
      this.total += 1;
      this.changes.push(row);
      this.apply(row);
    }
    if (this.changes.length > MOST_CHANGES) this.changes.splice(0, this.changes.length - MOST_CHANGES);
  }

  rows(): (string | null)[][] {
    const rows: (string | null)[][] = [];
    for (const { fields, count } of this.counts.values()) {
      for (let copy = 0; copy < count; copy += 1) rows.push(fields);
    }
    return rows;
  }

  private apply({ kind, fields }: ResultRow): void {
    const key = JSON.stringify(fields);
    const known = this.counts.get(key);
    if (kind === "INSERT" || kind === "UPDATE_AFTER") {
      if (known !== undefined) known.count += 1;
      else if (this.counts.size < MOST_ROWS) this.counts.set(key, { fields, count: 1 });
      else this.isCut = true;
    } else if (known !== undefined) {
      known.count -= 1;
      if (known.count === 0) this.counts.delete(key);
    }
  }
}
