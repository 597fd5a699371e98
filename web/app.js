// The search page: one query at a time, streamed; the newest rows first.
//
// Text from records only ever becomes text nodes, never markup.

// Rows kept in the page; more would slow the browser, and nobody reads them.
const ROWS_MAX = 500;
// Characters of a value that are shown.
const VALUE_CHARS_MAX = 20000;

const byId = (id) => document.getElementById(id);
const [form, query, range, run, stop] = ["search", "query", "range", "run", "stop"].map(byId);
const [access, token] = ["access", "token"].map(byId);
const [error, status, rows, histogram] = ["error", "status", "rows", "histogram"].map(byId);
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

function shown(value) {
  return clip(typeof value === "string" ? value : JSON.stringify(value));
}

function summaryOf(record) {
  if (record._msg !== undefined) return record._msg;
  const fields = Object.entries(record).filter(([name]) => !name.startsWith("_"));
  return fields.map(([name, value]) => `${name}=${shown(value)}`).join(" ");
}

// UTC, with as many digits of the fraction as are needed in threes.
function timeOf(record) {
  return record._time.replace("T", " ").replace(/(\.\d{3}(?:\d{3})??)(?:000)+Z$/, "$1Z");
}

function row(record) {
  const details = element("details");
  const summary = element("summary");
  summary.append(
    element("time", timeOf(record), { datetime: record._time }),
    element("span", clip(summaryOf(record))),
  );
  details.append(summary);
  details.addEventListener("toggle", () => {
    if (!details.open || details.lastChild !== summary) return;
    const list = element("dl");
    for (const [name, value] of Object.entries(record)) {
      list.append(element("dt", name), element("dd", shown(value)));
    }
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

async function* lines(url, signal) {
  const response = await fetch(url, { signal, headers: headers() });
  if (!response.ok) {
    const answer = await response.json().catch(() => null);
    // Without a token, or with one that does not suffice, another one is asked for.
    if (response.status === 401 || answer?.error?.code === "role_missing") {
      access.hidden = false;
      token.focus();
      if (answer?.error) delete answer.error.hint;
    }
    throw answer?.error ?? { message: `the server answered ${response.status}` };
  }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n");
    rest = parts.pop();
    for (const part of parts) if (part) yield JSON.parse(part);
  }
}

async function showRows(parameters, signal) {
  const found = new URLSearchParams({ ...parameters, limit: ROWS_MAX, direction: "backward" });
  let count = 0;
  let newest;
  for await (const record of lines(`api/v1/query?${found}`, signal)) {
    // Only now it is clear that there is an answer; an error leaves what was there.
    if (!count) clear();
    access.hidden = true;
    if (record._trailer) {
      showTrailer(record._trailer, count);
      return newest;
    }
    newest ??= record._time;
    rows.append(row(record));
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
  status.className = trailer.complete ? "" : "partial";
}

function clear() {
  rows.replaceChildren();
  histogram.replaceChildren();
}

// Over all time most buckets would be empty: from the first record that matches to the last one.
async function rangeOfAll(parameters, newest, signal) {
  const first = new URLSearchParams({ ...parameters, limit: 1, direction: "forward" });
  for await (const record of lines(`api/v1/query?${first}`, signal)) {
    // The end is excluded, so it is a second later.
    const to = new Date(Date.parse(newest) + 1000).toISOString();
    if (record._time) return { from: record._time, to };
  }
  return {};
}

async function showHistogram(parameters, signal) {
  const buckets = [];
  for await (const bucket of lines(`api/v1/histogram?${new URLSearchParams(parameters)}`, signal)) {
    if (!bucket._trailer) buckets.push(bucket);
  }
  const most = Math.max(1, ...buckets.map((b) => b.count));
  histogram.replaceChildren(...buckets.map((bucket) => {
    const title = `${bucket.from}: ${bucket.count}`;
    const bar = element("span", undefined, { title });
    // A style attribute is not allowed by the page's policy; a property is.
    bar.style.height = bucket.count ? `${Math.max(2, (100 * bucket.count) / most)}%` : "0";
    return bar;
  }));
}

async function search() {
  running?.abort();
  const mine = new AbortController();
  running = mine;
  error.hidden = true;
  status.className = "";
  status.textContent = "searching …";
  [run.hidden, stop.hidden] = [true, false];
  const parameters = { q: query.value, from: range.value };
  try {
    const newest = await showRows(parameters, mine.signal);
    if (parameters.from !== "@0") await showHistogram(parameters, mine.signal);
    else if (newest) {
      const between = await rangeOfAll(parameters, newest, mine.signal);
      await showHistogram({ ...parameters, ...between }, mine.signal);
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

function fromAddress() {
  const parameters = new URLSearchParams(location.search);
  query.value = parameters.get("q") ?? "";
  const from = parameters.get("from");
  if (from && [...range.options].some((option) => option.value === from)) range.value = from;
  search();
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  history.pushState(null, "", `?${new URLSearchParams({ q: query.value, from: range.value })}`);
  search();
});
access.addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem(TOKEN_KEY, token.value.trim());
  token.value = "";
  search();
});
range.addEventListener("change", () => form.requestSubmit());
stop.addEventListener("click", () => running?.abort());
addEventListener("keydown", (event) => {
  if (event.key === "Escape") running?.abort();
});
addEventListener("popstate", fromAddress);
fromAddress();
