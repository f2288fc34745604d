// The editor of SQL: CodeMirror in a shadow root, because the security policy of the page allows no inline styles.

import { type CompletionContext, type CompletionResult, autocompletion, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { StandardSQL, sql } from "@codemirror/lang-sql";
import { HighlightStyle, bracketMatching, syntaxHighlighting } from "@codemirror/language";
import { type Diagnostic, lintKeymap, linter } from "@codemirror/lint";
import { EditorState, Prec } from "@codemirror/state";
import { EditorView, drawSelection, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useRef } from "preact/hooks";
import { request } from "../api";
import type { Problem } from "./session";
import { completionStart, statementAt } from "./statements";

const LINT_DELAY = 500;

const theme = EditorView.theme({
  "&": { color: "var(--text)", backgroundColor: "var(--card)", fontSize: "14px", minHeight: "180px", maxHeight: "50vh" },
  "&.cm-focused": { outline: "3px solid var(--info)", outlineOffset: "-1px" },
  ".cm-scroller": { fontFamily: "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace", lineHeight: "1.5" },
  ".cm-content": { caretColor: "var(--text)", padding: "8px 0" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-gutters": { backgroundColor: "var(--sunken)", color: "var(--muted)", border: "none" },
  ".cm-activeLine": { backgroundColor: "color-mix(in srgb, var(--info) 8%, transparent)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "color-mix(in srgb, var(--info) 30%, transparent)",
  },
  ".cm-tooltip": { backgroundColor: "var(--card)", color: "var(--text)", border: "1px solid var(--line)", borderRadius: "6px" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--accent-text)" },
  ".cm-diagnostic": { whiteSpace: "pre-wrap", maxWidth: "60ch" },
  ".cm-diagnostic-error": { borderLeftColor: "var(--bad)" },
});

const highlighting = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--info)", fontWeight: "600" },
  { tag: tags.string, color: "var(--good)" },
  { tag: tags.number, color: "var(--warn)" },
  { tag: [tags.comment, tags.lineComment, tags.blockComment], color: "var(--muted)", fontStyle: "italic" },
  { tag: [tags.typeName, tags.bool, tags.null], color: "var(--accent)" },
]);

export interface EditorHandle {
  text: () => string;
  setText: (text: string) => void;
  insert: (text: string) => void;
  /** The selected text, or "" . */
  selection: () => string;
  cursor: () => number;
  focus: () => void;
}

export function Editor(props: {
  initial: string;
  session: string | null;
  onChange: (text: string) => void;
  onRun: () => void;
  onReady: (handle: EditorHandle) => void;
}) {
  const host = useRef<HTMLDivElement>(null);
  const latest = useRef(props);
  latest.current = props;
  useEffect(() => {
    const root = host.current!.shadowRoot ?? host.current!.attachShadow({ mode: "open" });
    const view = new EditorView({
      parent: root,
      root,
      state: EditorState.create({
        doc: props.initial,
        extensions: [
          lineNumbers(),
          history(),
          drawSelection(),
          highlightActiveLine(),
          bracketMatching(),
          EditorView.lineWrapping,
          sql({ dialect: StandardSQL }),
          syntaxHighlighting(highlighting),
          theme,
          autocompletion({ override: [(context) => complete(latest.current.session, context)] }),
          linter((shown) => check(latest.current.session, shown), { delay: LINT_DELAY }),
          Prec.highest(keymap.of([{ key: "Mod-Enter", run: () => (latest.current.onRun(), true) }])),
          keymap.of([...completionKeymap, ...lintKeymap, ...historyKeymap, ...defaultKeymap]),
          EditorView.contentAttributes.of({ "aria-label": "SQL statements" }),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) latest.current.onChange(update.state.doc.toString());
          }),
        ],
      }),
    });
    props.onReady({
      text: () => view.state.doc.toString(),
      setText: (text) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } }),
      insert: (text) => {
        view.dispatch(view.state.replaceSelection(text));
        view.focus();
      },
      selection: () => view.state.sliceDoc(view.state.selection.main.from, view.state.selection.main.to),
      cursor: () => view.state.selection.main.head,
      focus: () => view.focus(),
    });
    return () => view.destroy();
  }, []);
  return <div class="editor" ref={host} />;
}

async function complete(session: string | null, context: CompletionContext): Promise<CompletionResult | null> {
  const text = context.state.doc.toString();
  const from = completionStart(text.slice(0, context.pos));
  if (session === null || (from === context.pos && !context.explicit)) return null;
  try {
    const body = { statement: text, position: context.pos };
    const labels = await request<string[]>("POST", `sql/workspace/${session}/complete`, body);
    return { from, options: labels.map((label) => ({ label })), validFor: /^['`]?[\w$.-]*$/ };
  } catch {
    return null; // the page shows elsewhere that the server does not answer
  }
}

/** The problems of the statement at the cursor: those around it may need statements that have not run yet. */
async function check(session: string | null, view: EditorView): Promise<Diagnostic[]> {
  const statement = statementAt(view.state.doc.toString(), view.state.selection.main.head);
  if (session === null || statement === undefined) return [];
  try {
    const problems = await request<Problem[]>("POST", `sql/workspace/${session}/check`, { statement: statement.text });
    const length = view.state.doc.length;
    return problems.map(({ start, end, message, hint }) => ({
      from: Math.min(length, statement.start + start),
      to: Math.min(length, statement.start + end),
      severity: "error",
      message: hint === null ? message : `${message}\n${hint}`,
    }));
  } catch {
    return [];
  }
}
