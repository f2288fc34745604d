// Requests to the REST server that served this page, and resources that stay up to date.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { follow, isDelivered, useHeaders } from "./live";

export class RequestFailed extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** The key of the token, and the event after which requests have one. */
export const TOKEN = "millstream-token";

export function setToken(token: string): void {
  sessionStorage.setItem(TOKEN, token);
  dispatchEvent(new Event(TOKEN));
}

function headers(hasBody: boolean): Record<string, string> {
  const token = sessionStorage.getItem(TOKEN);
  return {
    ...(hasBody ? { "Content-Type": "application/json" } : {}),
    ...(token === null ? {} : { Authorization: `Bearer ${token}` }),
  };
}

useHeaders(() => headers(false));

/** Sends a request with a form or a JSON body, and returns the JSON answer. An error has the text of the server. */
export async function request<T>(method: string, path: string, body?: unknown): Promise<T> {
  let answer: Response;
  const isForm = body instanceof FormData;
  try {
    answer = await fetch(path, {
      method,
      headers: headers(body !== undefined && !isForm),
      body: isForm ? body : body === undefined ? null : JSON.stringify(body),
      cache: "no-store",
    });
  } catch {
    throw new RequestFailed(0, "The server does not answer. The program has ended, or the connection is lost.");
  }
  const content: unknown = await answer.json().catch(() => null);
  if (!answer.ok) throw new RequestFailed(answer.status, errorText(content) ?? `status ${answer.status}`);
  return content as T;
}

function errorText(content: unknown): string | null {
  const errors = (content as { errors?: unknown } | null)?.errors;
  return Array.isArray(errors) ? errors.map(String).join("\n") : null;
}

export interface Polled<T> {
  data: T | null;
  error: RequestFailed | null;
  reload: () => void;
}

const INTERVAL = 2000;

/**
 * Gets a resource now, and then whenever it changes. While there is no stream of changes, or with another interval, the
 * resource is asked for every `interval` milliseconds. Nothing is sent while the page is hidden.
 */
export function usePolling<T>(path: string, interval = INTERVAL): Polled<T> {
  const [state, setState] = useState<{ path: string; data: T | null; error: RequestFailed | null }>({
    path,
    data: null,
    error: null,
  });
  const [turn, setTurn] = useState(0);
  const latest = useRef(path);
  latest.current = path;

  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isOver = false;
    const fail = (error: RequestFailed) =>
      setState((before) => ({ path, data: before.path === path ? before.data : null, error }));
    const poll = async () => {
      clearTimeout(timer);
      try {
        const data = await request<T>("GET", path);
        if (!isOver) setState({ path, data, error: null });
      } catch (problem) {
        const error = problem instanceof RequestFailed ? problem : new RequestFailed(0, String(problem));
        if (!isOver) fail(error);
      }
      wait();
    };
    const wait = () => {
      if (!isOver && !document.hidden) timer = setTimeout(isDelivered(path) ? wait : poll, interval);
    };
    const leave =
      interval !== INTERVAL
        ? () => undefined
        : follow(path, ({ status, answer }) => {
            if (status < 400) setState({ path, data: answer as T, error: null });
            else fail(new RequestFailed(status, errorText(answer) ?? `status ${status}`));
          });
    const onVisible = () => {
      if (!document.hidden) void poll();
    };
    document.addEventListener("visibilitychange", onVisible);
    void poll();
    return () => {
      isOver = true;
      clearTimeout(timer);
      leave();
      document.removeEventListener("visibilitychange", onVisible);
    };
  }, [path, interval, turn]);

  const reload = useCallback(() => setTurn((before) => before + 1), []);
  const isCurrent = state.path === path;
  return { data: isCurrent ? state.data : null, error: isCurrent ? state.error : null, reload };
}

/** Gets a resource once, and again with `reload`; nothing without a path. */
export function useResource<T>(path: string | null): Polled<T> {
  const [state, setState] = useState<{ path: string | null; data: T | null; error: RequestFailed | null }>({
    path: null,
    data: null,
    error: null,
  });
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    if (path === null) return;
    let isOver = false;
    request<T>("GET", path).then(
      (data) => !isOver && setState({ path, data, error: null }),
      (problem: unknown) => {
        const error = problem instanceof RequestFailed ? problem : new RequestFailed(0, String(problem));
        if (!isOver) setState({ path, data: null, error });
      },
    );
    return () => {
      isOver = true;
    };
  }, [path, turn]);
  const reload = useCallback(() => setTurn((before) => before + 1), []);
  const isCurrent = state.path === path;
  return { data: isCurrent ? state.data : null, error: isCurrent ? state.error : null, reload };
}

/** Polls for the result of an operation that was triggered until it has ended. */
export async function waitFor<T>(path: string): Promise<T> {
  for (;;) {
    const answer = await request<{ status: { id: string }; operation: T | null }>("GET", path);
    if (answer.status.id === "COMPLETED") return answer.operation as T;
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
}
