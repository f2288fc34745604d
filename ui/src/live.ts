// One stream of server-sent events for all resources that the page shows. It is read with fetch, which can send a token.

export interface Update {
  path: string;
  status: number;
  answer: unknown;
}

type Listener = (update: Update) => void;

/** Resources that the server sends when they change, without a query. */
const FOLLOWED = /^((jobs|applications)\/overview|overview|jobs\/[0-9a-f]{32}(\/[\w-]+)*)$/;
const RETRY = 10_000;

const listeners = new Map<string, Set<Listener>>();
let stream: AbortController | null = null;
let delivered = new Set<string>();
let restarting: ReturnType<typeof setTimeout> | undefined;
let requestHeaders: () => Record<string, string> = () => ({});

export function useHeaders(headers: () => Record<string, string>): void {
  requestHeaders = headers;
}

/** Calls a listener whenever a resource has changed, until the returned function is called. */
export function follow(path: string, listener: Listener): () => void {
  if (!FOLLOWED.test(path)) return () => undefined;
  const known = listeners.get(path);
  if (known === undefined) {
    listeners.set(path, new Set([listener]));
    restart();
  } else known.add(listener);
  return () => {
    const left = listeners.get(path);
    left?.delete(listener);
    if (left?.size === 0) {
      listeners.delete(path);
      restart();
    }
  };
}

/** Whether the stream delivers a resource, so that nobody has to ask for it. */
export function isDelivered(path: string): boolean {
  return delivered.has(path);
}

/** Opens the stream again for the resources of this moment; none while the page is hidden. */
function restart(after = 50): void {
  clearTimeout(restarting);
  restarting = setTimeout(() => {
    stream?.abort();
    stream = null;
    delivered = new Set();
    if (listeners.size > 0 && !document.hidden) void read([...listeners.keys()].sort());
  }, after);
}

document.addEventListener("visibilitychange", () => restart());

async function read(paths: string[]): Promise<void> {
  const controller = new AbortController();
  stream = controller;
  try {
    const query = paths.map((path) => `path=${encodeURIComponent(path)}`).join("&");
    const answer = await fetch(`millstream/live?${query}`, {
      headers: requestHeaders(),
      signal: controller.signal,
      cache: "no-store",
    });
    if (!answer.ok || answer.body === null) throw new Error(String(answer.status));
    for await (const event of events(answer.body)) {
      delivered.add(event.path);
      listeners.get(event.path)?.forEach((listener) => listener(event));
    }
  } catch {
    // The resources are asked for one by one until the stream is there again.
  }
  if (controller.signal.aborted) return;
  delivered = new Set();
  restart(RETRY);
}

async function* events(body: ReadableStream<Uint8Array>): AsyncGenerator<Update> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (text + decoder.decode(value, { stream: true })).split("\n\n");
    text = parts.pop() ?? "";
    for (const part of parts) {
      if (part.startsWith("data: ")) yield JSON.parse(part.slice(6)) as Update;
    }
  }
}
