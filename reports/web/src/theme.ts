// Light or dark: as the system says until the reader says otherwise; light on paper.

export type Theme = "light" | "dark";

const wants_dark = window.matchMedia("(prefers-color-scheme: dark)");
const on_paper = window.matchMedia("print");
/** Sent to each element of the page that asked for it; those that have left the page are not kept. */
const kChange = "ulysim-theme";
let chosen: Theme | null = null;

export function theme(): Theme {
  return on_paper.matches ? "light" : (chosen ?? (wants_dark.matches ? "dark" : "light"));
}

export function is_on_paper(): boolean {
  return on_paper.matches;
}

function apply(): void {
  document.documentElement.dataset.theme = theme();
  for (const element of document.querySelectorAll("[data-themed]")) {
    element.dispatchEvent(new Event(kChange));
  }
}

export function toggle_theme(): void {
  chosen = theme() === "dark" ? "light" : "dark";
  apply();
}

/** Calls `listener` whenever colours must be made anew while the element is in the page. */
export function on_theme_change(element: HTMLElement, listener: () => void): void {
  element.dataset.themed = "";
  element.addEventListener(kChange, listener);
}

export function start_theme(): void {
  wants_dark.addEventListener("change", apply);
  on_paper.addEventListener("change", apply);
  apply();
}
