// Light or dark: as the system says until the reader says otherwise; light on paper.

export type Theme = "light" | "dark";

const wants_dark = window.matchMedia("(prefers-color-scheme: dark)");
const on_paper = window.matchMedia("print");
const listeners: (() => void)[] = [];
let chosen: Theme | null = null;

export function theme(): Theme {
  return on_paper.matches ? "light" : (chosen ?? (wants_dark.matches ? "dark" : "light"));
}

export function is_on_paper(): boolean {
  return on_paper.matches;
}

function apply(): void {
  document.documentElement.dataset.theme = theme();
  for (const listener of listeners) {
    listener();
  }
}

export function toggle_theme(): void {
  chosen = theme() === "dark" ? "light" : "dark";
  apply();
}

/** Calls `listener` whenever colours must be made anew. */
export function on_theme_change(listener: () => void): void {
  listeners.push(listener);
}

export function start_theme(): void {
  wants_dark.addEventListener("change", apply);
  on_paper.addEventListener("change", apply);
  apply();
}
