// Tooltips are elements made of text nodes: ECharts inserts them as they are, and no name is read as HTML.
import { h } from "./dom";
import { palette } from "./palette";

export interface TipLine {
  label: string;
  value: string;
  colour?: string | undefined;
}

export function tip(title: string, lines: readonly TipLine[], note = ""): HTMLElement {
  const rows = lines.map(({ label, value, colour }) => {
    const swatch = h("span", { class: "swatch" });
    if (colour === undefined) {
      swatch.hidden = true;
    } else {
      swatch.style.backgroundColor = colour;
    }
    return h("div", { class: "tip-line" }, swatch, h("span", {}, label), h("b", {}, value));
  });
  return h(
    "div",
    { class: "tip" },
    h("div", { class: "tip-title" }, title),
    ...rows,
    note !== "" && h("div", { class: "tip-note" }, note),
  );
}

/** The tooltip of a chart; `show` makes the element of what the pointer is on. */
export function tooltip(
  trigger: "item" | "axis",
  show: (params: never) => HTMLElement | null,
): Record<string, unknown> {
  const colours = palette();
  return {
    trigger,
    confine: true,
    transitionDuration: 0,
    backgroundColor: colours.ground,
    borderColor: colours.line,
    textStyle: { color: colours.text },
    axisPointer: { type: "line", lineStyle: { color: colours.muted } },
    formatter: (params: never) => show(params) ?? "",
  };
}
