// One self-contained page without a script, for an incident's file: question, range, completeness, bars, rows.

import { buckets, pages, range, total, trailer } from "../state/results";
import { state } from "../state/url";
import { TONES, toneOf, type Tone } from "../lib/levels";
import { columnField, summaryOf, type Row } from "../lib/record";
import { msOf, timeText, zoneName } from "../lib/time";
import { T } from "../strings";
import { offer } from "./commands";
import { columnTitle } from "./grid";
import { bytesText, number } from "./parts";

const ROWS_MAX = 1000;

const FILLS: Record<Tone, string> = {
  error: "#c4362b",
  warn: "#c98a14",
  info: "#4a86b8",
  debug: "#93a1ab",
  none: "#b9c2c8",
};
const escape = (text: string) =>
  text
    .replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`)
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g, "\u00b7");

function bars(): string {
  const list = buckets.value;
  if (!list.length) return "";
  const [low, high] = [msOf(list[0]!.from), msOf(list.at(-1)!.to)];
  const most = Math.max(1, ...list.map(({ count }) => count));
  const rects = list
    .map(({ from, to, count, by }) => {
      const tones: Record<Tone, number> = { error: 0, warn: 0, info: 0, debug: 0, none: count };
      for (const [level, rows] of Object.entries(by ?? {})) {
        tones[toneOf(level)] += rows;
        tones.none -= rows;
      }
      const x = ((msOf(from) - low) / (high - low)) * 1000;
      const width = Math.max(0.8, ((msOf(to) - msOf(from)) / (high - low)) * 1000 - 1);
      let y = 120;
      return TONES.map((tone) => {
        const height = (tones[tone] / most) * 110;
        y -= height;
        return height > 0
          ? `<rect x="${x.toFixed(1)}" y="${y.toFixed(1)}" width="${width.toFixed(1)}" height="${height.toFixed(1)}" fill="${FILLS[tone]}"/>`
          : "";
      }).join("");
    })
    .join("");
  const zone = state.value.tz;
  return (
    `<svg viewBox="0 0 1000 140" role="img" aria-label="${escape(T.histogram)}">${rects}<line x1="0" x2="1000" y1="120" y2="120" stroke="#888"/>` +
    `<text x="0" y="136" font-size="12">${escape(timeText(low, zone, "full"))}</text><text x="1000" y="136" font-size="12" text-anchor="end">${escape(timeText(high, zone, "full"))}</text>` +
    `<text x="0" y="11" font-size="12">${number(most)}</text></svg>`
  );
}

export function reportHtml(): string {
  const { q, cols, tz } = state.value;
  const span = range.value!;
  const found = trailer.value;
  const rows: Row[] = [];
  for (let index = 0; index < Math.min(ROWS_MAX, pages.value?.reached ?? 0); index += 1) {
    const row = pages.value!.get(index);
    if (row) rows.push(row);
  }
  const cell = (row: Row, column: string) => {
    if (column === "time") return timeText(row.time, tz, "full");
    if (column === "level") return row.level ?? "";
    if (column === "message") return summaryOf(row);
    return columnField(row, column)?.text ?? "";
  };
  const complete =
    found?.complete === false
      ? `<p class="bad">${escape(`${T.incomplete} ${found.missing.join("; ")}`)}</p>`
      : `<p>${escape(T.reportComplete)}</p>`;
  const facts: [string, string][] = [
    [T.reportQuery, q || "*"],
    [
      T.timeRange,
      `${span.fromMs > 0 ? timeText(span.fromMs, tz, "full") : T.beginning} – ${timeText(span.toMs, tz, "full")}`,
    ],
    [T.zone, zoneName(tz)],
    [T.records, total.value === null ? T.unknown : number(total.value)],
    [T.reportRows, number(rows.length)],
    [T.reportMade, timeText(Date.now(), tz, "full")],
    [T.reportServer, location.host],
    [T.reportCost, found ? bytesText(found.bytes_scanned) : ""],
  ];
  const style =
    "body{font:14px/1.45 system-ui,sans-serif;margin:2rem;color:#1c2326;background:#fff}h1{font-size:1.3rem}dl{display:grid;grid-template-columns:max-content 1fr;gap:.2rem 1rem}dt{color:#5b686d}dd{margin:0;overflow-wrap:anywhere}svg{width:100%;max-width:70rem;height:auto}table{border-collapse:collapse;font:12px/1.4 ui-monospace,monospace}th,td{text-align:left;vertical-align:top;padding:2px 10px 2px 0;border-bottom:1px solid #e0e5e7}td:last-child{white-space:pre-wrap;overflow-wrap:anywhere}.error td{background:#fdeceb}.warn td{background:#fdf5e3}.bad{color:#a3261c}code{font:13px ui-monospace,monospace}";
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${escape(T.reportTitle)}</title><style>${style}</style></head>
<body><h1>${escape(T.reportTitle)}</h1>
<dl>${facts.map(([name, value]) => `<dt>${escape(name)}</dt><dd>${name === T.reportQuery ? `<code>${escape(value)}</code>` : escape(value)}</dd>`).join("")}</dl>
${complete}
${bars()}
<table><thead><tr>${cols.map((column) => `<th>${escape(columnTitle(column))}</th>`).join("")}</tr></thead>
<tbody>${rows.map((row) => `<tr class="${toneOf(row.level)}">${cols.map((column) => `<td>${escape(cell(row, column))}</td>`).join("")}</tr>`).join("\n")}</tbody></table>
</body></html>
`;
}

export function saveReport() {
  offer(new Blob([reportHtml()], { type: "text/html" }), "report.html");
}
