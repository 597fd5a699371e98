// A list of rows of any number: only those on the screen are elements.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { signal } from "@preact/signals";
import type { VNode } from "preact";
import {
  GROUPS,
  META,
  columnField,
  cursorOf,
  fieldOf,
  fieldOfColumn,
  summaryOf,
  type Row,
} from "../lib/record";
import { own } from "../lib/own";
import { textParts, markParts, type Part } from "../lib/paint";
import { needles } from "../lib/query";
import { Offsets } from "../lib/offsets";
import { toneOf } from "../lib/levels";
import { timeText } from "../lib/time";
import { shownLang, shownQuestion } from "../state/results";
import { go, onLeave, returnRow, state } from "../state/url";
import { T } from "../strings";
import { Button, Parts, bytesText, number } from "./parts";
import { Detail, FilterButtons } from "./detail";

/** Elements cannot be higher than this in every browser; a higher list is scrolled in proportion. */
const ELEMENT_PX_MAX = 8_000_000;
const OVERSCAN_ROWS = 8;
/** The height of the line with the names of columns. */
const HEAD_PX = 26;
const LINE_CHARS_MAX = 600;
const DAY_MS = 86_400_000;

export interface Rows {
  count: number;
  get(index: number): Row | undefined;
  want?(first: number, last: number): void;
  /** The end was not reached: further rows are read when the list comes there. */
  open?: boolean;
}

export interface GridProps {
  rows: Rows;
  version: number;
  columns: string[];
  label: string;
  /** Rows that came before the first since the version before. */
  came?: number;
  onReading?: (reading: boolean) => void;
  scope?: string;
}

/** Where the reader is: index of the active row. */
export const activeRow = signal(-1);
export const openRows = signal<ReadonlySet<string>>(new Set());

const WIDTHS_KEY = "logpond-widths";
const DEFAULT_WIDTHS = { time: 158, level: 62, host: 130, app: 116 };
const OTHER_WIDTH = 140;
const [WIDTH_MIN, WIDTH_MAX, WIDTH_STEP] = [40, 1200, 10];
export const widths = signal<Record<string, number>>(storedWidths());

function storedWidths(): Record<string, number> {
  try {
    return JSON.parse(localStorage.getItem(WIDTHS_KEY) ?? "{}") as Record<string, number>;
  } catch {
    return {};
  }
}

function setWidth(column: string, px: number) {
  widths.value = { ...widths.value, [column]: Math.round(Math.min(WIDTH_MAX, Math.max(WIDTH_MIN, px))) };
  try {
    localStorage.setItem(WIDTHS_KEY, JSON.stringify(widths.value));
  } catch {
    // Widths then last as long as the page.
  }
}

export const widthOf = (column: string) =>
  own(widths.value, column) ?? own(DEFAULT_WIDTHS, column) ?? OTHER_WIDTH;
export const columnTitle = (column: string) => own(T.columnTitles, column) ?? fieldOfColumn(column);
/** The class of a column. A name may have any character. */
const columnClass = (column: string) => `col-${column.replace(/[^\w-]/g, "-")}`;

const keyOf = (row: Row, index: number) => (row.id ? cursorOf(row) : `${row.time} ${index}`);

export function toggleRow(row: Row, index: number) {
  const next = new Set(openRows.value);
  const key = keyOf(row, index);
  if (!next.delete(key)) next.add(key);
  openRows.value = next;
}

function cellParts(
  row: Row,
  column: string,
  wrap: boolean,
  marks: { text: string; fold: boolean }[],
  zone: string,
  hasDates: boolean,
): Part[] {
  if (column === "time") {
    const text = timeText(row.time, zone, "time");
    // A narrow screen has no room for both the date and the fraction.
    return [{ text: !narrow.value ? text : hasDates ? text.slice(0, 14) : text.slice(6) }];
  }
  if (column === "level") return [{ text: row.level ?? "" }];
  if (column === "message") {
    const request = accessParts(row, marks);
    if (request) return request;
    let text = summaryOf(row);
    if (!wrap) text = text.slice(0, LINE_CHARS_MAX).replace(/\r?\n/g, " ↵ ");
    return row.message === undefined ? fieldParts(row, marks) : markParts(textParts(text), marks);
  }
  const field = columnField(row, column);
  return field ? markParts(textParts(field.text.slice(0, LINE_CHARS_MAX)), marks) : [];
}

/** True on a narrow screen: host and app are then seen in the open record only. */
const narrowQuery = matchMedia("(max-width: 700px)");
export const narrow = signal(narrowQuery.matches);
narrowQuery.addEventListener("change", (event) => {
  narrow.value = event.matches;
});

/** A request of an access log, in the order in which it is read. The line itself is in the open record. */
function accessParts(row: Row, marks: { text: string; fold: boolean }[]): Part[] | null {
  const text = (name: string) => fieldOf(row, name)?.text;
  const [status, method, path] = [text("status"), text("method"), text("path")];
  if (!status || !method || !path || !/^[1-5]\d\d$/.test(status) || text("remote_addr") === undefined)
    return null;
  const query = text("query");
  const bytes = text("bytes");
  const parts: Part[] = [
    { text: status, tone: status >= "500" ? "red" : status >= "400" ? "yellow" : "green" },
    { text: ` ${method} ` },
    { text: `${path}${query ? `?${query}` : ""}`.slice(0, LINE_CHARS_MAX) },
    {
      text: `  ${bytes !== undefined ? `${bytes} B  ` : ""}${text("remote_addr")}  ${(text("agent") ?? "").slice(0, 200)}`,
      tone: "dim",
    },
  ];
  return markParts(parts, marks);
}

function fieldParts(row: Row, marks: { text: string; fold: boolean }[]): Part[] {
  const parts: Part[] = [];
  let left = LINE_CHARS_MAX;
  for (const { name, text } of row.fields) {
    if (META.has(name)) continue;
    if (left <= 0) break;
    parts.push(
      { text: `${parts.length ? "  " : ""}${name}=`, tone: "dim" },
      ...markParts(textParts(text.slice(0, left)), marks),
    );
    left -= name.length + text.length + 2;
  }
  return parts;
}

interface Drawn {
  row: Row | undefined;
  top: number;
  node: VNode;
}

export interface GridHandle {
  move(step: number): void;
  toggle(): void;
  /** Opens or closes the active row. */
  unfold(open: boolean): void;
  top(): void;
  bottom(): void;
  close(): boolean;
  focus(): void;
}
let handle: GridHandle | null = null;
/** The list on the screen, for keys. */
export const grid = () => handle;

export function Grid({ rows, version, columns: chosen, label, came = 0, onReading, scope = "" }: GridProps) {
  const { wrap, dense, tz } = state.value;
  const lang = shownLang.value;
  const question = shownQuestion();
  const q = question?.q ?? "";
  const hasDates = question !== null && question.span.toMs - question.span.fromMs > DAY_MS;
  const base = dense ? 20 : 25;
  const columns = narrow.value ? chosen.filter((column) => column !== "host" && column !== "app") : chosen;
  const box = useRef<HTMLDivElement>(null);
  const offsets = useRef(new Offsets(base, rows.count));
  const place = useRef({ virtual: 0, scroll: 0 });
  const [, redraw] = useState(0);
  const [height, setHeight] = useState(600);
  const marks = useMemo(() => (lang === "q" ? needles(q) : []), [lang, q]);
  const drawn = useRef<{ form: string; lines: Map<number, Drawn> }>({ form: "", lines: new Map() });
  const reading = useRef(onReading);
  reading.current = onReading;
  const seenCame = useRef(came);

  // Heights belong to a result and a form of the list.
  const form = `${base} ${wrap} ${columns.join()} ${scope}`;
  const lastForm = useRef(form);
  if (lastForm.current !== form) {
    lastForm.current = form;
    offsets.current.clear(base, rows.count);
    place.current = { virtual: 0, scroll: 0 };
  }
  if (came !== seenCame.current) {
    if (came > seenCame.current) offsets.current.shift(came - seenCame.current);
    seenCame.current = came;
  }
  offsets.current.count = rows.count;

  const total = offsets.current.total;
  const physical = Math.min(total, ELEMENT_PX_MAX);
  const scaled = total > physical;
  const virtual = scaled ? place.current.virtual : place.current.scroll;

  const scrollTo = (target: number) => {
    const element = box.current!;
    if (scaled && Math.abs(target - virtual) > height) {
      element.scrollTop = (target / (total - height)) * (physical - height);
      place.current = { virtual: target, scroll: element.scrollTop };
    } else element.scrollTop += target - virtual;
  };

  const onScroll = () => {
    const element = box.current!;
    const { scrollTop, clientHeight: whole } = element;
    // The head takes a part of the height, and scrolls nothing.
    const clientHeight = whole - HEAD_PX;
    const at = place.current;
    if (scaled) {
      const delta = scrollTop - at.scroll;
      const max = physical - clientHeight;
      if (scrollTop <= 0) at.virtual = 0;
      else if (scrollTop >= max - 1) at.virtual = total - clientHeight;
      else if (Math.abs(delta) < clientHeight * 2)
        at.virtual = Math.min(Math.max(0, at.virtual + delta), total - clientHeight);
      else at.virtual = (scrollTop / max) * (total - clientHeight);
    }
    at.scroll = scrollTop;
    onReading?.(scrollTop > 4);
    redraw((n) => n + 1);
  };

  useLayoutEffect(() => {
    const element = box.current!;
    const measured = () => setHeight(element.clientHeight - HEAD_PX);
    const observer = new ResizeObserver(measured);
    observer.observe(element);
    measured();
    return () => observer.disconnect();
  }, []);

  // Another result begins at its first row, or where the reader left it.
  const returning = useRef<number | null>(null);
  useLayoutEffect(() => {
    box.current!.scrollTop = 0;
    place.current = { virtual: 0, scroll: 0 };
    activeRow.value = -1;
    returning.current = state.value.live ? null : returnRow();
  }, [scope]);
  useLayoutEffect(() => {
    const index = returning.current;
    if (index === null || rows.count <= index) return;
    returning.current = null;
    scrollTo(offsets.current.offsetOf(index));
  });
  useEffect(() => {
    onLeave(() => {
      const at = place.current;
      return offsets.current.indexAt(at.virtual || at.scroll);
    });
    return () => onLeave(() => 0);
  }, []);

  const first = Math.max(0, offsets.current.indexAt(virtual) - OVERSCAN_ROWS);
  const last = Math.min(rows.count - 1, offsets.current.indexAt(virtual + height) + OVERSCAN_ROWS);

  useEffect(() => {
    rows.want?.(first, Math.max(first, last));
  }, [first, last, version, rows]);

  // An open record grows as it is loaded.
  const sizes = useRef<ResizeObserver | null>(null);
  // What is read stays where it is, however high the rows before it turn out to be.
  const measure = (elements: Iterable<HTMLElement>) => {
    const at = place.current;
    const top = offsets.current.indexAt(scaled ? at.virtual : at.scroll);
    let [changed, before] = [false, 0];
    for (const element of elements) {
      if (!element.isConnected) continue;
      const index = Number(element.dataset.index);
      const tall = element.dataset.tall === "1";
      if (tall) sizes.current?.observe(element);
      const old = offsets.current.heightOf(index);
      const height = tall ? element.offsetHeight : offsets.current.rowHeight;
      if (!offsets.current.setHeight(index, height)) continue;
      changed = true;
      if (index < top) before += height - old;
    }
    if (!changed) return;
    anchor.current += before;
    redraw((n) => n + 1);
  };
  const anchor = useRef(0);
  const measureNow = useRef(measure);
  measureNow.current = measure;
  useEffect(() => {
    sizes.current = new ResizeObserver((entries) =>
      measureNow.current(entries.map(({ target }) => target as HTMLElement)),
    );
    redraw((n) => n + 1);
    return () => sizes.current?.disconnect();
  }, []);

  // Rows that are wrapped or open tell their heights once they are drawn.
  useLayoutEffect(() => {
    if (anchor.current) {
      const moved = anchor.current;
      anchor.current = 0;
      if (scaled) place.current.virtual += moved;
      else {
        box.current!.scrollTop += moved;
        place.current.scroll = box.current!.scrollTop;
      }
      redraw((n) => n + 1);
    }
    measure(box.current!.querySelectorAll<HTMLElement>("[data-index]"));
  });

  const reveal = (index: number) => {
    const top = offsets.current.offsetOf(index);
    const bottom = top + Math.min(offsets.current.heightOf(index), height - base * 2);
    let target = virtual;
    if (top < virtual) target = top;
    else if (bottom > virtual + height - base) target = bottom - height + base * 2;
    if (target !== virtual) scrollTo(target);
  };

  const setActive = (index: number) => {
    activeRow.value = Math.max(0, Math.min(rows.count - 1, index));
    reveal(activeRow.value);
    onReading?.(true);
  };
  handle = {
    move: (step) =>
      setActive(activeRow.value < 0 ? first + (first ? OVERSCAN_ROWS : 0) : activeRow.value + step),
    toggle: () => {
      const row = rows.get(activeRow.value);
      if (row) toggleRow(row, activeRow.value);
      onReading?.(true);
    },
    unfold: (open) => {
      const row = rows.get(activeRow.value);
      if (row && openRows.value.has(keyOf(row, activeRow.value)) !== open) handle!.toggle();
    },
    top: () => {
      box.current!.scrollTop = 0;
      activeRow.value = Math.min(0, rows.count - 1);
    },
    bottom: () => {
      box.current!.scrollTop = physical;
      activeRow.value = rows.count - 1;
    },
    close: () => {
      const isOpen = (index: number) => {
        const row = rows.get(index);
        return row !== undefined && openRows.value.has(keyOf(row, index));
      };
      // The row of the cursor, or the last one on the screen that is open.
      const index = isOpen(activeRow.value) ? activeRow.value : shown.findLast(isOpen);
      if (index === undefined) return false;
      // The focus does not go with the record.
      if (box.current!.contains(document.activeElement)) box.current!.focus();
      toggleRow(rows.get(index)!, index);
      return true;
    },
    focus: () => box.current?.focus(),
  };
  useEffect(
    () => () => {
      handle = null;
    },
    [],
  );

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.target !== box.current || event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(height / base) - 2);
    const steps: Record<string, () => void> = {
      ArrowDown: () => handle!.move(1),
      ArrowUp: () => handle!.move(-1),
      PageDown: () => setActive(activeRow.value + page),
      PageUp: () => setActive(activeRow.value - page),
      ArrowRight: () => handle!.unfold(true),
      ArrowLeft: () => handle!.unfold(false),
      Home: () => handle!.top(),
      End: () => handle!.bottom(),
    };
    const row = rows.get(activeRow.value);
    if (event.key === "Enter" && event.shiftKey && row?.id) {
      event.preventDefault();
      return go({ sel: cursorOf(row) });
    }
    const act = steps[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  };

  const template = columns
    .map((column) =>
      column === "message"
        ? `minmax(${narrow.value ? 160 : 240}px, 1fr)`
        : `${narrow.value && column === "time" ? (hasDates ? 124 : 104) : widthOf(column)}px`,
    )
    .join(" ");
  const shown: number[] = [];
  for (let index = first; index <= last; index += 1) shown.push(index);
  const shift = scaled ? place.current.scroll - virtual : 0;

  // A line that is as it was is not drawn again: then a scroll draws only the lines that come.
  const lineForm = `${scope} ${template} ${columns.join()} ${wrap} ${tz} ${hasDates} ${lang} ${q}`;
  const before = drawn.current.form === lineForm ? drawn.current.lines : new Map<number, Drawn>();
  const lines = new Map<number, Drawn>();
  drawn.current = { form: lineForm, lines };
  const line = (index: number) => {
    const row = rows.get(index);
    const top = offsets.current.offsetOf(index) + shift;
    const known = before.get(index);
    const same = known && known.row === row && known.top === top ? known : null;
    const node = same?.node ?? (
      <Line
        key={`${scope} ${row ? keyOf(row, index) : index}`}
        {...{ row, index, top, columns, template, wrap, zone: tz, hasDates, marks }}
        onOpen={() => reading.current?.(true)}
        onSize={(element) => measureNow.current([element])}
      />
    );
    lines.set(index, { row, top, node });
    return node;
  };

  return (
    <div
      class={`grid ${dense ? "dense" : ""} ${wrap ? "wrap" : ""}`}
      role="treegrid"
      aria-label={label}
      aria-rowcount={rows.count + 1}
      aria-colcount={columns.length + 1}
      aria-multiselectable={false}
      tabIndex={0}
      ref={box}
      onScroll={onScroll}
      onKeyDown={onKeyDown}
      aria-activedescendant={
        activeRow.value >= first && activeRow.value <= last ? `row-${activeRow.value}` : undefined
      }
    >
      <Head columns={columns} chosen={chosen} template={template} />
      <div class="canvas" role="rowgroup" style={{ height: `${physical}px` }}>
        {shown.map(line)}
      </div>
    </div>
  );
}

const groupTitle = (column: string) => {
  const names = GROUPS.get(column);
  return names && T.groupTitle(names.slice(0, 4).join(", "));
};

interface HeadProps {
  /** The columns that are drawn, which on a narrow screen are fewer than those chosen. */
  columns: string[];
  chosen: string[];
  template: string;
}

function Head({ columns, chosen, template }: HeadProps) {
  const resize = (column: string) => (event: PointerEvent) => {
    event.preventDefault();
    const [start, before] = [event.clientX, widthOf(column)];
    const move = (next: PointerEvent) => setWidth(column, before + next.clientX - start);
    const done = () => {
      removeEventListener("pointermove", move);
      removeEventListener("pointerup", done);
    };
    addEventListener("pointermove", move);
    addEventListener("pointerup", done);
  };
  const { live } = state.value;
  // A tail has the newest first.
  const sort = live ? "desc" : state.value.sort;
  return (
    <div class="head" role="rowgroup">
      <div class="cells" role="row" aria-rowindex={1} style={{ gridTemplateColumns: `22px ${template}` }}>
        <span role="columnheader" aria-label={T.open} />
        {columns.map((column) => (
          <span
            role="columnheader"
            class={columnClass(column)}
            title={groupTitle(column)}
            aria-sort={column === "time" ? (sort === "asc" ? "ascending" : "descending") : undefined}
          >
            {column === "time" && shownLang.value === "q" && !live ? (
              <Button
                class="plain sort"
                title={T.sortTitle}
                onClick={() => go({ sort: sort === "asc" ? "desc" : "asc" })}
              >
                {columnTitle(column)} {sort === "asc" ? "↑" : "↓"}
              </Button>
            ) : (
              <span class="title">
                {columnTitle(column)}
                {column === "time" && live && " ↓"}
              </span>
            )}
            <Button
              class="plain remove"
              label={T.removeColumn(columnTitle(column))}
              onClick={() => go({ cols: chosen.filter((known) => known !== column) })}
            >
              ✕
            </Button>
            {column !== "message" && (
              <span
                class="grip"
                role="separator"
                tabIndex={0}
                aria-orientation="vertical"
                aria-label={T.columnWidth(columnTitle(column))}
                aria-valuenow={widthOf(column)}
                aria-valuemin={WIDTH_MIN}
                aria-valuemax={WIDTH_MAX}
                onPointerDown={resize(column)}
                onKeyDown={(event) => {
                  const step =
                    event.key === "ArrowLeft" ? -WIDTH_STEP : event.key === "ArrowRight" ? WIDTH_STEP : 0;
                  if (!step) return;
                  event.preventDefault();
                  setWidth(column, widthOf(column) + step);
                }}
              />
            )}
          </span>
        ))}
      </div>
    </div>
  );
}

/** Columns without a filter beside their value. */
const FIXED = new Set(["time", "level", "message"]);

interface LineProps {
  row: Row | undefined;
  index: number;
  top: number;
  columns: string[];
  template: string;
  wrap: boolean;
  zone: string;
  /** The range has more than a day, so that a time alone says too little. */
  hasDates: boolean;
  marks: { text: string; fold: boolean }[];
  onOpen: () => void;
  onSize: (element: HTMLElement) => void;
}

function Line({
  row,
  index,
  top,
  columns,
  template,
  wrap,
  zone,
  hasDates,
  marks,
  onOpen,
  onSize,
}: LineProps) {
  const element = useRef<HTMLDivElement>(null);
  const open = row !== undefined && openRows.value.has(keyOf(row, index));
  // A line opens and closes without the list being drawn, which would measure it.
  useLayoutEffect(() => onSize(element.current!), [open]);
  const active = activeRow.value === index;
  // Buttons of filters are made for the cell under the pointer only.
  const [pointed, setPointed] = useState("");
  const filterOf = (column: string) => {
    if (!row || pointed !== column) return null;
    const field = columnField(row, column);
    if (!field || field.clipped !== undefined || field.text.length > 1024) return null;
    return <FilterButtons field={field.name} value={field.text} />;
  };
  const onClick = (event: MouseEvent) => {
    // Selecting text opens and closes nothing.
    if (!row || !getSelection()?.isCollapsed || (event.target as HTMLElement).closest("button, a")) return;
    activeRow.value = index;
    toggleRow(row, index);
    onOpen();
  };
  return (
    <div
      ref={element}
      class={`line ${open ? "open" : ""} ${active ? "active" : ""} level-${toneOf(row?.level)}`}
      role="presentation"
      data-index={index}
      data-tall={open || (wrap && row) ? "1" : undefined}
      style={{ transform: `translateY(${top}px)` }}
    >
      <div
        class="cells"
        role="row"
        id={`row-${index}`}
        aria-rowindex={index + 2}
        aria-expanded={row ? open : undefined}
        style={{ gridTemplateColumns: `22px ${template}` }}
        onClick={onClick}
        onPointerLeave={() => setPointed("")}
      >
        <span role="gridcell" class="twist" aria-label={open ? T.close : T.open}>
          <span aria-hidden="true">{open ? "▾" : "▸"}</span>
        </span>
        {columns.map((column) => (
          <span
            role="gridcell"
            class={`cell ${columnClass(column)} ${column === "message" && row?.clippedBytes ? "cut" : ""}`}
            onPointerEnter={(event) =>
              setPointed(event.pointerType === "mouse" && !narrow.value ? column : "")
            }
          >
            {row && column === "message" && row.clippedBytes ? (
              <span class="text">
                <Parts parts={cellParts(row, column, wrap, marks, zone, hasDates)} />
              </span>
            ) : row ? (
              <Parts parts={cellParts(row, column, wrap, marks, zone, hasDates)} />
            ) : column === columns[0] ? (
              <span class="dim">…</span>
            ) : null}
            {!FIXED.has(column) && filterOf(column)}
            {row && column === "message" && row.clippedBytes && (
              <small class="more">
                … {bytesText(row.clippedBytes)}
                {row.fieldsOmitted ? `, ${number(row.fieldsOmitted + row.fields.length)} ${T.fields}` : ""}
              </small>
            )}
          </span>
        ))}
      </div>
      {open && row && (
        <div role="row" class="detail-row">
          <div role="gridcell" aria-colspan={columns.length + 1}>
            <Detail row={row} />
          </div>
        </div>
      )}
    </div>
  );
}
