// The page that the part of the address after # names.

import { useEffect, useState } from "preact/hooks";

export const TABS = ["graph", "checkpoints", "state", "epochs", "watermarks", "exceptions", "log", "configuration"] as const;
export type Tab = (typeof TABS)[number];

export interface Route {
  /** What the page shows, if it is not one of a job. */
  place: "jobs" | "programs" | "sql";
  job: string | null;
  tab: Tab;
  /** What is selected on the page: the id of a vertex, the name of a snapshot, or the savepoint to start from. */
  selected: string | null;
}

/** Parses `#/`, `#/sql`, `#/programs`, `#/programs/SAVEPOINT`, `#/jobs/ID`, `#/jobs/ID/TAB` and `#/jobs/ID/TAB/SELECTED`. */
export function parseRoute(hash: string): Route {
  const [first, job, tab, selected] = hash.replace(/^#\/?/, "").split("/").map(decodePart);
  const place = first === "sql" || first === "programs" ? first : "jobs";
  if (first !== "jobs" || !job || !/^[0-9a-f]{32}$/i.test(job)) {
    return { place, job: null, tab: "graph", selected: (place === "programs" && job) || null };
  }
  return { place, job, tab: TABS.find((name) => name === tab) ?? "graph", selected: selected || null };
}

function decodePart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return "";
  }
}

export function jobLink(job: string, tab: Tab = "graph", selected?: string): string {
  return `#/jobs/${job}/${tab}${selected ? `/${encodeURIComponent(selected)}` : ""}`;
}

/** The form that starts a program from a savepoint. */
export function startLink(savepoint: string): string {
  return `#/programs/${encodeURIComponent(savepoint)}`;
}

export function useRoute(): Route {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const onChange = () => setHash(location.hash);
    addEventListener("hashchange", onChange);
    return () => removeEventListener("hashchange", onChange);
  }, []);
  return parseRoute(hash);
}
