// Small parts of the interface.

import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import type { Part } from "../lib/paint";
import { gaps, type Problem } from "../api/client";
import { run } from "../state/url";
import { T } from "../strings";

export const number = (value: number) => value.toLocaleString("en-US");

export function bytesText(bytes: number): string {
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let [value, unit] = [bytes, 0];
  while (Math.abs(value) >= 1000 && unit < units.length - 1) [value, unit] = [value / 1000, unit + 1];
  return `${value.toLocaleString("en-US", { maximumFractionDigits: value < 10 && unit > 0 ? 1 : 0 })} ${units[unit]}`;
}

export function shortNumber(value: number): string {
  const abs = Math.abs(value);
  if (abs >= 1e9) return `${(value / 1e9).toFixed(abs < 1e10 ? 1 : 0)} G`;
  if (abs >= 1e6) return `${(value / 1e6).toFixed(abs < 1e7 ? 1 : 0)} M`;
  if (abs >= 1e4) return `${(value / 1e3).toFixed(0)} k`;
  if (abs >= 100 || Number.isInteger(value)) return number(Math.round(value));
  return value.toPrecision(3).replace(/\.?0+$/, "");
}

/** A count with all its digits, if it has not too many for a list. */
export const countText = (value: number) => (Math.abs(value) < 1e7 ? number(value) : shortNumber(value));

export function percent(share: number): string {
  const value = share * 100;
  if (value > 0 && value < 0.1) return "<0.1 %";
  return `${value >= 10 || value === 0 ? Math.round(value) : value.toFixed(1)} %`;
}

export function Parts({ parts }: { parts: Part[] }) {
  return (
    <>
      {parts.map(({ text, mark, tone }) => {
        const shown = tone ? <span class={`t-${tone}`}>{text}</span> : text;
        return mark ? <mark>{shown}</mark> : shown;
      })}
    </>
  );
}

interface ButtonProps {
  children: ComponentChildren;
  onClick: (event: MouseEvent) => void;
  label?: string;
  title?: string;
  pressed?: boolean;
  disabled?: boolean;
  class?: string;
  expanded?: boolean;
}

export function Button({
  children,
  onClick,
  label,
  title,
  pressed,
  disabled,
  expanded,
  class: name,
}: ButtonProps) {
  return (
    <button
      type="button"
      class={name}
      onClick={onClick}
      aria-label={label}
      title={title ?? label}
      aria-pressed={pressed}
      aria-expanded={expanded}
      disabled={disabled}
    >
      {children}
    </button>
  );
}

/** Runs the query again. */
export const Retry = ({ link }: { link?: boolean }) => (
  <Button
    class={link ? "link" : undefined}
    onClick={() => {
      run.value += 1;
    }}
  >
    {T.retry}
  </Button>
);

/** The one menu that is open. */
export const openMenu = signal("");

/** An item of a menu, which it closes. */
export function MenuItem({
  children,
  onClick,
  pressed,
}: Pick<ButtonProps, "children" | "pressed"> & { onClick: () => void }) {
  return (
    <li>
      <Button
        class="item"
        pressed={pressed}
        onClick={() => {
          openMenu.value = "";
          onClick();
        }}
      >
        {children}
      </Button>
    </li>
  );
}

interface MenuProps {
  name: string;
  label: ComponentChildren;
  title?: string;
  children: ComponentChildren;
  right?: boolean;
  wide?: boolean;
  class?: string;
}

/** Space between a panel and the edge of the window. */
const EDGE_PX = 8;

/** Moves a panel into the window, and makes it no higher than the room below its button. */
function fitPanel(panel: HTMLElement) {
  panel.style.translate = "";
  panel.style.maxHeight = "";
  const { left, right, top, bottom } = panel.getBoundingClientRect();
  const over = Math.max(0, right - (innerWidth - EDGE_PX));
  const shift = Math.max(EDGE_PX - left, -over);
  if (shift) panel.style.translate = `${shift}px`;
  const room = innerHeight - EDGE_PX - top;
  if (bottom > top + room) panel.style.maxHeight = `${room}px`;
}

/** A button with a panel below it. Escape and a click elsewhere close it. */
export function Menu({ name, label, title, children, right, wide, class: extra }: MenuProps) {
  const open = openMenu.value === name;
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!open) return;
    const outside = (event: Event) => {
      if (!box.current?.contains(event.target as Node)) openMenu.value = "";
    };
    addEventListener("pointerdown", outside);
    // Where a finger opened it, a keyboard on the screen would cover the panel.
    const typed = matchMedia("(pointer: coarse)").matches ? null : "[data-first]";
    const first =
      (typed && box.current?.querySelector<HTMLElement>(typed)) ??
      box.current?.querySelector<HTMLElement>(".panel :is(input, button, a):not(:disabled)");
    first?.focus();
    return () => removeEventListener("pointerdown", outside);
  }, [open]);
  // A panel may get its content later.
  useLayoutEffect(() => {
    const panel = box.current?.querySelector<HTMLElement>(".panel");
    if (!panel) return;
    const fit = () => fitPanel(panel);
    fit();
    const observer = new ResizeObserver(fit);
    observer.observe(panel);
    addEventListener("resize", fit);
    return () => {
      observer.disconnect();
      removeEventListener("resize", fit);
    };
  }, [open]);
  const onKeyDown = (event: KeyboardEvent) => {
    if (!open) return;
    if (event.key === "Escape") {
      event.stopPropagation();
      openMenu.value = "";
      box.current?.querySelector("button")?.focus();
    }
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    const items = [
      ...box.current!.querySelectorAll<HTMLElement>(".panel button, .panel a, .panel input, .panel select"),
    ];
    const at = items.indexOf(document.activeElement as HTMLElement);
    if (at < 0 || (document.activeElement as HTMLElement).tagName === "SELECT") return;
    event.preventDefault();
    items[(at + (event.key === "ArrowDown" ? 1 : items.length - 1)) % items.length]?.focus();
  };
  return (
    <div class={`menu ${extra ?? ""}`} ref={box} onKeyDown={onKeyDown}>
      <button
        type="button"
        aria-expanded={open}
        aria-haspopup="true"
        title={title}
        aria-label={title}
        onClick={() => {
          openMenu.value = open ? "" : name;
        }}
      >
        {label}
        <span class="caret" aria-hidden="true" />
      </button>
      {open && <div class={`panel ${right ? "right" : ""} ${wide ? "wide" : ""}`}>{children}</div>}
    </div>
  );
}

/** A dialog over the page. The focus returns to where it was. */
export function Dialog({
  title,
  onClose,
  children,
  class: name,
}: {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  class?: string;
}) {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    box.current?.showModal();
    return () => before?.focus?.();
  }, []);
  return (
    <dialog
      ref={box}
      class={name}
      aria-label={title}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => {
        if (event.target === box.current) onClose();
      }}
    >
      <div class="dialog-body">
        <header class="dialog-head">
          <h2>{title}</h2>
          <Button class="plain" onClick={onClose} label={T.close}>
            ✕
          </Button>
        </header>
        {children}
      </div>
    </dialog>
  );
}

const toast = signal("");
let toastTimer = 0;
export function say(text: string) {
  toast.value = text;
  clearTimeout(toastTimer);
  toastTimer = window.setTimeout(() => {
    toast.value = "";
  }, 2500);
}
export function Toast() {
  return (
    <div class="toast" role="status" aria-live="polite" data-shown={toast.value !== ""}>
      {toast.value}
    </div>
  );
}

export async function copy(text: string, said = T.copied) {
  try {
    await navigator.clipboard.writeText(text);
    say(said);
  } catch {
    // Without a secure connection there is no clipboard for scripts.
    const box = document.createElement("textarea");
    box.value = text;
    (document.querySelector("dialog[open]") ?? document.body).append(box);
    box.select();
    const done = document.execCommand("copy");
    box.remove();
    say(done ? said : T.copyFailed);
  }
}

export function ProblemText({ problem, children }: { problem: Problem; children?: ComponentChildren }) {
  return (
    <div class="problem" role="alert">
      <strong>{problem.message}</strong>
      {problem.hint ? <span> · {problem.hint}</span> : null} {children}
    </div>
  );
}

const GAPS_SHOWN = 5;

/** Sentences on the data that answers of the view lack. */
export function gapTexts(): string[] {
  const found = gaps.value;
  if (!found) return [];
  const { missing, missingCount, silent, lost, warnings } = found;
  const list: string[] = [];
  if (missingCount > 0) {
    const more = missingCount - Math.min(GAPS_SHOWN, missing.length);
    list.push(
      `${T.incomplete} ${missing.slice(0, GAPS_SHOWN).join("; ")}${more > 0 ? ` ${T.andMore(more)}` : ""}`,
    );
  }
  if (silent.length) list.push(T.silent(silent.join(", ")));
  if (lost.length) list.push(T.lost(lost.join("; ")));
  list.push(...warnings);
  // An answer may be incomplete without a name of what it lacks.
  return list.length ? list : [T.incompleteOnly];
}

/** One bar for a screen of which any answer is incomplete. */
export function Gaps({ more = [] }: { more?: string[] }) {
  const list = [...gapTexts(), ...more];
  return list.length ? (
    <div class="notices" role="status">
      {list.map((text) => (
        <p>{text}</p>
      ))}
    </div>
  ) : null;
}

/** A line of counts without axes. */
export function Sparkline({
  values,
  label,
  width = 120,
  height = 22,
}: {
  values: number[];
  label: string;
  width?: number;
  height?: number;
}) {
  const most = Math.max(1, ...values);
  const step = width / Math.max(1, values.length);
  return (
    <svg
      class="spark"
      width={width}
      height={height}
      viewBox={`0 0 ${width} ${height}`}
      role="img"
      aria-label={label}
    >
      {values.map((value, index) => {
        const size = value ? Math.max(1.5, (value / most) * height) : 0;
        return <rect x={index * step} y={height - size} width={Math.max(0.5, step - 0.8)} height={size} />;
      })}
    </svg>
  );
}

export function Bar({ share }: { share: number }) {
  return (
    <svg class="bar" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
      <rect width={Math.max(0.5, Math.min(100, share * 100))} height="4" />
    </svg>
  );
}
