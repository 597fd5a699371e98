// Parts of the application that are loaded when they are first shown.

import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { T } from "../strings";

export function lazy<P extends object>(load: () => Promise<ComponentType<P>>): ComponentType<P> {
  let loaded: ComponentType<P> | null = null;
  return function Lazy(props: P) {
    const [Found, setFound] = useState<{ it: ComponentType<P> | null }>({ it: loaded });
    const [failed, setFailed] = useState(false);
    useEffect(() => {
      if (loaded) return;
      load().then(
        (it) => {
          loaded = it;
          setFound({ it });
        },
        () => setFailed(true),
      );
    }, []);
    if (failed)
      return (
        <p class="pad bad" role="alert">
          {T.partFailed}
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
