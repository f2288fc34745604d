// Python tracebacks: the error and the line of the user's program that raised it.

export interface Frame {
  file: string;
  line: number;
  function: string;
  code: string;
}

export interface Traceback {
  /** The exception and its message. */
  message: string;
  /** What follows the message: the operator, the key, the record. */
  context: string;
  /** The last frame that is not of a library; null if there is none. */
  userFrame: Frame | null;
}

const FRAME = /^\s*File "(.+)", line (\d+), in (.+)$/;
const LIBRARY = /[\\/](site-packages|dist-packages|lib[\\/]python3[^\\/]*|src[\\/]millstream|millstream|pyspark)[\\/]/;

export function parseTraceback(text: string): Traceback {
  const lines = text.split("\n");
  const frames: Frame[] = [];
  let afterFrames = 0;
  lines.forEach((line, index) => {
    const match = FRAME.exec(line);
    if (match === null) return;
    const next = lines[index + 1] ?? "";
    const code = FRAME.test(next) ? "" : next.trim();
    frames.push({ file: match[1]!, line: Number(match[2]), function: match[3]!, code });
    afterFrames = index + 1;
  });
  const [message, ...context] = lines.slice(afterFrames).filter((line) => /^\S/.test(line));
  return {
    message: message ?? "unknown error",
    context: context.join("\n"),
    userFrame: frames.filter((frame) => !LIBRARY.test(frame.file)).at(-1) ?? null,
  };
}
