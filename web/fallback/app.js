// The search page: one query at a time, streamed; the newest rows first.
//
// Text from records only ever becomes text nodes, never markup. Numbers of records stay the digits that the
// server sent: a browser's number has 53 bits, and an id may have more.

// Rows kept in the page; more would slow the browser, and nobody reads them.
const ROWS_MAX = 500;
// Characters of a value that are shown.
const VALUE_CHARS_MAX = 20000;
// Bars of numbers of LogQL, and points of a series that are listed.
const POINTS_MAX = 120;
// Rows of a file that is saved: a browser holds it in memory where it takes a token.
const CSV_ROWS_MAX = 100000;

const byId = (id) => document.getElementById(id);
const [form, query, language, range] = ["search", "query", "language", "range"].map(byId);
const [run, stop, access, token] = ["run", "stop", "access", "token"].map(byId);
const [error, status, hints, rows, histogram] = ["error", "status", "hints", "rows", "histogram"].map(byId);
const csv = byId("csv");
let running = null;

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function clip(text) {
  if (text.length <= VALUE_CHARS_MAX) return text;
  return `${text.slice(0, VALUE_CHARS_MAX)} … ${text.length - VALUE_CHARS_MAX} more characters`;
}

// Strings as a whole, signs, and all else.
const TOKENS = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s{}[\],:"]+/g;

// The members of an object of JSON: names with texts, which are values as they are written, but for the quotes
// of strings.
function membersOf(line) {
  const members = [];
  let [depth, name, start] = [0, null, null];
  const end = (at) => {
    if (start === null) return;
    const written = line.slice(start, at).trim();
    members.push([name, written.startsWith('"') ? JSON.parse(written) : written]);
    [name, start] = [null, null];
  };
  for (const { 0: sign, index } of line.matchAll(TOKENS)) {
    if (depth === 1 && sign === ":" && start === null) start = index + 1;
    else if (depth === 1 && (sign === "," || sign === "}")) end(index);
    else if (depth === 1 && start === null && sign.startsWith('"')) name = JSON.parse(sign);
    if (sign === "{" || sign === "[") depth += 1;
    if (sign === "}" || sign === "]") depth -= 1;
  }
  return members;
}

function valueOf(record, name) {
  return record.find(([known]) => known === name)?.[1];
}

function summaryOf(record) {
  const message = valueOf(record, "_msg");
  if (message !== undefined) return message;
  const fields = record.filter(([name]) => !name.startsWith("_"));
  return fields.map(([name, value]) => `${name}=${clip(value)}`).join(" ");
}

// UTC, with as many digits of the fraction as are needed in threes.
function timeText(time) {
  return time.replace("T", " ").replace(/(\.\d{3}(?:\d{3})??)(?:000)+Z$/, "$1Z");
}

function row(time, text, members) {
  const details = element("details");
  const summary = element("summary");
  summary.append(element("time", timeText(time), { datetime: time }), element("span", clip(text)));
  details.append(summary);
  details.addEventListener("toggle", () => {
    if (!details.open || details.lastChild !== summary) return;
    const list = element("dl");
    for (const [name, value] of members) list.append(element("dt", name), element("dd", clip(value)));
    details.append(list);
  });
  const item = element("li");
  item.append(details);
  return item;
}

// Shows what is wrong, underlined where it is wrong in the query.
function showError(problem) {
  error.replaceChildren();
  error.hidden = false;
  if (problem.start !== undefined) {
    const characters = [...query.value];
    const part = (from, to) => characters.slice(from, to).join("");
    const wrong = part(problem.start, problem.end) || " ";
    error.append(part(0, problem.start), element("mark", wrong), part(problem.end), "\n");
  }
  error.append(problem.message);
  if (problem.hint) error.append(`; ${problem.hint}`);
}

// The token stays in this tab and ends with it.
const TOKEN_KEY = "logpond-token";

function headers() {
  const known = sessionStorage.getItem(TOKEN_KEY);
  return known ? { Authorization: `Bearer ${known}` } : {};
}

async function answer(url, signal) {
  const response = await fetch(url, { signal, headers: headers() });
  if (response.ok) return response;
  const text = await response.text().catch(() => "");
  let problem = null;
  try {
    problem = JSON.parse(text).error;
  } catch {
    // Loki's interface says it in plain text.
    problem = text ? { message: text } : null;
  }
  // Without a token, or with one that does not suffice, another one is asked for.
  if (response.status === 401 || problem?.code === "role_missing") {
    access.hidden = false;
    token.focus();
    if (problem) delete problem.hint;
  }
  throw problem?.message ? problem : { message: `the server answered ${response.status}` };
}

// The lines of an answer as text.
async function* lines(url, signal) {
  const response = await answer(url, signal);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n");
    rest = parts.pop();
    for (const part of parts) if (part) yield part;
  }
}

const isTrailer = (line) => line.startsWith('{"_trailer"');

async function showRows(parameters, signal) {
  const found = new URLSearchParams({ ...parameters, limit: ROWS_MAX, direction: "backward" });
  let count = 0;
  for await (const line of lines(`api/v1/query?${found}`, signal)) {
    // Only now it is clear that there is an answer; an error leaves what was there.
    if (!count) clear();
    access.hidden = true;
    if (isTrailer(line)) {
      showTrailer(JSON.parse(line)._trailer, count);
      csv.hidden = true;
      if (count) offerCsv(parameters);
      return;
    }
    const record = membersOf(line);
    rows.append(row(valueOf(record, "_time"), summaryOf(record), record));
    count += 1;
    status.textContent = `${count} records …`;
  }
  throw { message: "the answer broke off" };
}

function showTrailer(trailer, count) {
  const parts = [`${count}${trailer.more ? " newest" : ""} records`];
  parts.push(`${trailer.bytes_scanned.toLocaleString()} bytes read`, `${Math.round(trailer.elapsed_ms)} ms`);
  if (trailer.more) parts.push("more exist: narrow the search");
  if (!count && trailer.newest) parts.push(`the newest record is of ${trailer.newest}`);
  if (!trailer.complete) parts.push(`incomplete: ${trailer.missing.join("; ")}`);
  status.textContent = parts.join(" · ");
  status.title = `searched from ${trailer.from ?? "the first record"} to ${trailer.to ?? "now"}`;
  status.className = trailer.complete ? "" : "partial";
  hints.replaceChildren(...(trailer.hints ?? []).map(hintItem));
}

// What was probably meant, as a link that asks it.
function hintItem(hint) {
  const item = element("li", hint.message);
  if (hint.query === undefined && !hint.from && !hint.to) return item;
  const wanted = { ...asked(), q: hint.query ?? query.value };
  if (hint.from) wanted.from = hint.from;
  if (hint.to) {
    wanted.to = hint.to;
    // Its beginning may lie behind it by now.
    delete wanted.from;
  }
  const text = hint.query ?? "search there";
  item.append(": ", element("a", text, { href: `?${new URLSearchParams(wanted)}` }));
  return item;
}

// The file has no cells that a spreadsheet would compute.
function offerCsv(parameters) {
  const limits = { limit: CSV_ROWS_MAX, direction: "backward" };
  csv.href = `api/v1/query?${new URLSearchParams({ ...parameters, ...limits, format: "csv", defuse: true })}`;
  csv.hidden = false;
}

// A link shows no token.
async function saveCsv(event) {
  if (!sessionStorage.getItem(TOKEN_KEY)) return;
  event.preventDefault();
  const response = await fetch(csv.href, { headers: headers() }).catch(() => null);
  if (!response?.ok) {
    const answer = await response?.json().catch(() => null);
    return showError(answer?.error ?? { message: "the file cannot be saved" });
  }
  const table = await response.blob().catch(() => null);
  if (!table) return showError({ message: "the answer broke off" });
  const address = URL.createObjectURL(table);
  element("a", "", { href: address, download: csv.download }).click();
  URL.revokeObjectURL(address);
}

function clear() {
  rows.replaceChildren();
  histogram.replaceChildren();
  hints.replaceChildren();
}

// Bars of these heights, each with its title.
function showBars(bars) {
  const most = Math.max(Number.MIN_VALUE, ...bars.map((bar) => bar.value));
  histogram.replaceChildren(...bars.map(({ title, value }) => {
    const bar = element("span", undefined, { title });
    // A style attribute is not allowed by the page's policy; a property is.
    bar.style.height = value > 0 ? `${Math.max(2, (100 * value) / most)}%` : "0";
    return bar;
  }));
}

async function showHistogram(parameters, signal) {
  const buckets = [];
  for await (const line of lines(`api/v1/histogram?${new URLSearchParams(parameters)}`, signal)) {
    if (!isTrailer(line)) buckets.push(JSON.parse(line));
  }
  showBars(buckets.map(({ from, count }) => ({ title: `${from}: ${count}`, value: count })));
}

// Times as Loki's interface has them.
function lokiTimes({ from, to }) {
  const times = {};
  if (/^\d+(ms|s|m|h|d|w|y)$/.test(from ?? "")) times.since = from;
  else if (from) times.start = from.replace(/^@/, "");
  if (to) times.end = to.replace(/^@/, "");
  return times;
}

const labelsText = (labels) =>
  `{${Object.entries(labels).map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(", ")}}`;

const secondsText = (seconds) => new Date(1000 * seconds).toISOString();

// LogQL, as links of alerts have it: lines, or the series of numbers.
async function showLogql(parameters, signal) {
  const { logql, ...times } = parameters;
  const wanted = { query: logql, limit: ROWS_MAX, ...lokiTimes(times) };
  const response = await answer(`loki/api/v1/query_range?${new URLSearchParams(wanted)}`, signal);
  const { data, warnings } = await response.json();
  clear();
  access.hidden = true;
  const count = data.resultType === "streams" ? showStreams(data.result) : showSeries(data.result);
  const what = data.resultType === "streams" ? "lines" : "series";
  status.textContent = [`${count} ${what}`, ...(warnings ?? [])].join(" · ");
  status.className = warnings?.length ? "partial" : "";
}

function showStreams(streams) {
  const found = streams.flatMap(({ stream, values }) =>
    values.map(([nanos, line]) => ({ nanos, line, stream })));
  // All have as many digits.
  found.sort((a, b) => (a.nanos < b.nanos ? 1 : -1));
  for (const { nanos, line, stream } of found) {
    const time = `${secondsText(Number(nanos.slice(0, -9))).slice(0, 19)}.${nanos.slice(-9)}Z`;
    rows.append(row(time, line, [...Object.entries(stream), ["_line", line]]));
  }
  return found.length;
}

function showSeries(series) {
  const sums = new Map();
  for (const { metric, values, value } of series) {
    const points = values ?? [value];
    const [seconds, last] = points.at(-1);
    const listed = points.slice(-POINTS_MAX).map(([at, number]) => [secondsText(at), number]);
    rows.append(row(secondsText(seconds), `${last}  ${labelsText(metric)}`, listed.reverse()));
    for (const [at, number] of points) sums.set(at, (sums.get(at) ?? 0) + Number(number));
  }
  const bars = [...sums].sort(([a], [b]) => a - b).slice(-POINTS_MAX);
  showBars(bars.map(([at, value]) => ({ title: `${secondsText(at)}: ${value}`, value })));
  return series.length;
}

// What is asked, as parameters of the page's address; times are those of the address, if they are chosen.
function asked() {
  const parameters = { [language.value]: query.value };
  const times = JSON.parse(range.value);
  for (const name of ["from", "to"]) if (times[name]) parameters[name] = times[name];
  return parameters;
}

async function search() {
  running?.abort();
  const mine = new AbortController();
  running = mine;
  error.hidden = true;
  status.className = "";
  status.textContent = "searching …";
  [run.hidden, stop.hidden] = [true, false];
  const parameters = asked();
  try {
    if (language.value === "logql") await showLogql(parameters, mine.signal);
    else {
      await showRows(parameters, mine.signal);
      await showHistogram(parameters, mine.signal);
    }
  } catch (problem) {
    if (mine.signal.aborted) {
      if (running === mine) status.textContent = `stopped: ${rows.childElementCount} records, not all`;
    } else {
      status.textContent = "";
      showError(problem);
    }
  }
  if (running === mine) [run.hidden, stop.hidden] = [false, true];
}

// Chooses a range; one that is not among the choices becomes one.
function choose(from, to) {
  const times = to ? { from: from || undefined, to } : { from };
  const value = JSON.stringify(times);
  byId("given")?.remove();
  if (![...range.options].some((option) => option.value === value)) {
    const text = [from && `from ${from}`, to && `to ${to}`].filter(Boolean).join(" ");
    range.append(element("option", text, { id: "given", value }));
  }
  range.value = value;
}

function fromAddress() {
  const parameters = new URLSearchParams(location.search);
  language.value = parameters.has("logql") ? "logql" : "q";
  query.value = parameters.get(language.value) ?? "";
  const [from, to] = [parameters.get("from"), parameters.get("to")];
  choose(from || (to ? "" : "1h"), to);
  search();
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  history.pushState(null, "", `?${new URLSearchParams(asked())}`);
  search();
});
csv.addEventListener("click", saveCsv);
access.addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem(TOKEN_KEY, token.value.trim());
  token.value = "";
  search();
});
for (const choice of [range, language]) choice.addEventListener("change", () => form.requestSubmit());
stop.addEventListener("click", () => running?.abort());
addEventListener("keydown", (event) => {
  if (event.key === "Escape") running?.abort();
});
addEventListener("popstate", fromAddress);
fromAddress();
