// The page of a server without records: commands for every kind of sender, with this server's address.

import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { json, lines } from "../api/client";
import { run, ask } from "../state/url";
import { T } from "../strings";
import { Button, copy } from "./parts";
import { senders, type Listener } from "./senders";

/** True if the server has any record; null if that is not known. */
export const stored = signal<boolean | null>(null);

const WATCH_MS = 1000;

async function newest(signal: AbortSignal): Promise<string | null> {
  let any = false;
  const found = await lines(
    "api/v1/query",
    { from: "@0", limit: 1, direction: "backward" },
    signal,
    () => {
      any = true;
    },
    {},
    true,
  );
  stored.value = any || Boolean(found.newest);
  return found.newest ?? null;
}

/** Looks whether the server has records, if a search found none. */
export async function look() {
  await newest(new AbortController().signal).catch(() => null);
}

export function Empty() {
  const [chosen, setChosen] = useState(0);
  const [listeners, setListeners] = useState<Listener[] | null>(null);
  const list = senders(new URL(".", location.href), listeners);
  const sender = list[chosen]!;
  useEffect(() => {
    const control = new AbortController();
    // A token that may not read this gets the default ports.
    json<{ listeners: Listener[] }>("api/v1/listeners", {}, { signal: control.signal }, true).then(
      (found) => setListeners(found.listeners),
      () => null,
    );
    return () => control.abort();
  }, []);
  useEffect(() => {
    const control = new AbortController();
    const timer = setInterval(() => {
      if (document.hidden) return;
      newest(control.signal).then(
        () => {
          if (stored.value) {
            // More records will follow the first one.
            ask({ from: "24h", to: "", q: "", live: true });
            run.value += 1;
          }
        },
        () => null,
      );
    }, WATCH_MS);
    return () => {
      clearInterval(timer);
      control.abort();
    };
  }, []);
  return (
    <section class="empty">
      <h1>{T.emptyTitle}</h1>
      <p>{T.emptyText}</p>
      <div class="senders">
        <div role="tablist" aria-label={T.senders} aria-orientation="vertical">
          {list.map(({ name }, index) => (
            <button
              type="button"
              role="tab"
              aria-selected={index === chosen}
              tabIndex={index === chosen ? 0 : -1}
              onClick={() => setChosen(index)}
              onKeyDown={(event) => {
                const step =
                  event.key === "ArrowDown" || event.key === "ArrowRight"
                    ? 1
                    : event.key === "ArrowUp" || event.key === "ArrowLeft"
                      ? -1
                      : 0;
                if (!step) return;
                event.preventDefault();
                const next = (index + step + list.length) % list.length;
                setChosen(next);
                (event.currentTarget.parentElement!.children[next] as HTMLElement).focus();
              }}
            >
              {name}
            </button>
          ))}
        </div>
        <div role="tabpanel" aria-label={sender.name}>
          <p>{sender.text}</p>
          <pre tabIndex={0}>
            <code>{sender.command}</code>
          </pre>
          <Button onClick={() => void copy(sender.command)}>{T.copy}</Button>
        </div>
      </div>
      <p class="waiting" role="status">
        <span class="dot" aria-hidden="true" /> {T.waitingFirst}
      </p>
    </section>
  );
}
