// Light or dark: that of the system, unless the reader chose.

import { signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";
const KEY = "logpond-theme";

function known(): Theme {
  try {
    const found = localStorage.getItem(KEY);
    return found === "light" || found === "dark" ? found : "system";
  } catch {
    return "system";
  }
}

export const theme = signal<Theme>(known());

function apply() {
  if (theme.value === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme.value;
}

export function setTheme(next: Theme) {
  theme.value = next;
  try {
    localStorage.setItem(KEY, next);
  } catch {
    // It then lasts as long as the page.
  }
  apply();
}

apply();
