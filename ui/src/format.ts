// Numbers, sizes, durations and times as text, in the reader's language and time zone.

const compact = new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 1 });
const exact = new Intl.NumberFormat();
const dateTime = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const timeOnly = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });

/** The largest number of milliseconds since 1970 that is a date; watermarks beyond it mean the end of event time. */
const LAST_DATE = 8.64e15;

export function formatCount(count: number): string {
  return Math.abs(count) < 10_000 ? exact.format(Math.round(count)) : compact.format(count);
}

export function formatExact(count: number): string {
  return exact.format(count);
}

export function formatRate(perSecond: number): string {
  if (perSecond > 0 && perSecond < 10) return `${perSecond.toFixed(1)}/s`;
  return `${formatCount(perSecond)}/s`;
}

export function formatBytes(bytes: number): string {
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let value = bytes;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

export function formatDuration(milliseconds: number): string {
  if (milliseconds < 0) return "–";
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  const seconds = milliseconds / 1000;
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.floor(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.floor(seconds % 60)} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

export function formatPercent(share: number): string {
  return `${Math.round(share * 100)} %`;
}

export function formatTime(milliseconds: number): string {
  return milliseconds < 0 ? "–" : dateTime.format(new Date(milliseconds));
}

export function formatClock(milliseconds: number): string {
  return timeOnly.format(new Date(milliseconds));
}

/** A watermark as a time, or what its least and largest values mean. */
export function formatWatermark(watermark: number): string {
  if (watermark <= -LAST_DATE) return "none yet";
  if (watermark >= LAST_DATE) return "end of input";
  return dateTime.format(new Date(watermark));
}

/** How far a watermark is behind the clock; null if it has no place in time. */
export function watermarkLag(watermark: number, now: number): number | null {
  return watermark <= -LAST_DATE || watermark >= LAST_DATE ? null : now - watermark;
}

export function shortId(id: string): string {
  return id.slice(0, 8);
}

export function shorten(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 1)}…`;
}
