// Levels of records, by the table of docs/http.md ("Levels").

export const LEVELS = [
  "trace",
  "debug",
  "info",
  "notice",
  "warn",
  "error",
  "critical",
  "alert",
  "fatal",
] as const;
export type Level = (typeof LEVELS)[number];

const WORDS: Record<Level, string> = {
  trace: "trc trce verbose finest finer silly",
  debug: "dbg dbug fine config debug1 debug2 debug3 debug4 debug5 d1 d2 d3 d4 d5",
  info: "inf information informational log note success",
  notice: "ntc",
  warn: "warning wrn",
  error: "err eror fail severe",
  critical: "crit dpanic fault",
  alert: "alrt",
  fatal: "ftl panic emerg emergency",
};

const BY_WORD = new Map<string, Level>();
for (const level of LEVELS) {
  BY_WORD.set(level, level);
  for (const word of WORDS[level].split(" ")) BY_WORD.set(word, level);
}

const SYSLOG: Level[] = ["fatal", "alert", "critical", "error", "warn", "notice", "info", "debug"];
const TENS: Record<string, Level> = {
  10: "trace",
  20: "debug",
  30: "info",
  40: "warn",
  50: "error",
  60: "fatal",
};
const PYTHON: Record<string, Level> = { 10: "debug", 20: "info", 30: "warn", 40: "error", 50: "critical" };
const MONOLOG: Record<string, Level> = {
  100: "debug",
  200: "info",
  250: "notice",
  300: "warn",
  400: "error",
  500: "critical",
  550: "alert",
  600: "fatal",
};
const DOTNET: Level[] = ["trace", "debug", "info", "warn", "error", "critical"];

/** Fields that have the level, in their order. */
export const LEVEL_FIELDS = [
  "_level",
  "detected_level",
  "level",
  "log.level",
  "severity",
  "lvl",
  "severity_text",
  "levelname",
  "loglevel",
  "@l",
  "@level",
  "level_name",
  "LogLevel",
  "error_severity",
  "PRIORITY",
  "severity_number",
  "levelno",
  "priority",
];

function ofNumber(field: string, text: string): Level | undefined {
  const value = Number(text);
  if (field === "severity_number") {
    if (value < 5) return "trace";
    if (value < 9) return "debug";
    if (value < 13) return value === 10 ? "notice" : "info";
    if (value < 17) return "warn";
    return value < 21 ? "error" : "fatal";
  }
  if (field === "levelno") return PYTHON[text];
  if (field === "LogLevel") return DOTNET[value];
  if (value <= 7) return SYSLOG[value];
  if (value < 100) return TENS[text];
  return MONOLOG[text];
}

/** The level of a text of this field, if it is one. */
export function levelOf(field: string, text: string): Level | undefined {
  if (/^\d{1,5}$/.test(text)) return ofNumber(field, text);
  const word = text.toLowerCase();
  return BY_WORD.get(word) ?? BY_WORD.get(word.replace(/[+-]\d+$/, ""));
}

/** How many characters differ between two words, at most: one is left out, added, changed, or swapped with the next. */
function distance(a: string, b: string): number {
  const rows = [Array.from({ length: b.length + 1 }, (_, index) => index)];
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1;
      row[j] = Math.min(rows[i - 1]![j]! + 1, row[j - 1]! + 1, rows[i - 1]![j - 1]! + same);
      if (a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        row[j] = Math.min(row[j]!, rows[i - 2]![j - 2]! + 1);
    }
    rows.push(row);
  }
  return rows.at(-1)!.at(-1)!;
}

/** The level that a word is most like, if it is none and differs little from one. */
export function nearestLevel(word: string): Level | null {
  if (levelOf("level", word)) return null;
  const near = LEVELS.map((level) => ({ level, far: distance(word.toLowerCase(), level) }));
  const best = near.sort((a, b) => a.far - b.far)[0]!;
  return best.far <= 2 ? best.level : null;
}

/** Groups of colours: the levels of one group look the same. */
export type Tone = "error" | "warn" | "info" | "debug" | "none";

export function toneOf(level: string | undefined): Tone {
  switch (level) {
    case "error":
    case "critical":
    case "alert":
    case "fatal":
      return "error";
    case "warn":
      return "warn";
    case "info":
    case "notice":
      return "info";
    case "debug":
    case "trace":
      return "debug";
    default:
      return "none";
  }
}

/** The tones of a stacked bar, from its foot. */
export const TONES: Tone[] = ["error", "warn", "info", "debug", "none"];
