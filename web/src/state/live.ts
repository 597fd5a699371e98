// The live tail: a query that follows, with a buffer that nothing moves while someone reads.

import { signal } from "@preact/signals";
import { isAbort, lines, problemFrom, serverNow } from "../api/client";
import { LIST_PARAMS } from "../api/features";
import { parseRow, type Row } from "../lib/record";
import { TailBuffer } from "../lib/tail";
import { isoOf } from "../lib/time";

export const tail = new TailBuffer();
/** Changes when something on the screen has to. */
export const tailVersion = signal(0);
export const tailPaused = signal(false);
export const tailWaiting = signal(0);
export const tailRate = signal(0);
export const tailDropped = signal(0);
export const tailState = signal<"off" | "on" | "waiting">("off");
export const tailNotice = signal("");
/** Rows that came before those on the screen, since the list was last drawn. */
export const tailCame = signal(0);

const RETRY_MS = [500, 1000, 2000, 5000];
/** Newest records that a tail begins with. */
const BACKLOG_ROWS = 100;

let timer = 0;
const parsed = new WeakMap<object, Row>();
const boxes = new Map<string, { line: string }>();

export function tailRow(index: number): Row | undefined {
  const line = tail.shown[index];
  if (line === undefined) return undefined;
  let box = boxes.get(line);
  if (!box) {
    if (boxes.size > 1000) boxes.clear();
    boxes.set(line, (box = { line }));
  }
  let row = parsed.get(box);
  if (!row) parsed.set(box, (row = parseRow(line)));
  return row;
}

export function stopTail() {
  clearInterval(timer);
  tailState.value = "off";
}

export function startTail(q: string, signal: AbortSignal, failed: (error: unknown) => void) {
  tail.clear();
  tail.paused = false;
  tailPaused.value = false;
  tailNotice.value = "";
  tailState.value = "on";
  clearInterval(timer);
  timer = window.setInterval(draw, 250);
  void follow(q, signal, failed);
}

function draw() {
  const came = tail.flush();
  tailWaiting.value = tail.waitingCount;
  tailDropped.value = tail.dropped;
  tailRate.value = tail.rate(Date.now());
  if (came) {
    tailCame.value += came;
    tailVersion.value += 1;
  }
}

export function pauseTail() {
  if (tailState.value === "off") return;
  tail.paused = true;
  tailPaused.value = true;
}

export function resumeTail() {
  tail.paused = false;
  tailPaused.value = false;
  draw();
  tailVersion.value += 1;
}

const TIME = /"_time":"([^"]+)"/;
const ID = /"_id":"([^"]+)"/;

const ID_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/** The position before everything that is received from this instant on. Ids begin with the time of receipt. */
export function positionAt(ms: number): string {
  let [rest, text] = [Math.floor(ms), ""];
  for (let digit = 0; digit < 10; digit += 1) {
    text = ID_DIGITS[rest % 32]! + text;
    rest = Math.floor(rest / 32);
  }
  return `${isoOf(ms)}_${text}${"0".repeat(16)}`;
}

async function follow(q: string, signal: AbortSignal, failed: (error: unknown) => void) {
  const seen = new Set<string>();
  try {
    await backlog(q, seen, signal);
  } catch (error) {
    if (signal.aborted) return;
    if (isRefused(error)) {
      tailState.value = "off";
      failed(error);
      return;
    }
  }
  // Late records count, too: the range is open, and the position is one of receipt.
  let cursor = positionAt(Math.min(Date.now(), serverNow()) - 2000);
  let position: string | undefined;
  for (let attempt = 0; !signal.aborted; attempt += 1) {
    try {
      const where = position ? { position } : { cursor };
      await lines(
        "api/v1/query",
        { ...LIST_PARAMS, q, from: "@0", follow: true, positions: true, ...where },
        signal,
        (batch) => {
          const now = Date.now();
          attempt = 0;
          if (tailState.value === "waiting") tailState.value = "on";
          for (const line of batch) {
            if (line.startsWith('{"_position"'))
              position = (JSON.parse(line) as { _position: string })._position;
            else if (line.startsWith('{"_notice"'))
              tailNotice.value = (JSON.parse(line) as { _notice: { message: string } })._notice.message;
            else if (!line.startsWith('{"_progress"')) {
              const [time, id] = [TIME.exec(line)?.[1], ID.exec(line)?.[1]];
              if (!time || !id) continue;
              cursor = `${time}_${id}`;
              if (!seen.delete(id)) tail.push(line, now);
            }
          }
        },
        {},
        true,
      );
    } catch (error) {
      if (signal.aborted || isAbort(error)) return;
      if (isRefused(error)) {
        tailState.value = "off";
        failed(error);
        return;
      }
    }
    if (signal.aborted) return;
    tailState.value = "waiting";
    const wait = RETRY_MS[Math.min(attempt, RETRY_MS.length - 1)]!;
    await new Promise((done) => setTimeout(done, wait));
  }
}

function isRefused(error: unknown): boolean {
  const { status } = problemFrom(error);
  return status >= 400 && status < 500 && status !== 429;
}

async function backlog(q: string, seen: Set<string>, signal: AbortSignal) {
  const found: string[] = [];
  await lines(
    "api/v1/query",
    { ...LIST_PARAMS, q, from: "@0", limit: BACKLOG_ROWS, direction: "backward" },
    signal,
    (batch) => {
      found.push(...batch);
    },
  );
  for (const line of found) seen.add(ID.exec(line)?.[1] ?? "");
  tail.shown = [...tail.shown, ...found];
  tailVersion.value += 1;
}
