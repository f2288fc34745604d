// Statements in a text of SQL.

export interface Statement {
  text: string;
  start: number;
  end: number;
}

const PIECE = /--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|'(?:[^']|'')*(?:'|$)|`(?:[^`]|``)*(?:`|$)|;|[\w$]+|\s+|[\s\S]/g;
const SET_BEGIN = /^(?:EXECUTE\s+STATEMENT\s+SET\s+BEGIN|BEGIN\s+STATEMENT\s+SET\s*;)/i;

/** Splits a text at semicolons, except those in quotes, comments and statement sets. */
export function splitStatements(text: string): Statement[] {
  const statements: Statement[] = [];
  let start: number | null = null;
  let last = "";
  let end = 0;
  const finish = () => {
    if (start !== null) statements.push({ text: text.slice(start, end), start, end });
    start = null;
  };
  for (const match of text.matchAll(PIECE)) {
    const piece = match[0];
    const index = match.index;
    const isBlank = /^\s/.test(piece) || piece.startsWith("--") || piece.startsWith("/*");
    if (piece === ";") {
      const isInSet = start !== null && SET_BEGIN.test(`${text.slice(start, index)};`) && last.toUpperCase() !== "END";
      if (!isInSet) finish();
      continue;
    }
    if (isBlank) continue;
    start ??= index;
    end = index + piece.length;
    last = piece;
  }
  finish();
  return statements;
}

/** The statement at a position, else the last one before it, else the first one. */
export function statementAt(text: string, position: number): Statement | undefined {
  const statements = splitStatements(text);
  return statements.findLast((statement) => statement.start <= position) ?? statements[0];
}

/** Where the word begins that a completion at a position replaces: an identifier, or a text in quotes. */
export function completionStart(before: string): number {
  const isInQuotes = (before.match(/'/g)?.length ?? 0) % 2 === 1;
  const word = (isInQuotes ? /'[^'\n]*$/ : /`?[\w$]*$/).exec(before);
  return word?.index ?? before.length;
}
