// What the browser keeps for the SQL workspace: the text, saved texts, and the history.

const DRAFT = "millstream-sql-draft";
const SAVED = "millstream-sql-saved";
const HISTORY = "millstream-sql-history";
const MOST_HISTORY = 100;

export interface Remembered {
  text: string;
  time: number;
}

function read<T>(key: string, otherwise: T): T {
  try {
    return (JSON.parse(localStorage.getItem(key) ?? "null") as T | null) ?? otherwise;
  } catch {
    return otherwise;
  }
}

function write(key: string, value: unknown): void {
  try {
    localStorage.setItem(key, JSON.stringify(value));
  } catch {
    // The storage of the browser is full or switched off: nothing is kept.
  }
}

export const readDraft = () => read<string>(DRAFT, "");
export const writeDraft = (text: string) => write(DRAFT, text);

export const readSaved = () => read<Record<string, string>>(SAVED, {});
export const writeSaved = (saved: Record<string, string>) => write(SAVED, saved);

export const readHistory = () => read<Remembered[]>(HISTORY, []);

/** Adds a statement to the history, newest first; one that is there already moves to the front. */
export function remember(text: string, time: number): Remembered[] {
  const history = [{ text, time }, ...readHistory().filter((each) => each.text !== text)].slice(0, MOST_HISTORY);
  write(HISTORY, history);
  return history;
}

/** Offers a text as a file. */
export function download(text: string, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
