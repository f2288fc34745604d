// Small parts that several pages use.

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Polled } from "../api";
import { TokenForm } from "./token";

export function State({ state }: { state: string }) {
  return <span class={`state state-${state.toLowerCase()}`}>{state.toLowerCase()}</span>;
}

export function Tile({ label, value, detail }: { label: string; value: string; detail?: string | undefined }) {
  return (
    <div class="tile">
      <dt>{label}</dt>
      <dd>
        {value}
        {detail !== undefined && <small>{detail}</small>}
      </dd>
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <strong>{title}</strong>
      {children !== undefined && <p>{children}</p>}
    </div>
  );
}

/** Shows data that is polled: a word while it loads, the error if it never came, and a note if it is old. */
export function Loaded<T>({ polled, children }: { polled: Polled<T>; children: (data: T) => ComponentChildren }) {
  const { data, error, reload } = polled;
  if (error?.status === 401) return <TokenForm onDone={reload} />;
  return (
    <>
      {error !== null && (
        <div class="notice bad" role="alert">
          <span>{error.message}</span>
          <button onClick={reload}>Try again</button>
        </div>
      )}
      {data === null ? error === null && <p class="loading">Loading…</p> : children(data)}
    </>
  );
}

/** A modal dialog of the browser: it keeps the focus inside, and Escape closes it. */
export function Dialog(props: { title: string; onClose: () => void; children: ComponentChildren }) {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => element.current?.showModal(), []);
  return (
    <dialog ref={element} onClose={props.onClose} aria-labelledby="dialog-title">
      <h2 id="dialog-title">{props.title}</h2>
      {props.children}
    </dialog>
  );
}

export function Meter({ share, label, kind }: { share: number; label: string; kind: "busy" | "backpressured" }) {
  const percent = Math.round(Math.max(0, Math.min(1, share)) * 100);
  return (
    <span class="meter" role="img" aria-label={`${label}: ${percent} percent`}>
      <span class={`meter-fill ${kind}`} style={{ width: `${percent}%` }} />
      <span class="meter-text">{percent} %</span>
    </span>
  );
}
