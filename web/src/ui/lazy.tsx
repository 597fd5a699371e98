// Parts of the application that are loaded when they are first shown.

import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { run } from "../state/url";
import { T } from "../strings";
import { Retry } from "./parts";

/** Asks the server for its page, and loads it anew: a browser may keep a module that failed as failed. */
async function reload() {
  const answer = await fetch(location.pathname, { method: "HEAD", cache: "no-store" });
  if (answer.ok) location.reload();
}

export function lazy<P extends object>(load: () => Promise<ComponentType<P>>): ComponentType<P> {
  let loaded: ComponentType<P> | null = null;
  let hasFailed = false;
  return function Lazy(props: P) {
    const [Found, setFound] = useState<{ it: ComponentType<P> | null }>({ it: loaded });
    const [failed, setFailed] = useState(false);
    // A query that is asked again asks for the part again, too.
    useEffect(() => {
      if (loaded) return;
      load().then(
        (it) => {
          loaded = it;
          setFailed(false);
          setFound({ it });
        },
        () => {
          if (hasFailed) void reload().catch(() => null);
          hasFailed = true;
          setFailed(true);
        },
      );
    }, [run.value]);
    if (failed && !Found.it)
      return (
        <p class="pad bad screen-failed" role="alert">
          {T.partFailed} <Retry link />
        </p>
      );
    return Found.it ? (
      <Found.it {...props} />
    ) : (
      <p class="pad dim" aria-busy="true">
        {T.loading}
      </p>
    );
  };
}
