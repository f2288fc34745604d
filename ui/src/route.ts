// The page that the part of the address after # names.

import { useEffect, useState } from "preact/hooks";

export const TABS = ["graph", "checkpoints", "epochs", "watermarks", "exceptions", "configuration"] as const;
export type Tab = (typeof TABS)[number];

export interface Route {
  job: string | null;
  tab: Tab;
  /** What is selected on the page: the id of a vertex. */
  selected: string | null;
}

/** Parses `#/`, `#/jobs/ID`, `#/jobs/ID/TAB` and `#/jobs/ID/TAB/SELECTED`. */
export function parseRoute(hash: string): Route {
  const [first, job, tab, selected] = hash.replace(/^#\/?/, "").split("/").map(decodePart);
  if (first !== "jobs" || !job || !/^[0-9a-f]{32}$/i.test(job)) return { job: null, tab: "graph", selected: null };
  return { job, tab: TABS.find((name) => name === tab) ?? "graph", selected: selected || null };
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

export function useRoute(): Route {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const onChange = () => setHash(location.hash);
    addEventListener("hashchange", onChange);
    return () => removeEventListener("hashchange", onChange);
  }, []);
  return parseRoute(hash);
}
